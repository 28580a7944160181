"""A large log into a lake by ranges of its samples, each imported by any process, and committed as one: in
the lake it is there once, and whole.

Where it is cut depends on the log alone, so that a second try writes the same files. Each process looks at
the log itself; one in a storage is copied by each.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.lake.manifest import DataFile, load_state
from aigo_bridge.lake.pieces import Piece
from aigo_bridge.lake.single_logs import (
    KNOWN,
    commit,
    digest_of,
    import_pieces,
    imported,
    is_known,
    kind_of,
    on_this_machine,
    run_id_of,
    store_of,
)
from aigo_bridge.lake.writing import write_frame, write_samples
from aigo_bridge.tables.rows import SampleCounts

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import LogRange, RangeImporter

LARGE, RANGE_BYTES = 32 << 20, 8 << 20
"""Bytes of a log from which it is cut, and of a range, about."""
MOST_RANGES = 16
"""Of one log: each process that takes one reads the log's directory, and copies it from a storage."""


@dataclass(frozen=True)
class Sizes:
    """What counts as a large log, and how it is cut: said by the driver, whatever process does it."""

    large: int
    """Bytes of a log from which it is cut."""
    range_bytes: int
    """Bytes of a range, about."""


def sizes() -> Sizes:
    """Those of this process."""
    return Sizes(LARGE, RANGE_BYTES)


@dataclass(frozen=True)
class Split:
    """A log that is imported by ranges."""

    piece: Piece
    digest: str
    engine: str
    run_id: str
    ends: tuple[int, ...]
    """Number of samples up to the end of each range."""
    finished_only: bool
    number: int
    """Of the lake's newest compaction when the import began."""

    @property
    def key(self) -> str:
        """Of its result."""
        return f"{self.digest[:32]}-0"

    def file_key(self, number: int) -> str:
        """Of the files of a range; those of one key are of one result."""
        return f"{self.key}.{number:04d}"


@dataclass(frozen=True)
class Part:
    """A range that is in the lake, and not yet committed."""

    range: LogRange
    files: tuple[DataFile, ...]
    counts: dict[int | None, SampleCounts]


def import_or_split(
    lake: str,
    pieces: Sequence[Piece],
    options: ImportOptions,
    finished_only: bool,
    number: int,
    limits: Sizes,
) -> list[ImportReport | Split]:
    """Import files as `import_pieces` does; of a large log the ranges to import it by."""
    if len(pieces) == 1 and pieces[0].size >= limits.large:
        try:
            with on_this_machine(pieces[0]) as path:
                split = _split(lake, pieces[0], path, options, finished_only, number, limits.range_bytes)
        except (BridgeError, OSError):
            split = None  # told by the import as a whole
        if split is not None:
            return [split]
    return [*import_pieces(lake, pieces, options, finished_only, number)]


def _split(
    lake: str,
    piece: Piece,
    path: Path,
    options: ImportOptions,
    finished_only: bool,
    number: int,
    range_bytes: int,
) -> Split | ImportReport | None:
    kind = kind_of(piece, path)
    ranges = None if kind is None else _ranges_of(kind[0])
    if kind is None or ranges is None:
        return None
    digest = digest_of(path, None)
    if is_known(store_of(lake), digest, number):
        return ImportReport(piece.name, status=KNOWN)
    samples = ranges.count(path, options)
    if samples is None or samples < 2:
        return None
    count = min(MOST_RANGES, samples, math.ceil(path.stat().st_size / range_bytes))
    ends = tuple(samples * one // count for one in range(1, count + 1))
    run_id = run_id_of(kind[0], path, digest)
    return Split(piece, digest, kind[0], run_id, ends, finished_only, number)


def _ranges_of(engine: str) -> RangeImporter | None:
    from aigo_bridge.engine.registry import engine_class, engine_names

    row = engine_class(engine).capabilities.log_ranges if engine in engine_names() else None
    return None if row is None else row()


def import_range(lake: str, split: Split, number: int, options: ImportOptions) -> Part | None:
    """Import a range; `None`: the log is to be imported as a whole, which then says why."""
    first, end = (split.ends[number - 1] if number else 0), split.ends[number]
    importer = _ranges_of(split.engine)
    assert importer is not None
    try:
        with on_this_machine(split.piece) as path, tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
            if digest_of(path, None) != split.digest:
                return None
            log = Path(folder, "range.tasklog.json")
            part = importer.import_range(path, log, options, first, end)
            if part is None:
                return None
            name = options.redaction().text(split.piece.name)
            counts: dict[int | None, SampleCounts] = {}
            files = write_samples(
                store_of(lake), log, name=name, key=split.key, file_key=split.file_key(number),
                run_id=split.run_id, first=first, is_last=end == split.ends[-1], counts=counts,
            )  # fmt: skip
            return Part(part, files, counts)
    except (BridgeError, OSError, MemoryError):
        return None


def join_ranges(
    lake: str, split: Split, parts: Sequence[Part | None], options: ImportOptions
) -> list[ImportReport]:
    """Commit a log whose ranges are there; or import it as a whole, where one of them cannot be."""
    sound = [part for part in parts if part is not None]
    report: ImportReport | None = None
    try:
        if len(sound) == len(parts):
            report = _joined(lake, split, sound, options)
    except (BridgeError, OSError):
        report = None
    if report is None:
        report = imported(lake, split.piece, options, split.finished_only, split.number)
        _remove_files(lake, sound)
    return [report]


def _remove_files(lake: str, parts: Sequence[Part]) -> None:
    """Remove files that no commit names, for readers that do not ask the manifest."""
    names = load_state(store_of(lake)).files
    for file in (file for part in parts for file in part.files):
        if file.name not in names:
            store_of(lake).remove(file.name)


def _joined(lake: str, split: Split, parts: Sequence[Part], options: ImportOptions) -> ImportReport | None:
    store, importer = store_of(lake), _ranges_of(split.engine)
    assert importer is not None
    with on_this_machine(split.piece) as path, tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
        if digest_of(path, None) != split.digest:
            return None
        log = Path(folder, "frame.tasklog.json")
        report = importer.import_frame(path, log, options, [part.range for part in parts])
        counts: dict[int | None, SampleCounts] = {}
        for part in parts:
            for run, of_run in part.counts.items():
                counts.setdefault(run, SampleCounts()).merge(of_run)
        name = options.redaction().text(split.piece.name)
        files = tuple(file for part in parts for file in part.files)
        result = write_frame(
            store, log, name=name, key=split.key, run_id=split.run_id, samples=split.ends[-1], files=files,
            counts=counts,
        )  # fmt: skip
    return commit(store, split.piece, split.digest, name, report, [result])
