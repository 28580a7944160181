"""Export: a task as files that an engine's own tool runs, a result as a log that its own viewer shows.

The core packs what every engine needs (task files, rows, a manifest, names and literals of generated Python); an adapter writes the file
that its engine loads. An adapter has its two functions in a module `export` beside its engine, or as methods of the engine.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.engines import engine_class, engine_names, load_engine
from aigo_bridge.errors import UnsupportedPlanError, UsageError
from aigo_bridge.plan import TaskPlan

LOG_SUFFIX = "-log"
"""`--to inspect` exports a task, `--to inspect-log` a result."""


@dataclass(frozen=True)
class ExportOptions:
    """How a task is exported."""

    native: bool = False
    """Plain code of the engine without aigo-bridge, instead of a file that calls it."""
    force: bool = False
    """Replace what an earlier export wrote into the folder."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    folder: Path
    files: tuple[str, ...]
    """Paths in the folder; the first is the one that the engine loads."""
    commands: tuple[str, ...]
    """How to run it, from inside the folder."""
    notes: tuple[str, ...] = ()
    """What the user should know, e.g. which models have to be named."""


class TaskExporter(Protocol):
    """Exports tasks to one engine."""

    def export(self, plan: TaskPlan, out: Path, options: ExportOptions) -> Exported:
        """Write a plan as files that the engine's own tool runs, atomically.

        Raises:
            InexactExportError: a part of the task has no exact form there.
            UsageError: the folder is not free.
        """
        ...


class LogExporter(Protocol):
    """Exports results to one engine."""

    def export_log(self, result: Path, out: Path, *, force: bool) -> Path:
        """Write a result log as a log of the engine into the folder `out`; returns the file.

        Raises:
            EvidenceError: the file is no result log.
            UsageError: the log is there already (without `force`).
        """
        ...


class InexactExportError(UnsupportedPlanError):
    """A task has parts that the export cannot carry over exactly."""

    def __init__(self, message: str, parts: Sequence[Gap]):
        self.parts = tuple(parts)
        """Every part of the task, those with an exact form included."""
        super().__init__(message)


def refuse_inexact(key: str, parts: Sequence[Gap], what: str) -> None:
    """Refuse to export unless every part is exact.

    Raises:
        InexactExportError: its message lists all parts with their fidelity.
    """
    inexact = [part for part in parts if part.fidelity is not Fidelity.EXACT]
    if not inexact:
        return
    lines = [
        f"task {key!r} cannot be exported as {what}: {len(inexact)} of its {len(parts)} parts have no exact form there"
    ]
    width = max(len(part.part) for part in parts)
    for part in parts:
        reason = f": {part.reason}" if part.reason else ""
        hint = f" ({part.hint})" if part.hint else ""
        lines.append(f"  {part.part:{width}}  {part.fidelity.value}{reason}{hint}")
    lines.append("hint: without --native the whole task is exported; its file then needs aigo-bridge to run")
    raise InexactExportError("\n".join(lines), parts)


def targets() -> list[str]:
    """What `--to` understands."""
    found: list[str] = []
    for name in engine_names():
        found += [name, f"{name}{LOG_SUFFIX}"]
    return found


def check_target(target: str) -> None:
    """Refuse a target that no engine has.

    Raises:
        UsageError: with the known ones.
    """
    known = targets()
    if target not in known:
        near = difflib.get_close_matches(target, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known) or 'none'}"
        raise UsageError(f"--to: found {target!r}; {hint}")


def task_exporter(engine: str) -> TaskExporter:
    """What exports tasks to an engine.

    Raises:
        UsageError: there is no such engine, or it takes no tasks.
        MissingEngineError: its framework is not installed.
    """
    exporter: TaskExporter = _with(engine, "export", f"engine {engine!r} cannot be given tasks as files")
    return exporter


def log_exporter(target: str) -> LogExporter:
    """What exports results for a target such as `inspect-log`.

    Raises:
        UsageError: there is no such engine, or it has no logs that can be written.
        MissingEngineError: its framework is not installed.
    """
    engine = target.removesuffix(LOG_SUFFIX)
    exporter: LogExporter = _with(
        engine, "export_log", f"results cannot be written as logs of engine {engine!r}"
    )
    return exporter


def _with(name: str, function: str, otherwise: str) -> Any:
    """The engine, or its adapter's module `export`: whichever has the function."""
    # Looked for in the adapter first: what no engine does is no reason to install one.
    kind = engine_class(name)
    module = f"{kind.__module__.rpartition('.')[0]}.export"
    exporter = import_module(module) if find_spec(module) is not None else None
    if not any(callable(getattr(each, function, None)) for each in (kind, exporter)):
        raise UsageError(otherwise)
    engine: object = load_engine(name)
    return engine if callable(getattr(engine, function, None)) else exporter
