"""Import of one log in any process. It writes data files and returns the entry for their commit."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.access.display_paths import SHOWN
from aigo_bridge.access.object_addresses import is_address, parse
from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, unmapped
from aigo_bridge.results.log_files import scratch_folder
from aigo_bridge.results.sources import is_result
from aigo_bridge.text.plurals import plural
from aigo_scale.lake.commits import LakeEntry, LakeResult, known_digests
from aigo_scale.lake.files import LakeFiles, files_at
from aigo_scale.lake.pieces import LogCandidate
from aigo_scale.lake.writing import Target, write_result

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import LogImporter

KNOWN, UNFINISHED, NO_LOG = "there already", "not finished", "no log"
"""Statuses of logs that were not imported."""
STARTED = "started"
_READ = 1 << 20


@dataclass(frozen=True)
class LogImport:
    """Outcome of one log: its report, and its entry if data files wait for their commit."""

    report: ImportReport
    entry: LakeEntry | None = None


@dataclass(frozen=True)
class LakeTarget:
    """Lake as the target of an import, for every process."""

    location: str
    log_files: tuple[str, ...]
    """Data files of the table `logs` when the import started."""
    finished_only: bool = False

    @property
    def files(self) -> LakeFiles:
        """Return the files of the lake."""
        return files_at(self.location)

    def knows(self, digest: str) -> bool:
        """Return whether the lake had a log when the import started."""
        return digest in _known(self.location, self.log_files)


@lru_cache(maxsize=2)
def _known(location: str, names: tuple[str, ...]) -> frozenset[str]:
    return known_digests(files_at(location), names)


def import_log(lake: LakeTarget, piece: LogCandidate, options: ImportOptions) -> LogImport:
    """Import a file. If it fails, the report contains the reason."""
    secrets = options.redaction()
    try:
        with on_this_machine(piece) as path:
            return _import(lake, piece, path, options)
    except MemoryError:
        reason = "memory ran out"
    except (BridgeError, OSError) as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001  # a failed log must not stop other imports
        reason = unmapped("the log", error)
    return failed_piece(piece, secrets.text(reason))


def failed_piece(piece: LogCandidate, reason: str) -> LogImport:
    """Return the outcome of a file that was not imported."""
    return LogImport(ImportReport(piece.name, exit_code=ExitCode.PARTIAL, reason=reason))


@contextmanager
def on_this_machine(piece: LogCandidate) -> Iterator[Path]:
    """Provide a local copy of a file under its own name."""
    if not is_address(piece.location):
        yield Path(piece.location)
        return
    from aigo_scale.storage.objects import take

    address = parse(piece.location)
    with tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
        path = Path(folder, address.name)
        try:
            take(address, path)
        except FileNotFoundError as error:
            raise EvidenceError(
                f"{piece.location}: the object no longer exists", code=Code.NOTHING_THERE
            ) from error
        SHOWN[str(path)] = piece.location  # the evidence also shows the address
        try:
            yield path
        finally:
            del SHOWN[str(path)]


def _import(lake: LakeTarget, piece: LogCandidate, path: Path, options: ImportOptions) -> LogImport:
    kind = kind_of(piece, path)
    if kind is None:
        code = ExitCode.WRONG_USE if piece.named else ExitCode.DONE
        return LogImport(
            ImportReport(piece.name, status=NO_LOG, exit_code=code, reason="not a known kind of log")
        )
    engine, importer = kind
    begun = _stamp(path, importer)
    digest = digest_of(path, importer)
    if lake.knows(digest):
        return LogImport(ImportReport(piece.name, status=KNOWN))
    with scratch_folder("aigo-lake-") as folder:
        report, logs = _evidence(piece, path, importer, options, folder)
        if report.status == STARTED and lake.finished_only:
            return LogImport(ImportReport(piece.name, status=UNFINISHED))
        if not logs:
            return LogImport(replace(report, log=piece.name, output=None, loss_file=None))
        if _stamp(path, importer) != begun:
            raise EvidenceError(
                "the log was changed while it was read: it will be imported next time",
                code=Code.CHANGED_SINCE,
            )
        run_id = run_id_of(engine, path, digest)
        name = options.redaction().text(piece.name)
        results = [
            write_result(Target(lake.files, name, f"{digest[:32]}-{number}", run_id), log)
            for number, log in enumerate(logs)
        ]
    return log_import(lake, piece, digest, name, report, results)


def log_import(
    lake: LakeTarget,
    piece: LogCandidate,
    digest: str,
    name: str,
    report: ImportReport,
    results: Sequence[LakeResult],
) -> LogImport:
    """Return the outcome of a log with written data files.

    Args:
        lake: the lake.
        piece: the log.
        digest: checksum of its content.
        name: its location without secrets.
        report: report of its import.
        results: its results.
    """
    entry = LakeEntry(
        digest=digest,
        location=name,
        mark=piece.mark,
        status=report.status or results[0].status,
        results=tuple(results),
        damage=len(report.damage),
        lost=report.loss.lost,
    )
    samples = sum(result.samples for result in results)
    failed = sum(result.failed for result in results)
    text = f"{plural(samples, 'sample')}{f', {failed} failed' if failed else ''} -> {lake.files}"
    report = replace(
        report,
        log=piece.name,
        output=None,
        loss_file=None,
        status=entry.status,
        samples=samples,
        failed=failed,
        notes=(text, *report.notes),
        facts=None,
    )
    return LogImport(report, entry)


def kind_of(piece: LogCandidate, path: Path) -> tuple[str, LogImporter | None] | None:
    """Return the engine and the importer of a log. For a result log both are empty."""
    if is_result(path.name):
        return "", None
    from aigo_bridge.engine.registry import log_importers

    importers, _ = log_importers(str(path))
    for engine, importer in importers.items():
        if not importer.files(str(path)):
            continue
        if is_address(piece.location) and len(importer.parts(str(path))) > 1:
            raise UsageError(
                "a log of several files can only be imported from a local folder: copy it to this machine",
                code=Code.WRONG_ADDRESS,
            )
        return engine, importer
    return None


def run_id_of(engine: str, path: Path, digest: str) -> str:
    """Return the run id of a log from its engine. The default is an id derived from the log."""
    ids = _run_ids(engine)
    return (None if ids is None else ids(path)) or f"log-{digest[:16]}"


@lru_cache(maxsize=8)
def _run_ids(engine: str) -> Callable[[Path], str | None] | None:
    from aigo_bridge.engine.registry import engine_class, engine_names

    return engine_class(engine).capabilities.run_id if engine in engine_names() else None


def digest_of(path: Path, importer: LogImporter | None) -> str:
    """Return the checksum of a log, over the content of its files."""
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
    """Return file properties that change if a log changes."""
    parts = [str(path)] if importer is None else importer.parts(str(path))
    stats = [Path(part).stat() for part in parts]
    return [(one.st_size, one.st_mtime_ns, one.st_ino) for one in stats]


def _evidence(
    piece: LogCandidate, path: Path, importer: LogImporter | None, options: ImportOptions, folder: Path
) -> tuple[ImportReport, list[Path]]:
    """Convert a log to result logs. If it has several evaluations, return the worst of their reports."""
    if importer is None:
        return ImportReport(piece.name), [path]
    reports: list[ImportReport] = []
    importer.import_logs([str(path)], folder, options, reports.append)
    if not reports:
        return failed_piece(piece, "no part of it could be read").report, []
    worst = max(reports, key=lambda report: report.exit_code)
    return worst, [report.output for report in reports if report.output is not None]
