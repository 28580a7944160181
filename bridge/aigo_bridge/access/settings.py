"""Settings of the user's own project: `aigo-bridge.toml`, or `[tool.aigo-bridge]` in `pyproject.toml`.

These are the settings in the project of the current folder, never in the project of a task: the author of a
task must not decide how it is run.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import project_of, read_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, UsageError

SETTINGS_FILE = "aigo-bridge.toml"
PROJECT_FILE = "pyproject.toml"
TABLE = "aigo-bridge"
"""Table name in `[tool.…]` of a project file."""

_LARGEST = 1_000_000
"""Maximum size in bytes of a settings file."""

Keys = tuple[str, ...]

_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_KEYS = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_LINE = re.compile(rf"[ \t]*(?:\[[ \t]*(?P<table>{_KEYS})[ \t]*\]|(?P<key>{_KEYS})[ \t]*=)")
_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True)
class Settings:
    """Settings of a project."""

    file: Path | None = None
    """Settings file; `None` without one."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values from TOML."""
    text: str = ""
    """Text of the whole file, for positions."""
    prefix: Keys = ()
    """Path of the table in the file."""

    def name(self, *path: str) -> str:
        """Return the full name of a setting: `run.model`, `[tool.aigo-bridge] run.model`."""
        table = f"[{'.'.join(self.prefix)}] " if self.prefix else ""
        return table + ".".join(path)

    def issue(self, message: str, *path: str, hint: str | None = None) -> Issue:
        """Return an issue about a setting, with its position if known."""
        place = _place(self.text, (*self.prefix, *path))
        return Issue(
            message,
            file=None if self.file is None else str(self.file),
            line=None if place is None else place[0],
            column=None if place is None else place[1],
            path=path,
            hint=hint,
            source_line=None if place is None else self.text.splitlines()[place[0] - 1],
            code=Code.WRONG_SETTING,
        )


class SettingsError(UsageError):
    """Invalid settings; `issues` lists all problems."""

    def __init__(self, *issues: Issue):
        self.issues = issues
        super().__init__("\n".join(map(str, issues)), code=Code.WRONG_SETTING)


def project_settings(folder: Path | None = None) -> Settings:
    """Return the settings of a folder's project, by default of the current folder; empty without a project or
    settings.

    Raises:
        SettingsError: the settings are invalid, or two files contain settings.
    """
    project = project_of(Path.cwd() if folder is None else folder)
    if project is None:
        return Settings()
    settings = [
        settings
        for settings in (_read(project / SETTINGS_FILE, ()), _read(project / PROJECT_FILE, ("tool", TABLE)))
        if settings is not None
    ]
    if len(settings) > 1:
        message = f"[tool.{TABLE}] and {SETTINGS_FILE} both contain settings of this project"
        raise SettingsError(settings[1].issue(message, hint="keep one of them"))
    return settings[0] if settings else Settings()


def _read(file: Path, prefix: Keys) -> Settings | None:
    """Return the settings in a file; `None` without any."""
    try:
        text = read_regular(file, _LARGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        # Other programs also use this project file, and most contain no settings of aigo-bridge.
        if prefix:
            return None
        raise SettingsError(
            Issue(f"is not UTF-8 (byte {error.start + 1})", file=str(file), code=Code.NOT_UTF8)
        ) from error
    except OSError as error:
        if prefix or isinstance(error, FileNotFoundError):
            return None
        raise SettingsError(
            Issue(error.strerror or str(error), file=str(file), code=Code.UNREADABLE_FILE)
        ) from error
    if prefix and TABLE not in text:
        return None
    text = text.replace("\r\n", "\n")
    try:
        values: Any = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(_malformed(file, text, str(error))) from error
    for number, key in enumerate(prefix):
        values = values.get(key, {})
        if not isinstance(values, dict):
            message = f"[{'.'.join(prefix)}]: found {values!r}, expected a table"
            path = prefix[: number + 1]
            raise SettingsError(Settings(file, {}, text).issue(message, *path))
    return Settings(file, values, text, prefix) if values or not prefix else None


def _malformed(file: Path, text: str, message: str) -> Issue:
    """Return the issue of a TOML error with its position."""
    at = _AT.search(message)
    lines = text.split("\n")
    if at is None or int(at[1]) > len(lines):
        return Issue(
            f"cannot be read as TOML: {message or 'too deeply nested'}",
            file=str(file),
            code=Code.WRONG_SETTING,
        )
    line, column = int(at[1]), int(at[2])
    message = f"cannot be read as TOML: {message[: at.start()]}"
    return Issue(
        message,
        file=str(file),
        line=line,
        column=column,
        source_line=lines[line - 1],
        code=Code.WRONG_SETTING,
    )


def _place(text: str, path: Keys) -> tuple[int, int] | None:
    """Return line and column of a setting, otherwise of its innermost table; `None` if neither is found.

    The TOML parser does not record positions. They are only used in messages.
    """
    best: tuple[int, tuple[int, int]] | None = None
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        group = "table" if match["table"] is not None else "key"
        keys = tuple(_parts(match[group]))
        if group == "table":
            table = keys
        else:
            keys = (*table, *keys)
        if keys == path[: len(keys)] and (best is None or len(keys) > best[0]):
            best = len(keys), (number, match.start(group) + 1)
    return None if best is None else best[1]


def _parts(keys: str) -> Iterator[str]:
    for part in re.findall(_PART, keys):
        yield part[1:-1] if part[0] in "'\"" else part
