"""The import of logs into a lake: one piece per log, and of a large one one per range of samples, carried out
by any number of processes. Who hands out the pieces reads nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.lake.layout import MANIFEST, arrow_schema, make_lake
from aigo_bridge.lake.manifest import State, load_state
from aigo_bridge.lake.pieces import Piece, not_known, together
from aigo_bridge.lake.ranges import Part, Split, import_or_split, import_range, join_ranges, sizes
from aigo_bridge.lake.single_logs import KNOWN, NO_LOG, UNFINISHED, failed_piece
from aigo_bridge.lake.stores import Store

HandOut = Callable[[Callable[..., Any], Sequence[tuple[object, ...]], int], Iterator[Any]]
"""Carries out calls in several processes and gives their results in order, `MemoryError` for one whose
process was ended: `process.pool.each_in_processes`, or what reaches other machines.
"""


@dataclass(frozen=True)
class Tally:
    """What became of an import as a whole."""

    imported: int = 0
    known: int = 0
    unfinished: int = 0
    no_logs: int = 0
    worst: ExitCode = ExitCode.DONE

    def with_report(self, report: ImportReport) -> Tally:
        """After one more log."""
        worst = max(self.worst, report.exit_code)
        match report.status:
            case s if s == KNOWN:
                return replace(self, known=self.known + 1)
            case s if s == UNFINISHED:
                return replace(self, unfinished=self.unfinished + 1)
            case s if s == NO_LOG:
                return replace(self, no_logs=self.no_logs + 1, worst=worst)
            case _:
                return replace(self, imported=self.imported + bool(report.runs), worst=worst)


def import_into(
    lake: str,
    pieces: Sequence[Piece],
    options: ImportOptions,
    tell: Callable[[ImportReport], None],
    *,
    finished_only: bool = False,
    hand_out: HandOut | None = None,
) -> Tally:
    """Import files into a lake, which is made if need be.

    Args:
        lake: a folder, or an address.
        pieces: the files.
        options: how they are imported; `jobs` processes.
        tell: is told of each, in their order; of large logs at last.
        finished_only: leave logs of runs that go on.
        hand_out: carries out the calls; `None`: processes of this machine.

    Raises:
        UsageError: the lake is none, or of another release; an option is wrong; pyarrow is not installed.
        EvidenceError: its manifest is damaged.
        StorageError: it cannot be reached.
    """
    arrow_schema("results")  # what is missing is said once, and before anything is made
    options.redaction()
    store = make_lake(lake)
    state = load_state(store)
    marks = {(entry.location, entry.mark) for entry in state.entries.values() if entry.mark}
    fresh = not_known(pieces, marks)
    tally = Tally(known=len(pieces) - len(fresh))
    jobs = options.jobs or os.cpu_count() or 1
    limits = sizes()
    if not any(piece.size >= limits.large for piece in fresh):
        jobs = max(1, min(jobs, len(fresh)))
    one = replace(options, jobs=1, output_format="json")
    groups = together(fresh, jobs)
    work = [(lake, group, one, finished_only, state.number, limits) for group in groups]
    splits: list[Split] = []
    runs: list[tuple[str, ...]] = []
    for group, reports in zip(groups, _carried_out(import_or_split, work, jobs, hand_out), strict=True):
        for report in [_ended(piece) for piece in group] if isinstance(reports, MemoryError) else reports:
            if isinstance(report, Split):
                splits.append(report)
                continue
            tell(report)
            tally = tally.with_report(report)
            runs += [report.runs] if report.runs else []
    for report in _by_ranges(lake, splits, one, jobs, hand_out):
        tell(report)
        tally = tally.with_report(report)
        runs += [report.runs] if report.runs else []
    if tally.imported and not are_new(store, state, runs):
        remove_superseded(store, load_state(store))
    return tally


def _by_ranges(
    lake: str, splits: Sequence[Split], options: ImportOptions, jobs: int, hand_out: HandOut | None
) -> Iterator[ImportReport]:
    """Large logs: all ranges of all of them, then what commits each."""
    if not splits:
        return
    calls = [(lake, split, number, options) for split in splits for number in range(len(split.ends))]
    results = _carried_out(import_range, calls, jobs, hand_out)
    parts = iter([None if isinstance(part, MemoryError) else part for part in results])
    joins = []
    for split in splits:
        of_split: list[Part | None] = [next(parts) for _ in split.ends]
        joins.append((lake, split, of_split, options))
    for split, reports in zip(splits, _carried_out(join_ranges, joins, jobs, hand_out), strict=True):
        yield from [_ended(split.piece)] if isinstance(reports, MemoryError) else reports


def _ended(piece: Piece) -> ImportReport:
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


def are_new(store: Store, state: State, runs: Sequence[tuple[str, ...]]) -> bool:
    """Whether an import has superseded nothing, as its driver can tell without reading the entries anew: all
    runs are new, nothing was left over before, and nobody else has written meanwhile.

    Args:
        store: of the lake.
        state: before the import.
        runs: of each log that the import has committed.
    """
    names = [name for log in runs for name in log]
    before = {result.run_name for result in state.counting.values()}
    if len(set(names)) < len(names) or not before.isdisjoint(names):
        return False
    if any(result.files for result in state.superseded):
        return False
    entries = sum(
        name.startswith((f"{MANIFEST}/log-", f"{MANIFEST}/base-")) for name in store.names(MANIFEST)
    )
    return entries == bool(state.number) + len(state.uncompacted) + len(state.leftover) + len(runs)


def remove_superseded(store: Store, state: State) -> None:
    """Remove the files of results that improved logs have replaced, for readers that do not ask the manifest;
    those in compacted files go with the next compaction.
    """
    for result in state.superseded:
        for file in result.files:
            store.remove(file.name)
