"""Import of a large log with several processes. Each process converts a range of samples, and one process
combines the ranges.

The combined output is identical to an import in one stream. If samples depend on each other (conflicting ids)
or something cannot be read, the log is imported in one stream.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

from aigo_bridge.engine.engine import LogRange
from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, LossReport
from aigo_bridge.process import no_collections
from aigo_bridge.process.temporary import draft_folder_of
from aigo_bridge.results.log_files import mapped, open_for_replacing
from aigo_bridge.results.writing import DocumentWriter, Piece
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import LogTotals, frame_of
from aigo_inspect.importing.writing import finish, reduced_scores, write_samples
from aigo_inspect.logs.index import NO_TEXT, RENAMED, RENUMBERED, SampleRef
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.shapes import FRAME, HEADER_KEY
from aigo_inspect.logs.sources import local_path

if TYPE_CHECKING:
    from concurrent.futures import Future

LARGE = 16 << 20
"""Size of samples in bytes: from this total on, several processes are faster; maximum for one range."""

SHARES = 16
"""Minimum number of ranges per process. Several small ranges balance slow and fast samples."""

_OF_OTHERS = (NO_TEXT, RENAMED, RENUMBERED)
"""Changes of sample ids that depend on the ids of all samples."""


class InspectRanges:
    """Importer for ranges of Inspect logs; see `RangeImporter`."""

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """Return the number of samples; `None` for a log without ranges (see `has_ranges`)."""
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            return len(_Samples.of(reader).groups) if has_ranges(reader) else None

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write a range of samples as a result log."""
        secrets = options.redaction()
        with open_log(log, bounds=options.bounds, redaction=secrets) as reader:
            with open_for_replacing(output, clean=False) as file, no_collections():
                writer = DocumentWriter(file)
                part = _Samples.of(reader).write(writer, options, first, end)
                if part is not None:
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
                totals.add(part.totals)
                loss.add(part.loss)
            with open_for_replacing(output, clean=False) as file:
                finish(
                    DocumentWriter(file),
                    frame_of(reader.header, totals, reader.damage, loss, superseded(reader)),
                )
            loss.changed.update(reader.changes)
            return ImportReport(
                reader.location,
                output=output,
                status=str(reader.header.get("status") or ""),
                samples=totals.samples,
                trials=totals.trials,
                failed=totals.failed,
                damage=tuple(reader.damage),
                loss=loss,
                redacted=sum((part.redacted for part in ranges), Counter(reader.redaction.found)),
            ).with_exit_code(options.max_loss)


def has_ranges(reader: InspectLogReader) -> bool:
    """Return whether a log is a finished, undamaged archive that was not written by aigo-bridge."""
    metadata = reader.header["eval"].get("metadata")
    is_ours = FRAME in reader.members() or (isinstance(metadata, dict) and HEADER_KEY in metadata)
    return reader.format == "eval" and not is_ours and not reader.damage and reader.finished


@dataclass(frozen=True)
class _Samples:
    """Samples of an open log, for all ranges of a process."""

    reader: InspectLogReader
    groups: list[list[SampleRef]]
    """Samples in order, each with its epochs."""
    reductions: dict[str, list[dict[str, Any]]]

    @classmethod
    def of(cls, reader: InspectLogReader) -> Self:
        refs = groupby(reader.sample_refs("sample"), attrgetter("id_text"))
        return cls(reader, [list(group) for _, group in refs], reduced_scores(reader, LossReport()))

    def write(self, writer: DocumentWriter, options: ImportOptions, start: int, end: int) -> LogRange | None:
        """Write a range of samples; return `None` if something is damaged or depends on other samples."""
        reader, loss = self.reader, LossReport()
        # Changes and secrets found so far are counted with the frame.
        reader.redaction.found.clear()
        reader.changes.clear()
        refs = [ref for group in self.groups[start:end] for ref in group]
        totals = write_samples(reader, writer, options, loss, self.reductions, refs)
        loss.changed.update(reader.changes)
        if reader.damage or totals.samples != end - start or any(loss.changed[one] for one in _OF_OTHERS):
            return None
        return LogRange(totals.samples, loss, Counter(reader.redaction.found), totals)


class UnsuitableForRangesError(Exception):
    """The log must be imported in one stream."""


@dataclass(frozen=True)
class RangePlan:
    """Division of a large log into ranges for several processes."""

    log: Path
    samples: _Samples
    ends: tuple[int, ...]
    """Number of samples up to the end of each range."""
    processes: int
    """Number of processes, including this one."""


def plan_ranges(reader: InspectLogReader, processes: int) -> RangePlan | None:
    """Return the ranges of an open log; `None` if it is small or must be imported in one stream."""
    path = local_path(reader.address)
    if path is None or processes < 2 or not has_ranges(reader):
        return None
    samples = _Samples.of(reader)
    sizes = [sum(map(reader.sample_size, group)) for group in samples.groups]
    if sum(sizes) < LARGE or len(sizes) < 2:
        return None
    count = max(processes * SHARES, sum(sizes) // LARGE)
    return RangePlan(Path(path), samples, _ends(sizes, min(len(sizes), count)), processes)


def _ends(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    total, sum_before, ends = sum(sizes), 0, list[int]()
    for number, size in enumerate(sizes, 1):
        sum_before += size
        if sum_before * count >= total * (len(ends) + 1):
            ends.append(number)
    return tuple(sorted({*ends[: count - 1], len(sizes)}))


def write_ranges(
    plan: RangePlan, output: Path, options: ImportOptions, loss: LossReport, writer: DocumentWriter
) -> LogTotals:
    """Write all samples of an open log. Other processes convert ranges to drafts next to `output`.

    Raises:
        UnsuitableForRangesError: the log must be imported in one stream.
    """
    from aigo_bridge.process.pool import running

    reader, totals = plan.samples.reader, LogTotals()
    redacted, changes = Counter(reader.redaction.found), Counter(reader.changes)
    _OPEN[plan.log] = plan.samples
    try:
        with draft_folder_of(output, output.parent) as folder:
            work = [(plan.log, folder / str(ends[0]), options, *ends) for ends in pairwise((0, *plan.ends))]
            # Other processes first take their share, so that this one finds drafts between its own ranges,
            # and then the ranges that this one would convert last.
            own = range(0, len(work), plan.processes)
            order = [*(number for number in range(len(work)) if number not in own), *own[::-1]]
            with running(_draft, [work[number] for number in order], plan.processes - 1) as futures:
                drafts = dict(zip(order, futures, strict=True))
                for number, (_, path, _, start, end) in enumerate(work):
                    future = drafts[number]
                    if future.cancel():
                        part = plan.samples.write(writer, options, start, end)
                    else:
                        part = _copied(path, future, writer)
                    if part is None:
                        raise UnsuitableForRangesError
                    totals.add(part.totals)
                    loss.add(part.loss)
                    redacted.update(part.redacted)
    finally:
        del _OPEN[plan.log]
    for counts, earlier in ((reader.redaction.found, redacted), (reader.changes, changes)):
        counts.clear()
        counts.update(earlier)
    return totals


def _copied(path: Path, future: Future[_Draft | None], writer: DocumentWriter) -> LogRange | None:
    """Write a draft of another process; return `None` if there is none."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        draft = future.result()
    except BrokenProcessPool:
        return None
    if draft is not None:
        text = memoryview(mapped(path)[0])
        writer.samples(draft[0].samples, (text[start : start + size] for start, size in draft[1]))
        path.unlink()
    return draft and draft[0]


_OPEN: dict[Path, _Samples] = {}
"""Log that this process imports. Forked processes inherit it."""
_Draft = tuple[LogRange, list[tuple[int, int]]]
"""Result of a range, and the start and length of the parts of its text in a file, in bytes."""


def _draft(log: Path, path: Path, options: ImportOptions, start: int, end: int) -> _Draft | None:
    """Write the text of a range of samples to a file."""
    try:
        if log not in _OPEN:  # until the process ends
            _OPEN[log] = _Samples.of(open_log(log, bounds=options.bounds, redaction=options.redaction()))
        with path.open("wb", buffering=1 << 18) as file, no_collections():
            text = _DraftText(file)
            part = _OPEN[log].write(DocumentWriter(cast("BinaryIO", text), start=b""), options, start, end)
    except (BridgeError, OSError, MemoryError):
        return None
    return None if part is None else (part, text.slices)


class _DraftText:
    """Text that repeats parts of itself. The file contains each of them once."""

    def __init__(self, file: BinaryIO) -> None:
        self.slices: list[tuple[int, int]] = []
        self._file = file
        self._size = 0
        self._repeated: deque[tuple[bytes, int]] = deque(maxlen=4)
        """Texts whose beginnings are written repeatedly, with their start in the file: one for each agent."""

    def write(self, piece: Piece) -> None:
        start, length = self._size, len(piece)
        whole = piece.obj if isinstance(piece, memoryview) else piece
        assert isinstance(whole, bytes)
        known = next((start for text, start in self._repeated if text is whole), None)
        if known is None:
            self._file.write(whole)
            self._size += len(whole)
        if whole is not piece:
            if known is None:
                self._repeated.append((whole, start))
            start = start if known is None else known
        elif self.slices and sum(self.slices[-1]) == start:
            start, before = self.slices.pop()
            length += before
        self.slices.append((start, length))
