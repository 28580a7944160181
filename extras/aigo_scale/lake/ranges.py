"""Import of a large log in ranges of samples by several processes, committed as one log.

Each process opens the log itself. A log in object storage is copied by each process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.results.log_files import scratch_folder
from aigo_report.tables.rows import SampleCounts
from aigo_scale.lake.pieces import LogCandidate
from aigo_scale.lake.single_logs import (
    KNOWN,
    LakeTarget,
    LogImport,
    digest_of,
    import_log,
    kind_of,
    log_import,
    on_this_machine,
    run_id_of,
)
from aigo_scale.lake.writing import Target, WrittenData, write_frame, write_samples

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import LogRange, RangeImporter

LARGE, RANGE_BYTES = 32 << 20, 8 << 20
"""Minimum size of a log that is always split, and approximate size of its ranges, in bytes."""
LEAST = 4 << 20
"""Minimum size in bytes of a log that is split because other processes would wait for it."""
MOST_RANGES = 16
"""Maximum number of ranges of one log. Each process reads the log's directory and copies it from a
storage."""


def sizes(total: int, jobs: int) -> tuple[int, int]:
    """Return the minimum size of a log that is split, and the size of its ranges, for an import in bytes."""
    share = max(LEAST, total // (2 * jobs)) if jobs > 1 else LARGE
    return min(LARGE, share), min(RANGE_BYTES, share // 2 + 1)


@dataclass(frozen=True)
class Split:
    """Log that is imported in ranges."""

    piece: LogCandidate
    digest: str
    engine: str
    run_id: str
    ends: tuple[int, ...]
    """Number of samples up to the end of each range."""

    def target(self, lake: LakeTarget, options: ImportOptions) -> Target:
        """Return the target of its result's rows."""
        name = options.redaction().text(self.piece.name)
        return Target(lake.files, name, f"{self.digest[:32]}-0", self.run_id)


@dataclass(frozen=True)
class WrittenRange:
    """Range with written data files that are not committed yet."""

    range: LogRange
    written: WrittenData
    counts: dict[int | None, SampleCounts]


def import_or_split(
    lake: LakeTarget, pieces: Sequence[LogCandidate], options: ImportOptions, limits: tuple[int, int]
) -> list[LogImport | Split]:
    """Import files one after the other. For a large log, return its ranges instead."""
    large, range_bytes = limits
    if len(pieces) == 1 and pieces[0].size >= large:
        try:
            with on_this_machine(pieces[0]) as path:
                split = _split(lake, pieces[0], path, options, range_bytes)
        except (BridgeError, OSError):
            split = None  # the import of the whole log reports the error
        if split is not None:
            return [split]
    return [import_log(lake, piece, options) for piece in pieces]


def _split(
    lake: LakeTarget, piece: LogCandidate, path: Path, options: ImportOptions, range_bytes: int
) -> Split | LogImport | None:
    kind = kind_of(piece, path)
    ranges = None if kind is None else _ranges_of(kind[0])
    if kind is None or ranges is None:
        return None
    digest = digest_of(path, None)
    if lake.knows(digest):
        return LogImport(ImportReport(piece.name, status=KNOWN))
    samples = ranges.count(path, options)
    if samples is None or samples < 2:
        return None
    count = min(MOST_RANGES, samples, math.ceil(path.stat().st_size / range_bytes))
    ends = tuple(samples * one // count for one in range(1, count + 1))
    return Split(piece, digest, kind[0], run_id_of(kind[0], path, digest), ends)


def _ranges_of(engine: str) -> RangeImporter | None:
    from aigo_bridge.engine.registry import engine_class, engine_names

    row = engine_class(engine).capabilities.log_ranges if engine in engine_names() else None
    return None if row is None else row()


def import_range(lake: LakeTarget, split: Split, number: int, options: ImportOptions) -> WrittenRange | None:
    """Import a range; `None` if the log must be imported as a whole, which then reports the reason."""
    first, end = (split.ends[number - 1] if number else 0), split.ends[number]
    importer = _ranges_of(split.engine)
    assert importer is not None
    try:
        with on_this_machine(split.piece) as path, scratch_folder("aigo-lake-") as folder:
            if digest_of(path, None) != split.digest:
                return None
            log = folder / "range.tasklog.json"
            part = importer.import_range(path, log, options, first, end)
            if part is None:
                return None
            counts: dict[int | None, SampleCounts] = {}
            is_last = end == split.ends[-1]
            target = split.target(lake, options)
            written = write_samples(target, log, number, first=first, is_last=is_last, counts=counts)
            return WrittenRange(part, written, counts)
    except (BridgeError, OSError, MemoryError):
        return None


def join_ranges(
    lake: LakeTarget, split: Split, parts: Sequence[WrittenRange | None], options: ImportOptions
) -> LogImport:
    """Return the outcome of a log from its ranges. Import it as a whole if a range is missing."""
    sound = [part for part in parts if part is not None]
    try:
        joined = _joined(lake, split, sound, options) if len(sound) == len(parts) else None
    except (BridgeError, OSError):
        joined = None
    return joined or import_log(lake, split.piece, options)


def _joined(
    lake: LakeTarget, split: Split, parts: Sequence[WrittenRange], options: ImportOptions
) -> LogImport | None:
    importer = _ranges_of(split.engine)
    assert importer is not None
    target = split.target(lake, options)
    with on_this_machine(split.piece) as path, scratch_folder("aigo-lake-") as folder:
        if digest_of(path, None) != split.digest:
            return None
        log = folder / "frame.tasklog.json"
        report = importer.import_frame(path, log, options, [part.range for part in parts])
        counts: dict[int | None, SampleCounts] = {}
        for part in parts:
            for run, of_run in part.counts.items():
                counts.setdefault(run, SampleCounts()).merge(of_run)
        result = write_frame(target, log, ranges=[part.written for part in parts], counts=counts)
    return log_import(lake, split.piece, split.digest, target.name, report, [result])
