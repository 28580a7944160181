"""Export of tasks as files for an engine's own tool, and of results as logs for the engine's own viewer.

The core writes the common parts (task files, rows, a manifest, names and literals of generated Python). An
adapter writes the file that its engine loads and declares this as a capability of the engine.
"""

from __future__ import annotations

import difflib

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import LogExporter, TaskExporter
from aigo_bridge.engine.formats import format_named, formats, result_exports
from aigo_bridge.engine.registry import engine_class, engine_names, load_engine, required
from aigo_bridge.errors import UsageError
from aigo_bridge.exporting.native import InexactExportError, refuse_inexact

__all__ = [
    "EVIDENCE",
    "LOG_SUFFIX",
    "InexactExportError",
    "check_target",
    "log_exporter",
    "refuse_inexact",
    "targets",
    "task_exporter",
]

EVIDENCE = "aigo"
"""`--to aigo` exports results as a folder for the AI GO platform."""

LOG_SUFFIX = "-log"
"""`--to inspect` exports a task, `--to inspect-log` a result."""


def targets() -> list[str]:
    """Return the valid values of `--to`."""
    names: list[str] = []
    for name in engine_names():
        names += [name, f"{name}{LOG_SUFFIX}"]
    task_formats = [name for name, row in formats().items() if row.task_export is not None]
    return [*names, EVIDENCE, *task_formats, *result_exports()]


def check_target(target: str) -> None:
    """Check that a target exists.

    Raises:
        UsageError: the target is unknown; the message lists the known ones.
    """
    names = targets()
    if target not in names:
        near = difflib.get_close_matches(target, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(names) or 'none'}"
        raise UsageError(f"--to: found {target!r}; {hint}", code=Code.UNKNOWN_CHOICE)


def task_exporter(engine: str) -> TaskExporter:
    """Return the exporter of tasks to an engine or format.

    Raises:
        UsageError: the engine is unknown, or does not support task export.
        MissingEngineError: its framework is not installed.
    """
    row = format_named(engine)
    if row is not None and row.task_export is not None:
        return row.task_export()
    # Check the capability before loading the engine, so that users do not install an engine for an
    # unsupported export.
    load = required(
        engine_class(engine).capabilities.task_export, f"engine {engine!r} cannot be given tasks as files"
    )
    load_engine(engine)
    return load()


def log_exporter(target: str) -> LogExporter:
    """Return the exporter of results for a target such as `inspect-log`.

    Raises:
        UsageError: the engine is unknown, or does not support log export.
        MissingEngineError: its framework is not installed.
    """
    engine = target.removesuffix(LOG_SUFFIX)
    load = required(
        engine_class(engine).capabilities.log_export,
        f"results cannot be written as logs of engine {engine!r}",
    )
    load_engine(engine)
    return load()
