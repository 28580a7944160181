"""Conversion of pydantic errors to readable issues with positions."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.deprecated import OLD_KEYS
from aigo_bridge.reading.document import Document
from aigo_bridge.reading.nodes import shown
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.solvers import SOLVERS, LoopBuilder, SolverSpec

# It names itself: without this its fields are known only after the first validation.
LoopBuilder.model_rebuild()

Path = tuple[str | int, ...]

MOST_ISSUES = 1000
"""Maximum number of issues per document. A malicious file may have a hundred thousand."""

_EXPECTED = {
    "string_type": "text",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "date_type": "a date",
    "date_parsing": "a date",
    "date_from_datetime_parsing": "a date",
    "date_from_datetime_inexact": "a date",
    "datetime_type": "a date and time",
    "datetime_parsing": "a date and time",
    "datetime_from_date_parsing": "a date and time",
}
_CHOICES = frozenset({"literal_error", "enum", "union_tag_invalid"})
_DISCRIMINATORS = {
    "_definition_type()": "type",
    "_specification_type()": "type",
    "_connection_type()": "connection_type",
    "_model_entry_type()": "$provider",
}
# Common wrong words → the intended word, if similarity does not find it.
_MEANT = {
    "accuracy": "mean",
    "average": "mean",
    "avg": "mean",
    "f1": "f1_score",
    "stddev": "std_dev",
    "std": "std_dev",
    "exact_match": "string_equals",
    "mcqa": "string_equals_mcqa",
    "==": "=",
    "eq": "equals",
    "ne": "not_equals",
    "gt": "greater_than",
    "lt": "less_than",
    "integer": "int",
    "bool": "boolean",
    "number": "float",
    "str": "string",
    "file": "local",
    "hf": "huggingface",
    "inspect": "inspect_ai",
    "human": "user",
    "developer": "system",
    "judge": "model_as_a_judge_scorer",
    "prompt": "user_prompt",
    "title": "display_name",
    "id": "key",
    "metric": "metrics",
    "scorer": "scorers",
}


def issues_from_validation(
    error: ValidationError, document: Document[Any], model: type[BaseModel]
) -> list[Issue]:
    """Return every pydantic error in `document.data` as an issue with its position, in file order. The
    expected specification `model` provides words for suggestions.
    """
    grouped: dict[tuple[Path, str], list[ErrorDetails]] = {}
    for detail in error.errors(include_url=False, include_context=True):
        path, kind = _path(detail, document.data)
        grouped.setdefault((path, kind), []).append(detail)
    holders = {path[:length] for path, _ in grouped for length in range(len(path))}
    issues: list[Issue] = []
    for (path, kind), details in grouped.items():
        # The other branch of a union reported "not a text" for a list whose items are the real problem.
        if kind == "value" and path in holders:
            continue
        if len(issues) > MOST_ISSUES:
            break
        if kind == "missing" and _misspelt(str(path[-1]), path[:-1], document.data, model):
            continue
        issues.append(_placed(path, kind, details, document, model))
    return sorted(issues, key=lambda issue: (issue.file or "", issue.line or 0, issue.column or 0))


def _path(detail: ErrorDetails, data: Any) -> tuple[Path, str]:
    """Return the path in the data of one error, and what it refers to: a value, a missing key or a key.

    pydantic inserts the names of union branches into a path. The data shows which parts these are.
    """
    path: list[str | int] = []
    value, tagged = data, False
    location = detail["loc"]
    last_index = len(location) - 1
    missing = detail["type"] == "missing"
    for index, part in enumerate(location):
        if part == "[key]" or (detail["type"] == "invalid_key" and index == last_index):
            key = detail["input"]  # The path contains the key as text, even if it has another type.
            return tuple(path) if path[-1:] == [key] else (*path, key), "key"
        if isinstance(value, dict):
            if not tagged and index < last_index and part in _tags(value):
                tagged = True
                continue
            if part in value:
                path.append(part)
                value, tagged = value[part], False
                continue
            if missing and index == last_index:
                path.append(part)
                return tuple(path), "missing"
        elif isinstance(value, list | tuple) and isinstance(part, int) and part < len(value):
            path.append(part)
            value, tagged = value[part], False
    return tuple(path), "value"


def _tags(value: Mapping[Any, Any]) -> set[Any]:
    kinds = (value.get(name) for name in ("type", "op", "function", "connection_type", "source"))
    return {kind for kind in kinds if isinstance(kind, str)}


def _placed(
    path: Path, kind: str, details: Sequence[ErrorDetails], document: Document[Any], model: type[BaseModel]
) -> Issue:
    detail = details[0]
    hidden = document.is_hidden(path) or any(part in {"secrets", "api_key"} for part in path)
    if kind == "missing":
        parent = path[:-1]
        place = document.locate(parent)
        message, hint = f"{_name(path)} is missing", None
    elif detail["type"] == "extra_forbidden":
        place = document.locate(path, key=True)
        keys = fields_at(model, path[:-1], document.data)
        message = f"unknown key {path[-1]!r}"
        free = [key for key in keys if key not in _value_at(document.data, path[:-1])]
        hint = (
            nearest(str(path[-1]), free)
            or OLD_KEYS.get(str(path[-1]))
            or (f"known keys: {', '.join(keys)}" if keys else None)
        )
    elif kind == "key":
        place = document.locate(path, key=True)
        message, hint = f"found {found_words(detail['input'])} as a key, expected text", "put it in quotes"
    else:
        key = _union_key(detail)
        if key is not None and _value_at(document.data, (*path, key)) is not _NOTHING:
            path = (*path, key)
        if (slip := _slip(detail, path, document.data)) is not None:
            path, details = (*path, slip), [{**detail, "type": "extra_forbidden"}]
        place = document.locate(path, key=slip is not None)
        hidden = hidden or document.is_hidden(path)
        value_words = _kind(_union_input(detail)) if hidden else found_words(_union_input(detail))
        message, hint = _value_words(path, details, value_words)
        if detail["type"] == "union_tag_not_found" and slip is None and hint is None and key is not None:
            tags = _tags_at(model, path, key, document.data)
            hint = f"one of {', '.join(tags)}" if tags else None
        hint = None if hidden else hint
    code = _code(kind, details)
    data_path = tuple(map(_part, path))
    position = (place.file, place.line, place.column)
    return Issue(message, *position, data_path, hint, source_line=place.source_line, code=code)


def _code(kind: str, details: Sequence[ErrorDetails]) -> Code:
    types = [detail["type"] for detail in details]
    if kind == "missing" or types[0] == "union_tag_not_found":
        return Code.MISSING_KEY
    if kind == "key":
        return Code.KEY_NOT_TEXT
    if types[0] == "extra_forbidden":
        return Code.UNKNOWN_KEY
    if types[0] == "relation":
        return Code.CONTRADICTION
    if any(name in _CHOICES for name in types):
        return Code.WRONG_CHOICE
    return Code.WRONG_TYPE if all(name in _EXPECTED for name in types) else Code.WRONG_VALUE


def _value_words(path: Path, details: Sequence[ErrorDetails], value_words: str) -> tuple[str, str | None]:
    detail = details[0]
    context = detail.get("ctx", {})
    name = _name(path)
    if detail["type"] == "extra_forbidden":
        meant = _union_key({**detail, "type": "union_tag_not_found"})
        return f"unknown key {path[-1]!r}", f"did you mean {meant!r}?"
    if all(error["type"] in _EXPECTED or error["type"] in _CHOICES for error in details):
        expected = " or ".join(dict.fromkeys(_expected_words(error) for error in details))
        choices = [choice for error in details for choice in _choices(error)]
        written = _union_input(detail)
        hint = (nearest(written, choices) if isinstance(written, str) else None) or _type_hint(detail)
        return f"{name}: found {value_words}, expected {expected}", hint
    match detail["type"]:
        case "union_tag_not_found":
            hint = f"expected {_expected_words(detail)}" if _choices(detail) else None
            return f"{_union_key(detail)!r} is missing", hint
        case "string_pattern_mismatch":
            signs = "'_', '-' and '$'" if "$]" in context["pattern"] else "'_' and '-'"
            hint = _key_suggestion(detail["input"], context["pattern"])
            if hint is not None and path[-1] == "model_key" and "/" in detail["input"]:
                hint += "; choose the model when you run the task: --model-map 'KEY=PROVIDER/MODEL'"
            return f"{name}: found {value_words}, expected letters, digits, {signs} only", hint
        case "string_too_short":
            return f"{name}: found an empty text", "expected at least one character"
        case "string_too_long":
            length = f"a text of {len(detail['input'])} characters"
            return f"{name}: found {length}, expected at most {context['max_length']}", None
        case "too_short":
            kind = "mapping" if isinstance(detail["input"], dict) else "list"
            return f"{name}: found an empty {kind}, expected at least one entry", None
        case "greater_than_equal":
            return f"{name}: found {value_words}, expected {context['ge']} or more", None
        case "greater_than":
            return f"{name}: found {value_words}, expected more than {context['gt']}", None
        case "relation":
            return detail["msg"], None
    return f"{name}: found {value_words}: {detail['msg'][:1].lower()}{detail['msg'][1:]}", None


def _expected_words(detail: ErrorDetails) -> str:
    choices = _choices(detail)
    if choices:
        return ("one of " if len(choices) > 1 else "") + ", ".join(repr(choice) for choice in choices)
    return _EXPECTED.get(detail["type"], detail["type"])


def _choices(detail: ErrorDetails) -> list[str]:
    context = detail.get("ctx", {})
    text = context.get("expected_tags") or (context.get("expected") if detail["type"] in _CHOICES else None)
    if not isinstance(text, str):
        return []
    return [word.strip().strip("'") for word in text.replace(" or ", ", ").split(", ")]


def _union_key(detail: ErrorDetails) -> str | None:
    if not detail["type"].startswith("union_tag"):
        return None
    name = str(detail.get("ctx", {}).get("discriminator", "'type'"))
    return _DISCRIMINATORS.get(name, name.strip("'"))


def _slip(detail: ErrorDetails, path: Path, data: Any) -> str | None:
    """Return the key that was probably intended to select the member of a union, if that key is missing."""
    key, mapping = _union_key(detail), _value_at(data, path)
    if detail["type"] != "union_tag_not_found" or key is None or not isinstance(mapping, dict):
        return None
    keys = [name for name in mapping if isinstance(name, str)]
    return next(iter(difflib.get_close_matches(key, keys, n=1, cutoff=0.7)), None)


def _union_input(detail: ErrorDetails) -> Any:
    key = _union_key(detail)
    value = detail["input"]
    return value.get(key) if key is not None and isinstance(value, dict) else value


def _type_hint(detail: ErrorDetails) -> str | None:
    if detail["type"] == "string_type" and isinstance(detail["input"], bool | int | float | date):
        return "put it in quotes to make it text"
    if detail["type"] == "tuple_type" and isinstance(detail["input"], str):
        return "write one list item per line, each after '- '"
    return None


def _key_suggestion(value: Any, pattern: str) -> str | None:
    allowed = "_-$" if "$]" in pattern else "_-"
    key = "".join(
        letter if (letter.isascii() and letter.isalnum()) or letter in allowed else "-"
        for letter in str(value)
    )
    while "--" in key:
        key = key.replace("--", "-")
    return f"for example {key.strip('-')!r}" if key.strip("-") else None


_NOTHING = object()


def _value_at(data: Any, path: Path) -> Any:
    """Return the value at a path, or `_NOTHING`."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(part, _NOTHING)
        elif isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return _NOTHING
    return data


def _part(part: Any) -> str | int:
    """Return a part of a path. YAML keys may be neither text nor integers."""
    return part if isinstance(part, str | int) else str(part)


def _name(path: Path) -> str:
    """Return the name of a value for messages: its key, or for list items the key of the list."""
    text = ""
    for part in reversed(path):
        text = f"[{part}]{text}" if isinstance(part, int) else f"{part}{text}"
        if isinstance(part, str):
            break
    return repr(text) if text else "the document"


def found_words(value: Any) -> str:
    """Return a value in the form for messages."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}" if abs(value) < 1e40 or isinstance(value, float) else "a huge number"
    if isinstance(value, date):
        return f"the date {value}"
    return _kind(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return "text" if isinstance(value, str) else "a number"


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return `did you mean …?` with the most similar known word, if any is similar."""
    words = list(words)
    if word.lower() in _MEANT and _MEANT[word.lower()] in words:
        return f"did you mean {_MEANT[word.lower()]!r}?"
    plain = {candidate.lower().replace("-", "_").replace(" ", "_"): candidate for candidate in words}
    word = word.lower().replace("-", "_").replace(" ", "_")
    match = difflib.get_close_matches(word, plain, n=1, cutoff=0.6)
    if not match and len(word) >= 3:
        longer = [candidate for candidate in plain if candidate.startswith(word)]
        match = longer if len(longer) == 1 else []
    return f"did you mean {plain[match[0]]!r}?" if match else None


def _misspelt(name: str, parent: Path, data: Any, model: type[BaseModel]) -> bool:
    """Return whether an unknown key next to a missing key is probably a misspelling of it."""
    mapping = _value_at(data, parent)
    if not isinstance(mapping, dict):
        return False
    keys = fields_at(model, parent, data)
    unknown = [key for key in mapping if isinstance(key, str) and key not in keys]
    return any(
        nearest(word, [key for key in keys if key not in mapping]) == f"did you mean {name!r}?"
        for word in unknown
    )


def fields_at(model: type[BaseModel], path: Path, data: Any) -> list[str]:
    """Return the names of the keys in a specification at a path of its data."""
    holder = annotation_at(model, path, data)[1]
    return [field.alias or name for name, field in holder.model_fields.items()] if holder is not None else []


def _tags_at(model: type[BaseModel], path: Path, key: str, data: Any) -> list[str]:
    """Return the values of the key that selects the member of a union, at a path of the data."""
    tags: list[str] = []
    for member in members(annotation_at(model, path, data)[0]):
        field = getattr(member, "model_fields", {}).get(key)
        if field is not None and get_origin(field.annotation) is Literal:
            tags += map(str, get_args(field.annotation))
    return list(dict.fromkeys(tags))


def annotation_at(annotation: Any, path: Path, data: Any) -> tuple[Any, type[BaseModel] | None]:
    """Return the annotation at a path of the data and the model that contains it, if they are unambiguous."""
    model = _model_for(annotation, data)
    for index, part in enumerate(path):
        data = _value_at(data, (part,))
        if isinstance(part, int):
            annotation = _item_of(annotation)
        elif model is not None and (field := model.model_fields.get(str(part))) is not None:
            annotation = field.annotation
        else:
            annotation = _item_of(annotation, mapping=True)
        if annotation is None:
            return None, None
        model = _model_for(annotation, data) if index <= len(path) else None
    return annotation, model


def members(annotation: Any) -> list[Any]:
    """Return the alternatives of an annotation, without wrappers."""
    origin = get_origin(annotation)
    if annotation is ScorerSpec:
        return list(SCORERS.values())
    if annotation is SolverSpec:
        return list(SOLVERS.values())
    if annotation is MetricSpec:
        return list(METRICS.values())
    if origin is Annotated:
        return members(get_args(annotation)[0])
    if origin in {Union, types.UnionType}:
        return [member for part in get_args(annotation) for member in members(part)]
    return [annotation]


def _item_of(annotation: Any, *, mapping: bool = False) -> Any:
    for member in members(annotation):
        if not mapping and get_origin(member) is tuple:
            return get_args(member)[0]
        if mapping and get_origin(member) is dict:
            return get_args(member)[1]
    return None


def _model_for(annotation: Any, data: Any) -> type[BaseModel] | None:
    models = [
        member for member in members(annotation) if isinstance(member, type) and issubclass(member, BaseModel)
    ]
    if len(models) <= 1 or not isinstance(data, dict):
        return models[0] if models else None
    for name in ("type", "op", "function", "connection_type"):
        for model in models:
            field = model.model_fields.get(name)
            if field is None or get_origin(field.annotation) is not Literal:
                continue
            written = data.get(name, None if field.is_required() else field.default)
            if isinstance(written, str) and written in get_args(field.annotation):
                return model
    if "$provider" in data:
        return next((model for model in models if "provider" in model.model_fields), None)
    return models[0] if any("provider" in model.model_fields for model in models) else None
