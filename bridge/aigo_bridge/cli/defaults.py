"""Default options from the project settings.

Permissions cannot be defaults: a project folder from another person must not decide what its code may do.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.access.object_addresses import SCHEMES
from aigo_bridge.access.opening import is_below
from aigo_bridge.access.settings import Settings, SettingsError, project_settings
from aigo_bridge.cli.error_handling import reported
from aigo_bridge.cli.terminal import is_verbose, note, printable, short_path
from aigo_bridge.errors import Issue

ALLOWING = frozenset({"allow", "allow-file", "allow-url", "custom-tasks", "env", "root"})
"""Options that grant permissions or reveal data."""

HARMLESS = {"snippets": "jailed", "redact": True, "network": False}
"""Options with one value that grants no permission."""

PATHS = frozenset({"-o", "--out", "--data-dir"})
"""Options whose value is a path to read from or write to."""

_LISTS = ("env", "files")
"""Top-level settings that `access.grants` reads."""

_PLACES = "aigo_bridge.defaults"
"""Context key of the mapping from parameter to position of its default."""


def set_defaults(context: Any, verb: str, command: Any, words: Sequence[str], verbs: Sequence[str]) -> None:
    """Give the options of a verb the project's defaults, for options that the user does not type.

    Args:
        context: Click context of the command group.
        verb: name of the verb.
        command: Typer's command of the verb.
        words: arguments that the user typed after the verb.
        verbs: all verbs.
    """
    typed = words[: words.index("--")] if "--" in words else words
    if {"-h", "--help"} & set(typed):
        return
    with reported():
        settings = project_settings()
        defaults, issues = _defaults(settings, verb, command, typed)
        if issues := [*_unknown(settings, verbs), *issues]:
            raise SettingsError(*issues)
    context.default_map = {verb: {option.name: value for option, value in defaults.values()}}
    context.meta[_PLACES] = {
        option.name: settings.issue("", verb, name).place for name, (option, _) in defaults.items()
    }
    untyped = [row for row in defaults.values() if not any(_names(word, row[0]) for word in typed)]
    if is_verbose() and untyped:
        spelled_out = shlex.join(word for option, value in untyped for word in _spelled(option, value))
        note(printable(f"defaults of {short_path(settings.file or '')}: {spelled_out}"))


def _unknown(settings: Settings, verbs: Sequence[str]) -> Iterator[Issue]:
    """Yield issues about unknown names in the settings: only verbs are allowed."""
    for key, value in settings.values.items():
        if key in _LISTS:
            continue
        if key not in verbs:
            message = f"{settings.name(key)}: unknown setting"
            yield settings.issue(message, key, hint=_near(key, [*_LISTS, *verbs]))
        elif not isinstance(value, dict):
            message = f"{settings.name(key)}: found {value!r}, expected a table of options"
            yield settings.issue(message, key)


def _defaults(
    settings: Settings, verb: str, command: Any, typed: Sequence[str]
) -> tuple[dict[str, tuple[Any, Any]], list[Issue]]:
    """Return the valid defaults (name in the settings → option and value), and issues about the others."""
    options = dict(_options(command))
    left_out = _left_out(verb, typed)
    defaults: dict[str, tuple[Any, Any]] = {}
    issues: list[Issue] = []
    table = settings.values.get(verb)
    for name, value in table.items() if isinstance(table, dict) else ():
        option = options.get(name.replace("_", "-"))
        message = _refusal(name, value, option)
        if message is not None or option is None:
            hint = _near(name, list(options)) if option is None else _hint(name)
            issues.append(settings.issue(f"{settings.name(verb, name)}: {message}", verb, name, hint=hint))
        elif not left_out & set(option.opts):
            defaults[name] = option, _values(option, value)
    return defaults, issues


def _options(command: Any) -> Iterator[tuple[str, Any]]:
    """Yield options by their long names without leading hyphens."""
    for parameter in command.params:
        if parameter.opts[0].startswith("-") and not getattr(parameter, "hidden", False):
            for name in parameter.opts:
                if name.startswith("--"):
                    yield name[2:], parameter


def _left_out(verb: str, typed: Sequence[str]) -> frozenset[str]:
    """Return task options that do not apply to the run."""
    if verb != "run":
        return frozenset()
    from aigo_bridge.cli.engine_options import names_benchmark
    from aigo_bridge.cli.run_options import NOT_FOR_BENCHMARKS

    return frozenset(NOT_FOR_BENCHMARKS if any(map(names_benchmark, typed)) else ())


def _refusal(name: str, value: Any, option: Any) -> str | None:
    """Return why a default is not allowed; `None` if it is allowed."""
    plain = name.replace("_", "-")
    if plain in ALLOWING or value != HARMLESS.get(plain, value):
        return "permissions cannot be defaults; use the option on the command line"
    if option is None:
        return "unknown option"
    if getattr(option, "is_flag", False):
        return None if isinstance(value, bool) else f"found {value!r}, expected true or false"
    if isinstance(value, dict | list) and not option.multiple:
        return f"found {value!r}, expected one value"
    values = (
        list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    )
    if isinstance(value, dict) and "=" not in (option.metavar or ""):
        return f"found a table, expected a list of {option.metavar}"
    if wrong := [one for one in values if isinstance(one, bool) or not isinstance(one, str | int | float)]:
        return f"found {wrong[0]!r}, expected a text or a number"
    if addresses := [one for one in values if _in_storage(str(one))]:
        return (
            f"found {addresses[0]!r}, expected a path; object storage addresses cannot be "
            "defaults, use the option on the command line"
        )
    if PATHS & set(option.opts) and not is_below(Path.cwd() / str(value), project_root()):
        return f"found {value!r}, expected a folder in this project; name other folders on the command line"
    return None


def _in_storage(value: str) -> bool:
    return any(f"{name}://" in value.lower() for name in SCHEMES)


def project_root() -> Path:
    """Return the folder of the settings file."""
    file = project_settings().file
    return Path.cwd() if file is None else file.parent


def _hint(name: str) -> str | None:
    if name == "env":
        return 'list variables that files may read at the top of the file: env = ["NAME"]'
    if name in ("allow-file", "allow_file"):
        return 'list private files that tasks may read at the top of the file: files = ["out/rows.jsonl"]'
    if name in HARMLESS:
        return f"a project may only set {json.dumps(HARMLESS[name])}"
    return None


def _values(option: Any, value: Any) -> Any:
    """Return a default as the value of an option; a list for repeated options."""
    if isinstance(value, dict):
        return [f"{key}={one}" for key, one in value.items()]
    return [value] if option.multiple and not isinstance(value, list) else value


def _spelled(option: Any, value: Any) -> list[str]:
    """Return a default as command-line arguments."""
    name = next(name for name in option.opts if name.startswith("--"))
    if getattr(option, "is_flag", False):
        return [name] if value else option.secondary_opts[:1]
    return [f"{name}={one}" for one in (value if isinstance(value, list) else [value])]


def _names(word: str, option: Any) -> bool:
    """Return whether an argument is an option, or starts with an option and contains its value."""
    return any(
        word.partition("=")[0] == name if name.startswith("--") else word.startswith(name)
        for name in (*option.opts, *option.secondary_opts)
    )


def _near(name: str, names: Sequence[str]) -> str | None:
    near = difflib.get_close_matches(name.replace("_", "-"), names, n=1)
    return f"did you mean {near[0]!r}?" if near else None


def explain_default(context: Any, error: Any) -> None:
    """Add the position of a default to the error message of an option, unless the user typed the option."""
    name = getattr(getattr(error, "param", None), "name", None)
    place = context.meta.get(_PLACES, {}).get(name)
    source = None if name is None else error.ctx.get_parameter_source(name)
    if place is not None and source is not None and source.name == "DEFAULT_MAP":
        error.message = f"{error.message} (the default in {place})"
