"""Find engines by name. Adapters are entry points, so the core never imports one by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from aigo_bridge.engine import Engine, EngineLogs, Fidelity, Gap
from aigo_bridge.errors import MissingEngineError, UnsupportedPlanError, UsageError

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
        engine: Engine = _engine_class(name)()
        return engine


def load_logs(name: str) -> EngineLogs:
    """The logs of the engine called `name`, which need not be installed itself.

    Raises:
        UsageError: no adapter has that name.
        MissingEngineError: the adapter cannot be loaded.
    """
    with _loading(name):
        logs: EngineLogs = _engine_class(name).logs()
        return logs


def engines_with_logs(location: str) -> list[str]:
    """Names of the engines that have logs at a location.

    Raises:
        UsageError: none has; the message says what was looked for.
    """
    names = engine_names()
    found = [name for name in names if load_logs(name).at(location)]
    if found:
        return found
    if Path(location).is_file() and DEFAULT_ENGINE in names:
        # Whatever it is: the report says what is wrong with it.
        return [DEFAULT_ENGINE]
    expected = " or ".join(load_logs(name).expected for name in names)
    raise UsageError(f"no logs at {location!r} (expected {expected})")


def _engine_class(name: str) -> Any:
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
        raise MissingEngineError(
            f"engine {name!r} cannot be loaded: {error}; run: pip install 'aigo-bridge[{name}]'"
        ) from error


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
