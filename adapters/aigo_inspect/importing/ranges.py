"""Import of a large log with several processes. Each process converts a range of samples, and one process
combines the ranges.

The combined output is identical to an import in one stream. If samples depend on each other (conflicting ids)
or something cannot be read, the log is imported in one stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from aigo_bridge.engine.engine import LogRange
from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, LossReport
from aigo_bridge.process import no_collections
from aigo_bridge.process.temporary import draft_folder_of
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import LogTotals, frame_of
from aigo_inspect.importing.writing import finish, reduced_scores, write_samples
from aigo_inspect.logs.index import NO_TEXT, RENAMED, RENUMBERED, SampleRef
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.shapes import FRAME, HEADER_KEY
from aigo_inspect.logs.sources import local_path

LARGE = 16 << 20
"""Total size of the samples from which several processes are faster, in bytes."""

SHARES = 3
"""Number of ranges per process. Several small ranges balance slow and fast samples."""

_OF_OTHERS = (NO_TEXT, RENAMED, RENUMBERED)
"""Changes of sample ids that depend on the ids of all samples."""


class InspectRanges:
    """Importer for ranges of Inspect logs; see `RangeImporter`."""

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """Return the number of samples; `None` for an unfinished or damaged archive, and for a log of
        aigo-bridge.
        """
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            return len(_samples(reader)) if has_ranges(reader) else None

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write a range of samples as a result log."""
        secrets = options.redaction()
        with open_log(log, bounds=options.bounds, redaction=secrets) as reader:
            with open_for_replacing(output, clean=False) as file, no_collections():
                writer = DocumentWriter(file)
                part = _write_range(reader, writer, options, first, end)
                if part is not None and isinstance(part.totals, LogTotals):
                    finish(writer, frame_of(reader.header, part.totals, [], LossReport()))
            return part

    def import_frame(
        self, log: Path, output: Path, options: ImportOptions, ranges: Sequence[LogRange]
    ) -> ImportReport:
        """Write a result log without samples, with the totals of all ranges."""
        totals, loss = LogTotals(), LossReport()
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            reduced_scores(reader, loss)
            for part in ranges:
                assert isinstance(part.totals, LogTotals)
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
        return report.with_exit_code(options.max_loss)


def _samples(reader: InspectLogReader) -> list[list[SampleRef]]:
    """Return the samples in order, each with its epochs."""
    groups: list[list[SampleRef]] = []
    for ref in reader.sample_refs("sample"):
        if groups and groups[-1][0].id_text == ref.id_text:
            groups[-1].append(ref)
        else:
            groups.append([ref])
    return groups


def has_ranges(reader: InspectLogReader) -> bool:
    """Return whether a log is a finished, undamaged archive that was not written by aigo-bridge."""
    metadata = reader.header["eval"].get("metadata")
    is_ours = FRAME in reader.members() or (isinstance(metadata, dict) and HEADER_KEY in metadata)
    return reader.format == "eval" and not is_ours and not reader.damage and reader.finished


def _write_range(
    reader: InspectLogReader, writer: DocumentWriter, options: ImportOptions, start: int, end: int
) -> LogRange | None:
    """Write a range of samples of an open log; `None` if something is damaged or depends on other samples."""
    refs = [ref for group in _samples(reader)[start:end] for ref in group]
    reductions = reduced_scores(reader, LossReport())
    # Changes and secrets found so far are counted with the frame.
    reader.redaction.found.clear()
    reader.changes.clear()
    loss = LossReport()
    totals = write_samples(reader, writer, options, loss, reductions, refs)
    loss.changed.update(reader.changes)
    if reader.damage or totals.samples != end - start or any(loss.changed[one] for one in _OF_OTHERS):
        return None
    return LogRange(totals.samples, loss, Counter(reader.redaction.found), totals)


class UnsuitableForRangesError(Exception):
    """The log must be imported in one stream, because something is damaged or samples depend on each
    other.
    """


@dataclass(frozen=True)
class RangePlan:
    """Division of a large log into ranges for several processes."""

    log: Path
    ends: tuple[int, ...]
    """Number of samples up to the end of each range."""
    processes: int
    """Number of processes, including this one."""


def plan_ranges(reader: InspectLogReader, processes: int) -> RangePlan | None:
    """Return the ranges of an open log; `None` if it is small or must be imported in one stream."""
    path = local_path(reader.address)
    if path is None or processes < 2 or not has_ranges(reader):
        return None
    sizes = [sum(map(reader.sample_size, group)) for group in _samples(reader)]
    if sum(sizes) < LARGE or len(sizes) < 2:
        return None
    return RangePlan(Path(path), _ends(sizes, min(len(sizes), processes * SHARES)), processes)


def _ends(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    total, sum_before, ends = sum(sizes), 0, list[int]()
    for number, size in enumerate(sizes, 1):
        sum_before += size
        if sum_before * count >= total * (len(ends) + 1):
            ends.append(number)
    return tuple(sorted({*ends[: count - 1], len(sizes)}))


def write_ranges(
    reader: InspectLogReader,
    plan: RangePlan,
    output: Path,
    options: ImportOptions,
    loss: LossReport,
    writer: DocumentWriter,
) -> LogTotals:
    """Write all samples of an open log: the first ranges in this process, the others in other processes,
    as drafts next to `output`.

    Raises:
        UnsuitableForRangesError: the log must be imported in one stream.
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
            totals = _added(part, LogTotals(), loss, redacted)
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


def _added(part: LogRange | None, totals: LogTotals, loss: LossReport, redacted: Counter[str]) -> LogTotals:
    if part is None:
        raise UnsuitableForRangesError
    assert isinstance(part.totals, LogTotals)
    totals.add(part.totals)
    loss.add(part.loss)
    redacted.update(part.redacted)
    return totals


@lru_cache(maxsize=1)
def _opened(log: Path, options: ImportOptions) -> InspectLogReader:
    """Open a log for all ranges of a pool process. The log is closed when the process ends."""
    return open_log(log, bounds=options.bounds, redaction=options.redaction())


def _range_text(log: Path, output: Path, options: ImportOptions, start: int, end: int) -> LogRange | None:
    """Write the text of a range of samples to a file. Runs in a pool process."""
    try:
        with output.open("wb", buffering=1 << 18) as file, no_collections():
            reader = _opened(log, options)
            return _write_range(reader, DocumentWriter(file, start=b""), options, start, end)
    except (BridgeError, OSError, MemoryError):
        return None
