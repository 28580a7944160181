"""Lookup of engines by name. Adapters are entry points, so the core never imports one directly."""

from __future__ import annotations

import difflib
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from aigo_bridge.access.existence import is_file, is_folder, is_present
from aigo_bridge.access.file_kinds import (
    IRREGULAR,
    Head,
    expanded,
    head_of,
    other_file,
    skipped_files,
    skipped_lines,
)
from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkRunner, Benchmarks
from aigo_bridge.engine.engine import Check, Engine, LogImporter
from aigo_bridge.engine.formats import format_files, format_named, formats
from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import MissingEngineError, UnsupportedPlanError, UsageError
from aigo_bridge.plugins import Plugin, PluginError, all_plugins, entry_points
from aigo_bridge.process import install_command
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "aigo_bridge.engines"
DEFAULT_ENGINE = "inspect"
EngineName = Literal["inspect", "lighteval"]
"""Engines of this project. Other packages may add more."""

T = TypeVar("T")


def engine_names() -> list[str]:
    """Return the names of all registered engines, with or without their frameworks."""
    return sorted({entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)})


def load_engine(name: str) -> Engine:
    """Return the engine called `name`. Its adapter is imported here and not earlier.

    Raises:
        UsageError: the adapter does not exist.
        MissingEngineError: the framework of the adapter is not installed.
    """
    with _loading(name):
        return engine_class(name)()


def load_logs(name: str) -> LogImporter:
    """Return the importer of an engine's logs or a format's files. The engine itself need not be installed.

    Raises:
        UsageError: the name is unknown, or does not have an importer.
        MissingEngineError: the adapter cannot be loaded.
    """
    row = format_named(name)
    if row is not None:
        return required(row.logs, f"files of {row.title} cannot be imported")()
    with _loading(name):
        return required(engine_class(name).capabilities.logs, f"logs of engine {name!r} cannot be imported")()


def native_files(name: str, log: Path) -> Sequence[Path]:
    """Return the local files of an engine log or of a result in a format, starting with the file that names
    it.

    Raises:
        UsageError: the name is unknown.
    """
    return format_files(name, log) if name in formats() else engine_class(name).capabilities.log_files(log)


def load_benchmarks(name: str) -> BenchmarkRunner:
    """Return the benchmarks of an engine.

    Raises:
        UsageError: the engine is unknown, or does not have its own benchmarks.
        MissingEngineError: its framework is not installed.
    """
    benchmarks = benchmarks_of(name)
    load_engine(name)
    return benchmarks.load()


def benchmarks_of(name: str) -> Benchmarks:
    """Return the capabilities of an engine's benchmarks. Its framework need not be installed.

    Raises:
        UsageError: the engine is unknown, or does not have its own benchmarks.
    """
    with _loading(name):
        return required(engine_class(name).capabilities.benchmarks, f"engine {name!r} has no benchmarks")


def refuse_local_rows(name: str, *files: Path | None) -> None:
    """Raise an error for options that the engine's benchmarks do not support.

    Raises:
        UsageError: such an option was given.
    """
    if any(files) and not benchmarks_of(name).takes_local_rows:
        raise UsageError(f"--data-dir, --custom-tasks: not for benchmarks of {name}", code=Code.OPTIONS_APART)


def required(capability: T | None, otherwise: str) -> T:
    """Return a capability that must be supported.

    Raises:
        UsageError: the engine does not support it; the message is `otherwise`.
    """
    if capability is None:
        raise UsageError(otherwise, code=Code.ENGINE_GAP)
    return capability


def split_name(task: str) -> tuple[str, str] | None:
    """Split `inspect:arc_easy` into engine and benchmark; `None` for other texts, e.g. paths with a colon."""
    engine, colon, name = task.partition(":")
    return (engine, name) if colon and engine in engine_names() else None


def logs_at(location: str) -> dict[str, list[str]]:
    """Return engine or format → its logs at a location: a file, a folder, a pattern or a URL.

    An importer is loaded only if the first bytes of a local file match. An engine that cannot be loaded is
    skipped, which is an error only if the other importers do not find a log.

    Raises:
        UsageError: no logs were found; the message describes the file, or the expected files.
        MissingEngineError: no logs were found, and an engine could not be loaded.
    """
    importers, _ = log_importers(location)
    logs = {name: list(importer.files(location)) for name, importer in importers.items()}
    logs = {name: files for name, files in logs.items() if files}
    if logs:
        return logs
    refuse_other(location)
    engines, missing = log_importers()
    path = Path(location)
    if is_file(path) and DEFAULT_ENGINE in engines:
        # The import report describes any problem of the file.
        return {DEFAULT_ENGINE: [location]}
    if missing and (is_present(path) or "://" in location):
        raise MissingEngineError(f"no logs at {location!r} that can be read here: {missing[0]}")
    expected = " or ".join(engine.expected for engine in engines.values())
    raise UsageError(f"no logs at {location!r}{_instead(path)} (expected {expected})", code=Code.NO_LOGS)


def log_importers(
    location: str | None = None,
) -> tuple[dict[str, LogImporter], list[MissingEngineError]]:
    """Return the importers of engines and formats by name, and the engines that cannot be loaded. With a
    `location`, importers that do not read this local file are left out.
    """
    head = None if location is None or "://" in location else head_of(location)
    file_name = "" if location is None else Path(location).name
    importers, missing = dict[str, LogImporter](), list[MissingEngineError]()
    for name in engine_names():
        try:
            with _loading(name):
                capabilities = engine_class(name).capabilities
                if capabilities.logs is not None and _may_read(capabilities.is_log, head, file_name):
                    importers[name] = capabilities.logs()
        except MissingEngineError as error:
            missing.append(error)
    for name, row in formats().items():
        if row.logs is not None and _may_read(row.is_log, head, file_name):
            importers[name] = row.logs()
    return importers, missing


def _may_read(is_log: Callable[[Head, str], bool] | None, head: Head | None, name: str) -> bool:
    return head is None or is_log is None or is_log(head, name)


def logs_by_engine(
    patterns: Sequence[str], engine: str | None = None, tell: Callable[[str], None] | None = None
) -> dict[str, list[str]]:
    """Return engine or format → the locations that contain its logs.

    The files that match a pattern are checked one by one. Files that are not logs are skipped.

    Args:
        patterns: files, folders, patterns or URLs.
        engine: engine of the logs; `None` to detect it from the files.
        tell: called with one line for each skipped file.

    Raises:
        UsageError: a pattern does not match any log, or the engine is unknown.
        MissingEngineError: as for `logs_at`.
    """
    if engine is not None:
        for location in patterns:
            if not load_logs(engine).files(location):
                refuse_other(location)  # The engine reports all other problems.
        return {engine: list(patterns)}
    tell = tell or (lambda _line: None)
    by_engine: dict[str, list[str]] = {}
    for pattern in patterns:
        refused: list[UsageError] = []
        locations = expanded(pattern)
        for location in locations:
            try:
                logs = logs_at(location)
            except UsageError as error:
                refused.append(error)
                continue
            for name in logs:
                by_engine.setdefault(name, []).append(location)
            if is_folder(location):
                taken = [path for files in logs.values() for path in files]
                for line in skipped_lines(skipped_files(Path(location), taken)):
                    tell(line)
        if len(refused) == len(locations):
            raise refused[-1]
        for refusal in refused:
            tell(f"skipped: {refusal}")
    return by_engine


def refuse_other(location: str) -> None:
    """Raise an error for a file that is certainly not an engine log. Folders, URLs and missing files are left
    to the caller.

    Raises:
        UsageError: the file is not a log; the message describes it and names the command for it.
    """
    path = Path(location)
    try:
        if not is_present(path) or is_folder(path):
            return
    except (OSError, ValueError):
        return
    head = head_of(path)
    if head is not None:
        kind = other_file(head, path.name)
    else:
        kind = None if is_file(path) else IRREGULAR
    if kind is not None:
        raise UsageError(f"{location!r} is not an engine log: it is {kind}", code=Code.NOT_A_LOG)


def _instead(path: Path) -> str:
    """Return a description of a folder without logs."""
    if not is_folder(path):
        return ""
    skipped = skipped_files(path, ())
    if skipped:
        return "".join(f"\n  {line}" for line in skipped_lines(skipped))
    return ": the folder contains only other files" if any(path.iterdir()) else ": the folder is empty"


def engine_class(name: str) -> type[Engine]:
    """Return the class of the engine called `name`: its adapter, whose framework may be missing.

    Raises:
        UsageError: the adapter does not exist.
    """
    names = engine_names()
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name == name:
            engine: type[Engine] = entry.load()
            return engine
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise UsageError(
        f"unknown engine {name!r}; known engines: {', '.join(names) or 'none'}{hint}",
        code=Code.UNKNOWN_CHOICE,
    )


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
    """Raise an error for gaps that the engine cannot run; return the allowed gaps, which must be recorded.

    Raises:
        UnsupportedPlanError: a gap is unsupported, or approximate and not allowed; the message lists all.
    """
    accepted = {Fidelity.EXACT} | ({Fidelity.APPROXIMATE} if allow_approximate else set())
    refused = [gap for gap in gaps if gap.fidelity not in accepted]
    if refused:
        lines = [f"engine {engine!r} cannot run this task as written: {plural(len(refused), 'gap')}"]
        for gap in refused:
            hint = f" ({gap.hint})" if gap.hint else ""
            lines.append(f"  - {gap.part}: {gap.reason} [{gap.fidelity.value}]{hint}")
        raise UnsupportedPlanError("\n".join(lines), code=Code.ENGINE_GAP)
    return [gap for gap in gaps if gap.fidelity is not Fidelity.EXACT]


# Diagnosis


def diagnose() -> list[Check]:
    """Return the checks of all parts. A missing part does not prevent the other checks."""
    checks = [
        Check("aigo-bridge", "ok", __version__),
        Check("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    checks.append(_snippets())
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        checks += _engine(entry)
    return [*checks, *map(_plugin, all_plugins())]


def _plugin(plugin: Plugin) -> Check:
    subject = f"plug-in {plugin.kind}/{plugin.name}"
    try:
        plugin.load()
    except PluginError as error:
        return Check(subject, "missing", str(error))
    return Check(subject, "ok", f"{plugin.target}, from {plugin.package}")


def _snippets() -> Check:
    """Return the confinement level of author code on this machine, and how to improve it."""
    from aigo_bridge.sandbox import landlock
    from aigo_bridge.snippets.process import REMEDY, SnippetsRefusedError, reached

    try:
        confinement = reached()
    except SnippetsRefusedError as error:
        return Check("snippets", "missing", str(error))
    if confinement.level == "jailed":
        release = landlock.release()
        signals = (
            "" if release >= landlock.SIGNALS_SINCE else ", but signals to the user's processes (Linux 6.12)"
        )
        return Check("snippets", "ok", f"jailed: no network, no home, no other processes{signals}")
    if platform.system() != "Linux":
        state = (
            "worker: the environment of the user's processes can be read by them (not tested on this system)"
        )
        return Check("snippets", "warning", state)
    return Check("snippets", "warning", f"{confinement.level}: {confinement.reason}; {REMEDY}")


def usable_engines(checks: Sequence[Check]) -> list[str]:
    """Return the names of the engines that can run tasks."""
    prefix = "engine "
    return [
        check.subject.removeprefix(prefix)
        for check in checks
        if check.subject.startswith(prefix) and check.state != "missing"
    ]


def _engine(entry: EntryPoint) -> list[Check]:
    subject = f"engine {entry.name}"
    try:
        engine: type[Engine] = entry.load()
    except ImportError as error:
        return [Check(subject, "missing", str(error), install_command(entry.name))]
    checks = engine.capabilities.checks
    details = [] if checks is None else list(checks())
    try:
        engine()
    except ImportError as error:
        # The details, if any, contain a better explanation.
        is_told = any(check.state == "missing" for check in details)
        return [Check(subject, "missing", "cannot run tasks" if is_told else str(error)), *details]
    return [Check(subject, "ok", "can run tasks"), *details]
