"""The import of logs into a lake: one piece per log, carried out by any number of processes.

A process writes a log's files under names made of the log's digest, and its entry after them: a second import
finds the entry, and one after a crash writes the same files again. Who hands out the pieces reads nothing.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, EvidenceError, MissingEngineError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, unmapped
from aigo_bridge.lake.layout import entry_name, make_lake, open_lake
from aigo_bridge.lake.manifest import Entry, Result, State, commit_log, load_state
from aigo_bridge.lake.pieces import Piece, not_known, together
from aigo_bridge.lake.stores import Store
from aigo_bridge.lake.writing import write_result
from aigo_bridge.report.sources import is_result
from aigo_bridge.storage.addresses import is_address, parse
from aigo_bridge.storage.mirrored import named

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import LogImporter

KNOWN, UNFINISHED, NO_LOG = "there already", "not finished", "no log"
"""Statuses of logs that were not imported."""
HandOut = Callable[
    [Callable[..., list[ImportReport]], Sequence[tuple[object, ...]], int],
    Iterator[list[ImportReport] | MemoryError],
]
"""Carries out calls in several processes and gives their results in order: `process.pool.each_in_processes`,
or what reaches other machines.
"""
_STARTED = "started"
_READ = 1 << 20


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
                return replace(self, imported=self.imported + (not report.reason), worst=worst)


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
        tell: is told of each, in their order.
        finished_only: leave logs of runs that go on.
        hand_out: carries out the calls; `None`: processes of this machine.

    Raises:
        UsageError: the lake is none, or of another release; an option is wrong; pyarrow is not installed.
        EvidenceError: its manifest is damaged.
        StorageError: it cannot be reached.
    """
    from aigo_bridge.lake.layout import arrow_schema

    arrow_schema("results")  # what is missing is said once, and before anything is made
    options.redaction()
    store = make_lake(lake)
    state = load_state(store)
    marks = {(entry.location, entry.mark) for entry in state.entries.values() if entry.mark}
    fresh = not_known(pieces, marks)
    tally = Tally(known=len(pieces) - len(fresh))
    jobs = max(1, min(options.jobs or os.cpu_count() or 1, len(fresh)))
    one = replace(options, jobs=1, output_format="json")
    groups = together(fresh, jobs)
    work = [(lake, group, one, finished_only, state.number) for group in groups]
    for group, reports in zip(groups, _carried_out(work, jobs, hand_out), strict=True):
        ended = "memory ran out (fewer processes need less: --jobs)"
        for report in (
            [_failed(piece, ended) for piece in group] if isinstance(reports, MemoryError) else reports
        ):
            tell(report)
            tally = tally.with_report(report)
    if tally.imported:
        remove_superseded(store, load_state(store))
    return tally


def _carried_out(
    work: Sequence[tuple[object, ...]], jobs: int, hand_out: HandOut | None
) -> Iterator[list[ImportReport] | MemoryError]:
    if hand_out is None and jobs < 2:
        return (import_pieces(*call) for call in work)  # type: ignore[arg-type]  # as it was made above
    if hand_out is None:
        from aigo_bridge.process.pool import each_in_processes

        return each_in_processes(import_pieces, work, jobs)
    return hand_out(import_pieces, work, jobs)


def remove_superseded(store: Store, state: State) -> None:
    """Remove the files of results that improved logs have replaced, for readers that do not ask the manifest;
    those in compacted files go with the next compaction.
    """
    for result in state.superseded:
        for file in result.files:
            store.remove(file.name)


# In a process that imports


def import_pieces(
    lake: str, pieces: Sequence[Piece], options: ImportOptions, finished_only: bool, number: int
) -> list[ImportReport]:
    """Import files, one after the other; whatever is wrong with one, it takes no other with it.

    `number` is that of the lake's newest compaction when the import began.
    """
    return [_imported(lake, piece, options, finished_only, number) for piece in pieces]


def _imported(
    lake: str, piece: Piece, options: ImportOptions, finished_only: bool, number: int
) -> ImportReport:
    secrets = options.redaction()
    try:
        with _here(piece) as path:
            return _import(_store(lake), piece, path, options, finished_only, number)
    except MemoryError:
        reason = "memory ran out"
    except (BridgeError, OSError) as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  # as said
        reason = unmapped("the log", error)
    return _failed(piece, secrets.text(reason))


def _failed(piece: Piece, reason: str) -> ImportReport:
    return ImportReport(piece.location, exit_code=ExitCode.PARTIAL, reason=reason)


@lru_cache(maxsize=4)
def _store(lake: str) -> Store:
    return open_lake(lake)


@lru_cache(maxsize=4)
def _compacted(lake: str, number: int) -> frozenset[str]:
    """Digests that had no entry of their own any more after a compaction."""
    state = load_state(_store(lake))
    return frozenset(state.entries) - state.uncompacted


@contextmanager
def _here(piece: Piece) -> Iterator[Path]:
    """A file on this machine, under its own name."""
    if not is_address(piece.location):
        yield Path(piece.location)
        return
    from aigo_bridge.storage.objects import take

    address = parse(piece.location)
    with tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
        path = Path(folder, address.name)
        try:
            take(address, path)
        except FileNotFoundError as error:
            raise EvidenceError(
                f"{piece.location}: there is no such object any more", code=Code.NOTHING_THERE
            ) from error
        yield path


def _import(
    store: Store, piece: Piece, path: Path, options: ImportOptions, finished_only: bool, number: int
) -> ImportReport:
    kind = _kind(piece, path)
    if kind is None:
        code = ExitCode.WRONG_USE if piece.named else ExitCode.DONE
        return ImportReport(piece.location, status=NO_LOG, exit_code=code, reason="no log that is known")
    engine, importer = kind
    begun = _stamp(path, importer)
    digest = digest_of(path, importer)
    if store.exists(entry_name(digest)) or digest in _compacted(str(store), number):
        return ImportReport(piece.location, status=KNOWN)
    with tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
        report, logs = _evidence(piece, path, importer, options, Path(folder))
        if report.status == _STARTED and finished_only:
            return ImportReport(piece.location, status=UNFINISHED)
        if not logs:
            return replace(report, log=piece.location, output=None, loss_file=None)
        if _stamp(path, importer) != begun:
            raise EvidenceError(
                "the log was changed while it was read: it is imported the next time", code=Code.CHANGED_SINCE
            )
        ids = _run_ids(engine)
        run_id = (None if ids is None else ids(path)) or f"log-{digest[:16]}"
        name = options.redaction().text(piece.location)
        results = [
            write_result(store, log, name=name, key=f"{digest[:32]}-{number}", run_id=run_id)
            for number, log in enumerate(logs)
        ]
    entry = Entry(
        digest=digest,
        location=name,
        mark=piece.mark,
        status=report.status,
        results=tuple(results),
        damage=tuple(map(str, report.damage)),
        lost=report.loss.lost,
    )
    commit_log(store, entry)
    return _told(report, piece, results, store)


def _kind(piece: Piece, path: Path) -> tuple[str, LogImporter | None] | None:
    """Whose log a file is, and what imports it; of a result log nobody's."""
    if is_result(path.name):
        return "", None
    for engine, importer in _importers().items():
        if not importer.files(str(path)):
            continue
        if is_address(piece.location) and len(importer.parts(str(path))) > 1:
            raise UsageError(
                "a log of several files is imported from a folder of this machine: copy it here",
                code=Code.WRONG_ADDRESS,
            )
        return engine, importer
    return None


@lru_cache(maxsize=1)
def _importers() -> dict[str, LogImporter]:
    """Engine, or format → what imports its logs; those that cannot be loaded here are left out."""
    from aigo_bridge.engine.registry import engine_names, load_logs
    from aigo_bridge.interchange import foreign_files

    importers: dict[str, LogImporter] = {}
    for name in engine_names():
        with suppress(MissingEngineError, UsageError):
            importers[name] = load_logs(name)
    return importers | foreign_files()


@lru_cache(maxsize=8)
def _run_ids(engine: str) -> Callable[[Path], str | None] | None:
    from aigo_bridge.engine.registry import engine_class, engine_names

    return engine_class(engine).capabilities.run_id if engine in engine_names() else None


def digest_of(path: Path, importer: LogImporter | None) -> str:
    """Digest of a log: of the content of its files."""
    parts = [str(path)] if importer is None else list(importer.parts(str(path)))
    digest = hashlib.sha256()
    for part in parts:
        if len(parts) > 1:
            digest.update(f"{Path(part).name}\0{Path(part).stat().st_size}\0".encode())
        with Path(part).open("rb") as file:
            while block := file.read(_READ):
                digest.update(block)
    return digest.hexdigest()


def _stamp(path: Path, importer: LogImporter | None) -> list[tuple[int, int, int]]:
    """Changes when a log does."""
    parts = [str(path)] if importer is None else importer.parts(str(path))
    stats = [Path(part).stat() for part in parts]
    return [(one.st_size, one.st_mtime_ns, one.st_ino) for one in stats]


def _evidence(
    piece: Piece, path: Path, importer: LogImporter | None, options: ImportOptions, folder: Path
) -> tuple[ImportReport, list[Path]]:
    """A log as result logs; of one with several evaluations the worst report stands for all."""
    if importer is None:
        return ImportReport(piece.location), [path]
    reports: list[ImportReport] = []
    importer.import_logs([str(path)], folder, options, reports.append)
    if not reports:
        return _failed(piece, "nothing of it could be read"), []
    worst = max(reports, key=lambda report: report.exit_code)
    return worst, [report.output for report in reports if report.output is not None]


def _told(report: ImportReport, piece: Piece, results: Sequence[Result], store: Store) -> ImportReport:
    samples = sum(result.samples for result in results)
    failed = sum(result.failed for result in results)
    words = f"{samples} samples{f', {failed} failed' if failed else ''} -> {named(str(store))}"
    return replace(
        report,
        log=piece.location,
        output=None,
        loss_file=None,
        status=report.status or results[0].status,
        samples=samples,
        failed=failed,
        notes=(words, *report.notes),
        facts=None,
    )
