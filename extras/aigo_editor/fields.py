"""Keys and values that the specifications allow at a path of a file, with their descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from aigo_bridge.metrics.registry import METRIC_TYPES
from aigo_bridge.reading.kinds import KINDS, Kind, is_part, recognise, told_kind
from aigo_bridge.reading.messages import annotation_at, members
from aigo_bridge.scoring.registry import SCORER_TYPES
from aigo_bridge.solving.registry import SOLVER_TYPES
from aigo_bridge.spec.wording import default_words, field_words, meaning, model_meaning, tag_of_model
from aigo_editor.outline import Path

TAG_KEYS = frozenset({"type", "op", "function", "connection_type", "$provider"})
"""Keys that select one of several classes."""

Form = Literal["text", "mapping", "list", "boolean"]
"""Syntax of a value."""


@dataclass(frozen=True)
class FieldNote:
    """Key as described in the reference."""

    name: str
    value: str
    """Description of its values."""
    default: str
    """Default value, or `required`."""
    meaning: str
    owner: str
    """Name of the class that contains the key; empty for a class without a name."""
    form: Form

    @property
    def is_required(self) -> bool:
        """Whether the key is required."""
        return self.default == "required"


@dataclass(frozen=True)
class ValueChoice:
    """Allowed value."""

    text: str
    meaning: str = ""
    key: str = "type"
    """Key that selects a class with this value."""


def kind_of(data: object, file: FilePath) -> Kind | None:
    """Return the kind of an incomplete file; `None` for a part of another file or an unknown kind."""
    return told_kind(data, file) or recognise(data, file)


def root_of_part(data: object) -> Any:
    """Return the class of a scorer, solver or metric in a separate file; `None` for any other content.

    The class is found by its `type` and its keys.
    """
    if not isinstance(data, dict) or not is_part(data):
        return None
    every = (model for group in (SCORER_TYPES, SOLVER_TYPES, METRIC_TYPES) for model in group)
    classes = [model for model in every if tag_of_model(model) == data["type"]]
    return max(classes, key=lambda model: len(data.keys() & model.model_fields.keys()), default=None)


def root_of_kind(kind: Kind | None) -> type[BaseModel]:
    """Return the class of a kind of file, or the task class for an unknown kind."""
    return KINDS[kind or "task"].spec


def fields_at(root: Any, path: Path, data: Any) -> tuple[FieldNote, ...]:
    """Return the allowed keys of the mapping at a path.

    Before a type is chosen, these are the keys of the default type, or the keys common to all types.
    """
    annotation, model = annotation_at(root, path, data)
    if not _is_choice(annotation) or _is_told(annotation, path, data):
        return () if model is None else notes_of(model)
    usual = next((member for member in _models(annotation) if _has_default_tag(member)), None)
    if usual is not None:
        return notes_of(usual)
    by_name: dict[str, FieldNote] = {}
    models = list(_models(annotation))
    for member in models:
        for note in notes_of(member):
            by_name.setdefault(note.name, note)
    shared = [name for name in by_name if all(name in _names(member) for member in models)]
    return tuple(by_name[name] for name in shared)


def field_at(root: Any, path: Path, data: Any) -> FieldNote | None:
    """Return the key at the end of a path; `None` for an unknown key or a list item."""
    if not path or isinstance(path[-1], int):
        return None
    notes = {note.name: note for note in fields_at(root, path[:-1], data)}
    if path[-1] in notes:
        return notes[path[-1]]
    annotation = annotation_at(root, path[:-1], data)[0]
    every = (note for model in _models(annotation) for note in notes_of(model))
    return next((note for note in every if note.name == path[-1]), None)


def choices_at(root: Any, path: Path, data: Any) -> tuple[ValueChoice, ...]:
    """Return the allowed values at a path, if they are a fixed list."""
    if path and path[-1] in TAG_KEYS:
        tagged = tuple(_tags(annotation_at(root, path[:-1], data)[0], str(path[-1])))
        if tagged:
            return tagged
    annotation = annotation_at(root, path, data)[0]
    return tuple(dict.fromkeys(_literals(annotation)))


def types_at(root: Any, path: Path, data: Any) -> tuple[ValueChoice, ...]:
    """Return the types of the mapping at a path, each with the key that selects it."""
    annotation = annotation_at(root, path, data)[0]
    return tuple(choice for key in ("type", "op") for choice in _tags(annotation, key))


def is_mapping_at(root: Any, path: Path, data: Any) -> bool:
    """Return whether a mapping with known keys is allowed at a path."""
    return next(_models(annotation_at(root, path, data)[0]), None) is not None


@lru_cache(maxsize=512)
def notes_of(model: type[BaseModel]) -> tuple[FieldNote, ...]:
    """Return all keys of a class in reference order."""
    model.model_rebuild()
    owner = tag_of_model(model) or ""
    return tuple(
        FieldNote(
            info.alias or name,
            field_words(info, _word_of),
            default_words(info),
            meaning(model, name),
            owner,
            _form(info.annotation),
        )
        for name, info in model.model_fields.items()
    )


def _names(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(note.name for note in notes_of(model))


def _word_of(model: type[BaseModel]) -> str:
    tag = tag_of_model(model)
    return "mapping" if tag is None else f"mapping (`{tag}`)"


def _form(annotation: Any) -> Form:
    kinds = members(annotation)
    if any(get_origin(kind) in {tuple, list} for kind in kinds) and str not in kinds:
        return "list"
    if any(get_origin(kind) is dict or _is_model(kind) for kind in kinds) and str not in kinds:
        return "mapping"
    return "boolean" if bool in kinds else "text"


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if annotation is not None:
        yield from filter(_is_model, members(annotation))


def _is_choice(annotation: Any) -> bool:
    return len(list(_models(annotation))) > 1


def _is_told(annotation: Any, path: Path, data: Any) -> bool:
    """Return whether the class of a mapping is known, because it is selected or there is only one."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return False
    keys = TAG_KEYS & data.keys() if isinstance(data, dict) else frozenset()
    return bool(keys) or next((tag for key in TAG_KEYS for tag in _tags(annotation, key)), None) is None


def _has_default_tag(model: type[BaseModel]) -> bool:
    """Return whether a mapping without a type key belongs to this class."""
    field = model.model_fields.get("type")
    return field is not None and not field.is_required()


def _tags(annotation: Any, key: str) -> Iterator[ValueChoice]:
    for model in _models(annotation):
        field = model.model_fields.get(key)
        if field is None:
            continue
        for value in _literals(field.annotation):
            yield ValueChoice(value.text, model_meaning(model), key)


def _literals(annotation: Any) -> Iterator[ValueChoice]:
    for member in members(annotation) if annotation is not None else ():
        if get_origin(member) is Literal:
            yield from (ValueChoice(str(value)) for value in get_args(member))
        elif member is bool:
            yield from (ValueChoice("true"), ValueChoice("false"))
