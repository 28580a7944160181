"""Find engines by name. Adapters are entry points, so the core never imports one by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from aigo_bridge.engine import Engine, EngineLogs, Fidelity, Gap
from aigo_bridge.errors import MissingEngineError, UnsupportedPlanError, UsageError
from aigo_bridge.extras import install_command
from aigo_bridge.importing.file_kinds import (
    IRREGULAR,
    head_of,
    other_file,
    skipped_files,
    skipped_lines,
)

ENTRY_POINT_GROUP = "aigo_bridge.engines"
DEFAULT_ENGINE = "inspect"


def engine_names() -> list[str]:
    """Names of all engines that are registered, installed or not."""
    return sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)})


def load_engine(name: str) -> Engine:
    """The engine called `name`; its adapter is imported here and not earlier.

    Raises:
        UsageError: no adapter has that name.
        MissingEngineError: the adapter is there, its framework is not.
    """
    with _loading(name):
        engine: Engine = engine_class(name)()
        return engine


def load_logs(name: str) -> EngineLogs:
    """The logs of the engine called `name`, which need not be installed itself.

    Raises:
        UsageError: no adapter has that name.
        MissingEngineError: the adapter cannot be loaded.
    """
    with _loading(name):
        logs: EngineLogs = engine_class(name).logs()
        return logs


def logs_at(location: str) -> dict[str, list[str]]:
    """Engine → its logs at a location: a file, a folder, a pattern or a URL.

    An engine that cannot be loaded has none: that is its own matter as long as another one has some.

    Raises:
        UsageError: there are none; the message says what there is instead, or what was looked for.
        MissingEngineError: there are none of the engines that can be loaded, and one cannot.
    """
    engines, missing = dict[str, EngineLogs](), list[MissingEngineError]()
    for name in engine_names():
        try:
            engines[name] = load_logs(name)
        except MissingEngineError as error:
            missing.append(error)
    logs = {name: list(engine.files(location)) for name, engine in engines.items()}
    logs = {name: files for name, files in logs.items() if files}
    if logs:
        return logs
    refuse_other(location)
    path = Path(location)
    if path.is_file() and DEFAULT_ENGINE in engines:
        # Whatever it is: the report says what is wrong with it.
        return {DEFAULT_ENGINE: [location]}
    if missing and (path.exists() or "://" in location):
        raise MissingEngineError(f"no logs at {location!r} that can be read here: {missing[0]}")
    expected = " or ".join(engine.expected for engine in engines.values())
    raise UsageError(f"no logs at {location!r}{_instead(path)} (expected {expected})")


def refuse_other(location: str) -> None:
    """Refuse a file that is surely no log of an engine; folders, URLs and what is not there are left to those who look.

    Raises:
        UsageError: it is none; the message says what it is, and what takes it.
    """
    path = Path(location)
    try:
        if not path.exists() or path.is_dir():
            return
    except (OSError, ValueError):
        return
    head = head_of(path)
    if head is not None:
        other = other_file(head, path.name)
    else:
        other = None if path.is_file() else IRREGULAR
    if other is not None:
        raise UsageError(f"{location!r} is no log of an engine: it is {other}")


def _instead(path: Path) -> str:
    """What is in a folder without logs."""
    if not path.is_dir():
        return ""
    skipped = skipped_files(path, ())
    if skipped:
        return "".join(f"\n  {line}" for line in skipped_lines(skipped))
    return ": the folder has no such files" if any(path.iterdir()) else ": the folder is empty"


def engine_class(name: str) -> Any:
    """The class of the engine called `name`: its adapter, of which the framework may be missing.

    Raises:
        UsageError: no adapter has that name.
    """
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return entry.load()
    known = ", ".join(engine_names()) or "none"
    raise UsageError(f"unknown engine {name!r}; known engines: {known}")


@contextmanager
def _loading(name: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        if isinstance(error, MissingEngineError):
            raise
        command = install_command(name)
        remedy = "" if command is None else f"; run: {command}"
        raise MissingEngineError(f"engine {name!r} cannot be loaded: {error}{remedy}") from error


def require_exact(gaps: Sequence[Gap], *, engine: str, allow_approximate: bool = False) -> list[Gap]:
    """Refuse what the engine cannot do; return the gaps that were allowed, to be recorded.

    Raises:
        UnsupportedPlanError: a gap is unsupported, or approximate and not allowed; the message lists all.
    """
    accepted = {Fidelity.EXACT} | ({Fidelity.APPROXIMATE} if allow_approximate else set())
    refused = [gap for gap in gaps if gap.fidelity not in accepted]
    if refused:
        lines = [f"engine {engine!r} cannot run this task as written: {len(refused)} gap(s)"]
        for gap in refused:
            hint = f" ({gap.hint})" if gap.hint else ""
            lines.append(f"  - {gap.part}: {gap.reason} [{gap.fidelity.value}]{hint}")
        raise UnsupportedPlanError("\n".join(lines))
    return [gap for gap in gaps if gap.fidelity is not Fidelity.EXACT]
