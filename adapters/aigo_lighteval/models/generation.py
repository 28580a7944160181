"""Settings in a model string, by lighteval's names: `openai/gpt-4.1-nano,temperature=0.7,seed=1`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import SampleError, Stage, UsageError

GROUP = "generation_parameters"
"""lighteval's own form: `generation_parameters={temperature:0.7,top_p:0.9}`."""

ALIASES: Mapping[str, str] = {"max_tokens": "max_new_tokens", "stop_seqs": "stop_tokens"}
"""lighteval's setting names by Inspect's names."""

SERVER_NAMES: Mapping[str, str] = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "repetition_penalty": "repetition_penalty",
    "max_new_tokens": "max_tokens",
    "stop_tokens": "stop",
}
"""Chat completion options by lighteval's generation parameters."""

_WHOLE = frozenset({"top_k", "seed", "max_new_tokens"})
_SIGNED = frozenset({"frequency_penalty", "presence_penalty"})


@dataclass(frozen=True)
class NamedModel:
    """Parsed model string."""

    name: str
    """Model name without its settings."""
    settings: Mapping[str, str]
    """Settings as written, by lighteval's names."""


def named_model(text: str) -> NamedModel:
    """Split a model string into name and settings.

    A comma can be part of a path. Settings are the last parts of the form `name=value`, unless the string up
    to that part is an existing file.

    Raises:
        UsageError: lighteval's group of settings cannot be parsed, or a setting occurs twice.
    """
    parts = list(_parts(text))
    cut = len(parts)
    while cut > 1 and _is_setting(parts[cut - 1]) and not _is_file(",".join(parts[:cut])):
        cut -= 1
    settings: dict[str, str] = {}
    for name, value in (pair for part in parts[cut:] for pair in _pairs(text, part)):
        if (setting := ALIASES.get(name, name)) in settings:
            raise UsageError(f"model {text!r}: {setting!r} is set twice", code=Code.WRONG_MODEL_ARGUMENT)
        settings[setting] = value
    return NamedModel(",".join(parts[:cut]), settings)


def _is_setting(part: str) -> bool:
    name, equals, _ = part.partition("=")
    return bool(equals) and name.strip().isidentifier()


def _is_file(name: str) -> bool:
    return Path(name.partition("/")[2]).is_file() or Path(name).is_file()


def _parts(text: str) -> Iterator[str]:
    """Split a text at commas that are outside of brackets."""
    start = depth = 0
    for at, sign in enumerate(text):
        depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth <= 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _pairs(model: str, part: str) -> Iterator[tuple[str, str]]:
    name, _, value = (piece.strip() for piece in part.partition("="))
    if name != GROUP:
        yield name, value
        return
    try:
        # lighteval's command line writes names without quotes.
        values = json.loads(re.sub(r"([{,]\s*)(\w+)\s*[:=]", r'\1"\2":', value))
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise UsageError(
            f"model {model!r}: {GROUP}: found {value!r}, expected e.g. {{temperature:0.7,top_p:0.9}}",
            code=Code.WRONG_MODEL_ARGUMENT,
        )
    for key, item in values.items():
        yield key, item if isinstance(item, str) else json.dumps(item)


# Servers


def server_options(model: NamedModel) -> dict[str, Any]:
    """Return the settings of a server's model as chat completion options.

    With `temperature=none` the option is `None`: it is not sent, and the server uses its default.

    Raises:
        UsageError: a setting is unknown or has an invalid value. The message lists all of them.
    """
    options: dict[str, Any] = {}
    problems: list[str] = []
    for name, text in model.settings.items():
        if name not in SERVER_NAMES:
            problems.append(f"unknown setting {name!r}; expected one of {', '.join(SERVER_NAMES)}")
            continue
        try:
            options[SERVER_NAMES[name]] = _value(name, text)
        except ValueError as error:
            problems.append(f"{name}: found {text!r}, expected {error}")
    if problems:
        raise UsageError(
            "\n".join(f"model {model.name!r}: {problem}" for problem in problems),
            code=Code.WRONG_MODEL_ARGUMENT,
        )
    return options


def _value(name: str, text: str) -> Any:
    if name == "stop_tokens":
        return _texts(text)
    if name == "temperature" and text.lower() == "none":
        return None
    expected = "a whole number" if name in _WHOLE else "a number"
    expected += "" if name in _SIGNED else " from 1" if name == "max_new_tokens" else " from 0"
    expected += ", or none" if name == "temperature" else ""
    try:
        number = int(text) if name in _WHOLE else float(text)
    except ValueError:
        raise ValueError(expected) from None
    least = -math.inf if name in _SIGNED else 1 if name == "max_new_tokens" else 0
    if not math.isfinite(number) or number < least:
        raise ValueError(expected)
    return int(number) if number == int(number) else number


def _texts(text: str) -> list[str]:
    values: Any = [text]
    if text.startswith(("[", '"')):
        try:
            values = json.loads(text)
        except ValueError:
            values = None
    values = [values] if isinstance(values, str) else values
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise ValueError('a text, or texts as ["…","…"]')
    return values


def with_settings(options: Mapping[str, Any], settings: Mapping[str, Any], stage: Stage) -> dict[str, Any]:
    """Return a request's options, with the model settings for options that the request does not set. For the
    length and the stop sequences, the request always wins.

    Raises:
        SampleError: the request and the user set different values.
    """
    for name, value in settings.items():
        if name not in ("max_tokens", "stop") and options.get(name, value) != value:
            raise SampleError(
                f"the task asks for {name}={options[name]}, the model string sets {value}",
                stage=stage,
                hint="remove one of the two",
                kind="UnsupportedRequest",
            )
    if "max_completion_tokens" in options:
        settings = {name: value for name, value in settings.items() if name != "max_tokens"}
    return {**{name: value for name, value in settings.items() if value is not None}, **options}
