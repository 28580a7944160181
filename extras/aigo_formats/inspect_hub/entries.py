"""Entry of `tasks` in an `eval.yaml`, checked like Inspect does for `hf/ORG/NAME`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aigo_bridge.reading.messages import nearest
from aigo_formats.definitions import ConvertedParts, KeyPath

Json = dict[str, Any]

# fmt: off
KEYS = (
    "id", "config", "split", "field_spec", "shuffle_choices", "epochs", "epoch_reducer", "solvers", "scorers",
)
FIELDS = ("input", "target", "choices", "input_image", "metadata", "description")
"""Keys of `field_spec` that Inspect uses."""
IGNORED_FIELDS = ("id", "sandbox", "files", "setup", "checkpoint")
"""Keys of `field_spec` that Inspect accepts but ignores."""
SOLVERS: dict[str, tuple[str, ...]] = {
    "prompt_template": ("template",),
    "system_message": ("template",),
    "user_message": ("template",),
    "chain_of_thought": ("template",),
    "use_tools": (),
    "generate": ("tool_calls", "cache"),
    "self_critique": (),
    "multiple_choice": ("template", "cot", "multiple_correct", "max_tokens", "shuffle"),
}
"""Supported arguments by solver."""
SCORERS: dict[str, tuple[str, ...]] = {
    "includes": ("ignore_case",),
    "match": ("location", "ignore_case", "numeric"),
    "pattern": ("pattern", "ignore_case", "match_all"),
    "answer": ("pattern",),
    "exact": (),
    "f1": ("stop_words",),
    "model_graded_qa": (),
    "model_graded_fact": (),
    "choice": (),
    "math": ("timeout",),
}
"""Supported arguments by scorer."""
# fmt: on
REDUCER = re.compile(r"(pass_at_\d+|at_least_\d+|max|mode|median|mean)\Z")


def checked_entry(parts: ConvertedParts, entry: Any, path: KeyPath) -> Json | None:
    """Return an entry with Inspect's defaults; `None` if it is not valid. The problems are recorded."""
    if not isinstance(entry, dict):
        parts.refuse(path, f"found {entry!r}, expected a task with 'field_spec', 'solvers' and 'scorers'")
        return None
    for key in entry:
        if key not in KEYS:
            parts.refuse((*path, key), f"unknown key {key!r}", nearest(str(key), list(KEYS)))
    task: Json = {
        "id": _text(parts, entry, "id", path, None),
        "config": _text(parts, entry, "config", path, "default"),
        "split": _text(parts, entry, "split", path, "test"),
        "field_spec": _field_spec(parts, entry.get("field_spec"), (*path, "field_spec")),
        "solvers": _steps(parts, entry, "solvers", path, SOLVERS),
        "scorers": _steps(parts, entry, "scorers", path, SCORERS),
    }
    epochs, reducer = entry.get("epochs", 1), entry.get("epoch_reducer")
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        parts.refuse((*path, "epochs"), f"'epochs': found {epochs!r}, expected a number from 1")
    if reducer is not None and not (isinstance(reducer, str) and REDUCER.match(reducer)):
        hint = "expected mean, mode, median, max, pass_at_K or at_least_K"
        parts.refuse((*path, "epoch_reducer"), f"'epoch_reducer': found {reducer!r}", hint)
    shuffle = entry.get("shuffle_choices")
    if shuffle is not None and not isinstance(shuffle, bool):
        parts.refuse((*path, "shuffle_choices"), f"found {shuffle!r}, expected true or false")
    return {**task, "epochs": epochs, "epoch_reducer": reducer, "shuffle_choices": bool(shuffle)}


def _text(parts: ConvertedParts, entry: Json, key: str, path: KeyPath, usual: str | None) -> str | None:
    value = entry.get(key, usual)
    if value is not usual and not isinstance(value, str):
        parts.refuse((*path, key), f"{key!r}: found {value!r}, expected a text")
        return usual
    return value


def _field_spec(parts: ConvertedParts, value: Any, path: KeyPath) -> Json:
    if not isinstance(value, dict):
        parts.refuse(path, f"'field_spec': found {value!r}, expected the columns of input and target")
        return {}
    for key in value:
        if key in IGNORED_FIELDS:
            parts.tell((*path, key), f"'field_spec': Inspect ignores {key!r}")
        elif key not in FIELDS:
            parts.tell(
                (*path, key), f"'field_spec': Inspect does not support {key!r}", nearest(str(key), FIELDS)
            )
    fields: Json = {"input": value.get("input", "input"), "target": value.get("target", "target")}
    for name, column in fields.items():
        if not isinstance(column, str) or not column:
            parts.refuse((*path, name), f"{name!r}: found {column!r}, expected the name of a column")
    if (choices := value.get("choices")) is not None:
        listed = choices if isinstance(choices, list) else [choices]
        if not listed or not all(isinstance(column, str) and column for column in listed):
            parts.refuse((*path, "choices"), f"'choices': found {choices!r}, expected names of columns")
        else:
            fields["choices"] = choices
    if metadata := value.get("metadata"):
        if not isinstance(metadata, list) or not all(isinstance(name, str) for name in metadata):
            parts.refuse((*path, "metadata"), f"'metadata': found {metadata!r}, expected a list of columns")
        else:
            fields["metadata"] = metadata
    if value.get("input_image") is not None:
        parts.refuse((*path, "input_image"), "the prompt has images, which the converted task would not send")
    return fields


def _steps(
    parts: ConvertedParts, entry: Json, key: str, path: KeyPath, known: Mapping[str, tuple[str, ...]]
) -> list[Json]:
    steps: list[Json] = []
    values = entry.get(key)
    if not isinstance(values, list) or not values:
        parts.refuse((*path, key), f"{key!r}: found {values!r}, expected a list with at least one entry")
        return steps
    for number, step in enumerate(values):
        at = (*path, key, number)
        name = step.get("name") if isinstance(step, dict) else None
        if not isinstance(name, str) or name not in known:
            hint = nearest(name, list(known)) if isinstance(name, str) else None
            parts.refuse(at, f"{key!r}: found {name!r}", hint or f"Inspect supports {', '.join(known)} here")
            continue
        arguments = step.get("args", {})
        if not isinstance(arguments, dict) or not _is_plain(arguments):
            parts.refuse((*at, "args"), f"'args': found {arguments!r}, expected names with plain values")
            continue
        steps.append({"name": name, "args": arguments})
    return steps


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
