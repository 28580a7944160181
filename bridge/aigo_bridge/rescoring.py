"""Scoring stored outputs again: which log, and the plan's origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aigo_bridge.engine import Engine, ImportOptions
from aigo_bridge.engines import logs_at, refuse_other
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.importing.file_kinds import head_of, is_result_log
from aigo_bridge.importing.report import ImportReport
from aigo_bridge.plan import PlanOrigin

RESULT_SUFFIXES = (".tasklog.json", ".tasklog.json.gz", ".tasklog.json.zst")
"""How result logs are called here; of other files the content decides."""


def scored_again(origin: PlanOrigin, log: Path) -> PlanOrigin:
    """The origin of a plan that scores the outputs in a result log."""
    return replace(origin, stored=str(log.resolve()), num_samples=None, datasets={})


def stored_log(location: str, engine: Engine, folder: Path) -> Path:
    """The result log at a location; a log of the engine is imported to `folder` first.

    Raises:
        UsageError: there is no such log, or the location names several.
        EvidenceError: it cannot be imported whole.
    """
    path = Path(location)
    if path.name.endswith(RESULT_SUFFIXES):
        if not path.is_file():
            raise UsageError(f"there is no result log {location!r}")
        return path
    head = None if "://" in location else head_of(path)
    if head is not None and is_result_log(head):
        return path
    if not engine.logs().files(location):
        refuse_other(location)
        others = [name for name in logs_at(location) if name != engine.name]
        if others:
            raise UsageError(f"{location!r} is a log of {others[0]}: score it with --engine {others[0]}")
    reports: list[ImportReport] = []
    # Nothing is taken out: scorers have to see what was said.
    code = engine.import_logs([location], folder, ImportOptions(redact=False), reports.append)
    if len(reports) != 1:
        raise UsageError(f"{location!r} names {len(reports)} logs, expected one; name them one by one")
    report = reports[0]
    if report.output is None or code:
        raise EvidenceError(_reason(location, report.lines))
    return report.output


def _reason(location: str, lines: Sequence[str]) -> str:
    return (
        f"{location!r} cannot be imported whole, and a part of it would give other numbers: {'; '.join(lines)}"
        " (`aigo-bridge import` saves what there is)"
    )
