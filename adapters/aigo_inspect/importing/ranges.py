"""A large log read by several processes: each maps some of its samples, and one adds what they come to.

Put together, the lines are those of an import in one stream. Where a sample depends on others (ids that have
to be settled) or something cannot be read, the log is left to that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.engine.engine import LogRange
from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, LossReport
from aigo_bridge.process import no_collections
from aigo_bridge.process.temporary import draft_folder_of
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import Totals, frame_of
from aigo_inspect.importing.writing import finish, reduced_scores, write_samples
from aigo_inspect.logs.index import NO_TEXT, RENAMED, RENUMBERED, SampleRef
from aigo_inspect.logs.reader import LogReader, open_log
from aigo_inspect.logs.shapes import FRAME, HEADER_KEY
from aigo_inspect.logs.sources import local_path

LARGE = 16 << 20
"""Bytes of the samples of a log from which its import uses several processes: they pay for their start."""

SHARES = 3
"""Ranges for each process, so that one with slow samples is not waited for."""

_OF_OTHERS = (NO_TEXT, RENAMED, RENUMBERED)
"""Changes by which the id of one sample depends on those of all."""


class InspectRanges:
    """Reads parts of Inspect's logs; see `RangeImporter`."""

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """Samples of a finished, sound archive that is not of a run of ours."""
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            return len(_samples(reader)) if has_ranges(reader) else None

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write some of its samples as a result log."""
        secrets = options.redaction()
        with open_log(log, bounds=options.bounds, redaction=secrets) as reader:
            with open_for_replacing(output, clean=False) as file, no_collections():
                writer = DocumentWriter(file)
                part = _write_range(reader, writer, options, first, end)
                assert part is None or isinstance(part.totals, Totals)
                if part is not None and isinstance(part.totals, Totals):
                    finish(writer, frame_of(reader.header, part.totals, [], LossReport()))
            return part

    def import_frame(
        self, log: Path, output: Path, options: ImportOptions, ranges: Sequence[LogRange]
    ) -> ImportReport:
        """Write a result log without samples, whose numbers are those of all."""
        totals, loss = Totals(), LossReport()
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            reduced_scores(reader, loss)
            for part in ranges:
                assert isinstance(part.totals, Totals)
                totals.add(part.totals)
                loss.add(part.loss)
            with open_for_replacing(output, clean=False) as file:
                finish(
                    DocumentWriter(file),
                    frame_of(reader.header, totals, reader.damage, loss, superseded(reader)),
                )
            loss.changed.update(reader.changes)
            report = ImportReport(
                reader.location,
                output=output,
                status=str(reader.header.get("status") or ""),
                samples=totals.samples,
                trials=totals.trials,
                failed=totals.failed,
                damage=tuple(reader.damage),
                loss=loss,
                redacted=Counter(reader.redaction.found),
            )
        for part in ranges:
            report.redacted.update(part.redacted)
        return report.judged(options.max_loss)


def _samples(reader: LogReader) -> list[list[SampleRef]]:
    """The samples in their order, each with its epochs."""
    groups: list[list[SampleRef]] = []
    for ref in reader.sample_refs("sample"):
        if groups and groups[-1][0].id_text == ref.id_text:
            groups[-1].append(ref)
        else:
            groups.append([ref])
    return groups


def has_ranges(reader: LogReader) -> bool:
    """Return whether a log is a finished, sound archive that aigo-bridge has not written itself."""
    metadata = reader.header["eval"].get("metadata")
    is_ours = FRAME in reader.members() or (isinstance(metadata, dict) and HEADER_KEY in metadata)
    return reader.format == "eval" and not is_ours and not reader.damage and reader.finished


def _write_range(
    reader: LogReader, writer: DocumentWriter, options: ImportOptions, start: int, end: int
) -> LogRange | None:
    """Write some samples of an open log; `None`: something is damaged, or depends on other samples."""
    refs = [ref for group in _samples(reader)[start:end] for ref in group]
    reductions = reduced_scores(reader, LossReport())
    # Changes and secrets that were found until here are counted with the frame.
    reader.redaction.found.clear()
    reader.changes.clear()
    loss = LossReport()
    totals = write_samples(reader, writer, options, loss, reductions, refs)
    loss.changed.update(reader.changes)
    if reader.damage or totals.samples != end - start or any(loss.changed[one] for one in _OF_OTHERS):
        return None
    return LogRange(totals.samples, loss, Counter(reader.redaction.found), totals)


class UnsuitableForRangesError(Exception):
    """A log that has to be read in one stream: something is damaged, or samples depend on each other."""


@dataclass(frozen=True)
class RangePlan:
    """A large log that several processes read."""

    log: Path
    ends: tuple[int, ...]
    """Number of samples up to the end of each range."""
    processes: int
    """This one and those that it starts."""


def plan_ranges(reader: LogReader, processes: int) -> RangePlan | None:
    """Return how several processes read an open log; `None` if it is small, or must be read in one stream."""
    path = local_path(reader.address)
    if path is None or processes < 2 or not has_ranges(reader):
        return None
    sizes = [sum(map(reader.sample_size, group)) for group in _samples(reader)]
    if sum(sizes) < LARGE or len(sizes) < 2:
        return None
    return RangePlan(Path(path), _ends(sizes, min(len(sizes), processes * SHARES)), processes)


def _ends(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Return where ranges of about equal size end."""
    total, sum_before, ends = sum(sizes), 0, list[int]()
    for number, size in enumerate(sizes, 1):
        sum_before += size
        if sum_before * count >= total * (len(ends) + 1):
            ends.append(number)
    return tuple(sorted({*ends[: count - 1], len(sizes)}))


def write_ranges(
    reader: LogReader,
    plan: RangePlan,
    output: Path,
    options: ImportOptions,
    loss: LossReport,
    writer: DocumentWriter,
) -> Totals:
    """Write all samples of an open log: the first ranges here, the others by other processes.

    Args:
        reader: the log.
        plan: its ranges.
        output: path of the result; drafts of the ranges are written next to it.
        options: how samples are imported.
        loss: where counts go.
        writer: of the result.

    Raises:
        UnsuitableForRangesError: the log has to be imported in one stream.
    """
    from concurrent.futures.process import BrokenProcessPool

    from aigo_bridge.process.pool import running

    redacted, changes = Counter(reader.redaction.found), Counter(reader.changes)
    here = max(1, len(plan.ends) // plan.processes)
    others = list(zip(plan.ends[here - 1 :], plan.ends[here:], strict=False))
    with draft_folder_of(output, output.parent) as folder:
        work = [(plan.log, folder / str(first), options, first, end) for first, end in others]
        with running(_range_text, work, plan.processes - 1) as futures:
            part = _write_range(reader, writer, options, 0, plan.ends[here - 1])
            totals = _added(part, Totals(), loss, redacted)
            for (_, text, *_), future in zip(work, futures, strict=True):
                try:
                    part = future.result()
                except BrokenProcessPool as error:
                    raise UnsuitableForRangesError from error
                samples_before = totals.samples
                totals = _added(part, totals, loss, redacted)
                with text.open("rb") as file:
                    writer.copy_samples(totals.samples - samples_before, file)
                text.unlink()
    for counts, earlier in ((reader.redaction.found, redacted), (reader.changes, changes)):
        counts.clear()
        counts.update(earlier)
    return totals


def _added(part: LogRange | None, totals: Totals, loss: LossReport, redacted: Counter[str]) -> Totals:
    """Add the counts of a range to those of a log."""
    if part is None:
        raise UnsuitableForRangesError
    assert isinstance(part.totals, Totals)
    totals.add(part.totals)
    loss.add(part.loss)
    redacted.update(part.redacted)
    return totals


def _range_text(log: Path, output: Path, options: ImportOptions, start: int, end: int) -> LogRange | None:
    """Write the text of some samples to a file, in a process of a pool."""
    try:
        with (
            open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader,
            output.open("wb", buffering=1 << 18) as file,
            no_collections(),
        ):
            return _write_range(reader, DocumentWriter(file, start=b""), options, start, end)
    except (BridgeError, OSError, MemoryError):
        return None
