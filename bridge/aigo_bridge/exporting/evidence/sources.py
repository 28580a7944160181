"""Sources of an export to AI GO: result logs, folders of them, lakes, and engine logs, which are imported."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.access.file_kinds import expanded, is_result_file
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import load_logs, logs_by_engine
from aigo_bridge.errors import Issue, UsageError
from aigo_bridge.hooks import load_hook
from aigo_bridge.importing.lakes import Lake
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.results.sources import EVALUATION, is_result, sources_of
from aigo_bridge.spec.base import KEY_PATTERN

_RUN_FILE = re.compile(r"\.ya?ml(#|$)")
"""Run files that refer to result logs, or `FILE#KEY` for one of their specifications."""


@dataclass(frozen=True)
class EvidenceSource:
    """Result to export."""

    path: Path
    """Path of the result log."""
    name: str
    """Name for messages."""
    key: str | None = None
    """Key of the specification in the run file of the result."""
    evaluation: Mapping[str, Any] | None = None
    """Summary of the evaluation that contains the result."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Parts of the engine log that the import dropped: kind → count."""


@dataclass
class EvidenceSources:
    """Results and problems of reading them."""

    results: list[EvidenceSource] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    """Locations without an exportable result."""
    lost: list[str] = field(default_factory=list)
    """Parts that are missing in all results: damaged samples, specifications without a result."""


def gather(locations: Sequence[str], scratch: Path, tell: Callable[[str], None]) -> EvidenceSources:
    """Find the results at some locations. Engine logs are imported into a scratch folder.

    Args:
        locations: result logs, engine logs, folders, patterns, evaluation summaries and lakes.
        scratch: empty folder that exists until the results are read.
        tell: called with a line for each skipped file.

    Raises:
        UsageError: a location does not contain anything to export.
    """
    found = EvidenceSources()
    logs: list[str] = []
    for pattern in locations:
        logs += [location for location in expanded(pattern) if not _add_results(location, scratch, found)]
    if logs:
        _import(logs, scratch / "imported", found, tell)
    return found


def _add_results(location: str, scratch: Path, found: EvidenceSources) -> bool:
    """Add the results at a location; return whether it contains results."""
    if "://" in location:
        return False
    path = Path(location)
    of_lake = load_hook("lake", Lake).results(location, scratch / f"lake-{len(found.results)}")
    if of_lake is not None:
        found.results += [EvidenceSource(log, log.name) for log in of_lake]
        return True
    if path.is_dir():
        return _add_folder(path, found)
    if path.name == EVALUATION or is_result(path.name) or _RUN_FILE.search(location):
        _add_sources(path, found)
        return True
    if path.is_file() and is_result_file(path):
        found.results.append(EvidenceSource(path, location))
        return True
    return False


def _add_folder(folder: Path, found: EvidenceSources) -> bool:
    try:
        _add_sources(folder, found)
    except UsageError as error:
        if error.code != Code.NOTHING_THERE:
            raise
        nested = list(_nested_results(folder))
        for place in nested:
            _add_sources(place, found)
        return bool(nested)
    return True


def _nested_results(folder: Path) -> Iterator[Path]:
    """Yield the evaluations and results in the subfolders of a folder without results."""
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if EVALUATION in files:
            folders.clear()
            yield Path(directory, EVALUATION)
        else:
            yield from (Path(directory, name) for name in sorted(files) if is_result(name))


def _add_sources(path: Path, found: EvidenceSources) -> None:
    for source in sources_of([path]):
        if source.path is None:
            found.lost.append(f"{path}: specification {source.name!r} has no result")
            continue
        # File names may contain characters that specification keys may not.
        key = source.name if re.fullmatch(KEY_PATTERN, source.name) else None
        found.results.append(EvidenceSource(source.path, str(source.path), key, source.evaluation))


def _import(
    logs: Sequence[str],
    scratch: Path,
    found: EvidenceSources,
    tell: Callable[[str], None],
) -> None:
    reports: list[ImportReport] = []
    for name, locations in logs_by_engine(logs, None, tell).items():
        load_logs(name).import_logs(locations, scratch / name, ImportOptions(events="all"), reports.append)
    for report in reports:
        if report.output is None:
            hint = "the export needs a log that can be imported: run `aigo-bridge import` for the reason"
            message = report.reason or "; ".join(map(str, report.damage)) or "cannot be imported"
            found.issues.append(
                Issue(message, file=report.log, hint=hint, code=report.code or Code.UNREADABLE_LOG)
            )
            continue
        found.lost += [f"{report.log}: {damage}" for damage in report.damage]
        found.results.append(EvidenceSource(report.output, report.log, dropped=dict(report.loss.dropped)))
