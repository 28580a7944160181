"""Import of logs into a lake by several processes.

The processes write data files. The driver commits them in batches and does not open logs itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_scale.lake.commits import commit_logs, complete, load_state, remove_superseded
from aigo_scale.lake.files import LakeFiles
from aigo_scale.lake.pieces import LogCandidate, not_known, together
from aigo_scale.lake.ranges import Split, WrittenRange, import_or_split, import_range, join_ranges, sizes
from aigo_scale.lake.single_logs import KNOWN, NO_LOG, UNFINISHED, LakeTarget, LogImport, failed_piece
from aigo_scale.lake.tables import make_lake, require_packages

HandOut = Callable[[Callable[..., Any], Sequence[tuple[object, ...]], int], Iterator[Any]]
"""Function that makes calls in several processes and yields the results in order. A result is `MemoryError`
if the process was killed. Examples are `process.pool.each_in_processes` and a cluster."""
COMMIT_SECONDS, COMMIT_LOGS = 10.0, 1000
"""Seconds between two commits, and maximum number of logs in a commit."""


@dataclass(frozen=True)
class ImportTotals:
    """Totals of an import."""

    imported: int = 0
    """Number of logs that are now in the lake, including salvaged ones."""
    known: int = 0
    unfinished: int = 0
    no_logs: int = 0
    failed: int = 0
    """Number of unreadable logs."""
    worst: ExitCode = ExitCode.DONE

    def with_import(self, one: LogImport) -> ImportTotals:
        """Return the totals after one more log."""
        tally = replace(self, worst=max(self.worst, one.report.exit_code))
        match one.report.status:
            case _ if one.entry is not None:
                return replace(tally, imported=self.imported + 1)
            case s if s == KNOWN:
                return replace(tally, known=self.known + 1)
            case s if s == UNFINISHED:
                return replace(tally, unfinished=self.unfinished + 1)
            case s if s == NO_LOG:
                return replace(tally, no_logs=self.no_logs + 1)
            case _:
                return replace(tally, failed=self.failed + 1)


class _Commits:
    """Outcomes of logs in order. They are committed in batches and then reported."""

    def __init__(self, files: LakeFiles, tell: Callable[[ImportReport], None], known: int):
        self._files, self._tell = files, tell
        self._waiting: list[LogImport] = []
        self._begun = time.monotonic()
        self.tally = ImportTotals(known=known)

    def add(self, one: LogImport) -> None:
        """Add the outcome of a log, and commit if the batch is due."""
        self._waiting.append(one)
        if len(self._waiting) >= COMMIT_LOGS or time.monotonic() - self._begun >= COMMIT_SECONDS:
            self.commit()

    def commit(self) -> None:
        """Commit and report all waiting logs."""
        entries = [one.entry for one in self._waiting if one.entry is not None]
        added = commit_logs(self._files, entries) if entries else set()
        for one in self._waiting:
            if one.entry is not None and one.entry.digest not in added:
                # A copy of the log was imported first, by this or another import.
                one = LogImport(ImportReport(one.report.log, status=KNOWN))  # noqa: PLW2901
            elif one.entry is not None:
                added.remove(one.entry.digest)
            self._tell(one.report)
            self.tally = self.tally.with_import(one)
        self._waiting, self._begun = [], time.monotonic()


def import_into(
    lake: str,
    pieces: Sequence[LogCandidate],
    options: ImportOptions,
    tell: Callable[[ImportReport], None],
    *,
    finished_only: bool = False,
    hand_out: HandOut | None = None,
) -> ImportTotals:
    """Import files into a lake, which is created if necessary.

    Args:
        lake: folder or address.
        pieces: the files.
        options: import options; `jobs` is the number of processes.
        tell: callback for the report of each file, in order. Large logs come last.
        finished_only: whether to skip logs of runs in progress.
        hand_out: function that distributes the calls; `None`: processes of this machine.

    Raises:
        UsageError: the location is not a lake or belongs to another release, an option is wrong, or a
            package is missing.
        EvidenceError: the lake is damaged.
        StorageError: the storage is unreachable.
    """
    require_packages()
    options.redaction()
    files = make_lake(lake)
    complete(files)
    state = load_state(files)
    remove_superseded(files, state)  # completes the work of a killed import
    marks = {(entry.location, entry.mark) for entry in state.entries.values() if entry.mark}
    fresh = not_known(pieces, marks)
    jobs = options.jobs or os.cpu_count() or 1
    limits = sizes(sum(piece.size for piece in fresh), jobs)
    if not any(piece.size >= limits[0] for piece in fresh):
        jobs = max(1, min(jobs, len(fresh)))
    one = replace(options, jobs=1, output_format="json")
    target = LakeTarget(lake, state.log_files, finished_only)
    groups = together(fresh, jobs)
    calls = [(target, group, one, limits) for group in groups]
    commits = _Commits(files, tell, len(pieces) - len(fresh))
    splits: list[Split] = []
    for group, outcomes in zip(groups, _carried_out(import_or_split, calls, jobs, hand_out), strict=True):
        for outcome in [_ended(piece) for piece in group] if isinstance(outcomes, MemoryError) else outcomes:
            if isinstance(outcome, Split):
                splits.append(outcome)
            else:
                commits.add(outcome)
    for outcome in _by_ranges(target, splits, one, jobs, hand_out):
        commits.add(outcome)
    commits.commit()
    if commits.tally.imported:
        remove_superseded(files, load_state(files))
    return commits.tally


def _by_ranges(
    lake: LakeTarget, splits: Sequence[Split], options: ImportOptions, jobs: int, hand_out: HandOut | None
) -> Iterator[LogImport]:
    """Import all ranges of all large logs, then join the ranges of each log."""
    if not splits:
        return
    calls = [(lake, split, number, options) for split in splits for number in range(len(split.ends))]
    results = _carried_out(import_range, calls, jobs, hand_out)
    parts = iter([None if isinstance(part, MemoryError) else part for part in results])
    joins = []
    for split in splits:
        of_split: list[WrittenRange | None] = [next(parts) for _ in split.ends]
        joins.append((lake, split, of_split, options))
    for split, outcome in zip(splits, _carried_out(join_ranges, joins, jobs, hand_out), strict=True):
        yield _ended(split.piece) if isinstance(outcome, MemoryError) else outcome


def _ended(piece: LogCandidate) -> LogImport:
    return failed_piece(piece, "memory ran out (fewer processes need less: --jobs)")


def _carried_out(
    work: Callable[..., Any], calls: Sequence[tuple[object, ...]], jobs: int, hand_out: HandOut | None
) -> Iterator[Any]:
    if hand_out is None and jobs < 2:
        return (work(*call) for call in calls)
    if hand_out is None:
        from aigo_bridge.process.pool import each_in_processes

        return each_in_processes(work, calls, jobs)
    return hand_out(work, calls, jobs)
