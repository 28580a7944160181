"""JSON Schema of the specifications for editors, with the meaning of every field."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from aigo_bridge.spec.base import SpecModel

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_KEEPS_ITS_LINE = re.compile(r"\s|[-*+] |\d+[.)] |```|$")
"""Start of a line that does not continue a paragraph: list items, indented lines, code."""


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a kind of file, e.g. `json_schema(TaskSpec)`, in draft 2020-12.

    References to other files are allowed: editors see `!include` as a tagged text, and `{$ref: file}` can
    replace any mapping.
    """
    # pydantic 2.13.0 omits defaults that are models with deferred building.
    for kind in _models(SpecModel):
        for field in kind.model_fields.values():
            if isinstance(field.default, BaseModel):
                type(field.default).model_rebuild()
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.setdefault("$defs", {})
    unwrap(schema)
    for kind in _models(SpecModel):
        definition = schema if kind is model else definitions.get(kind.__name__, {})
        for name, field in kind.model_fields.items():
            entry = definition.get("properties", {}).get(field.alias or name)
            if entry is not None and (text := description(kind, name)) is not None:
                entry["description"] = text
    for name, definition in definitions.items():
        unwrap(definition)
        if definition.get("type") == "object" and "properties" in definition:
            definitions[name] = _or_reference(definition)
    return {"$schema": _DIALECT, **_any_of(schema)}


def _any_of(schema: Any) -> Any:
    """Replace `oneOf` with `anyOf`, because a reference to another file fits every member of a union."""
    if isinstance(schema, dict):
        return {"anyOf" if key == "oneOf" else key: _any_of(value) for key, value in schema.items()}
    return [_any_of(item) for item in schema] if isinstance(schema, list) else schema


def _or_reference(definition: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the mapping, or of a reference to it in another file."""
    properties = {
        **definition["properties"],
        "$ref": {"type": "string", "description": "YAML file to put here."},
    }
    with_file = {"type": "object", "required": ["$ref"], "properties": {"$ref": {"type": "string"}}}
    required = definition.get("required", [])
    inherited = {key: value for key, value in definition.items() if key not in {"required", "properties"}}
    if not required:
        return {**inherited, "properties": properties}
    return {**inherited, "properties": properties, "anyOf": [{"required": required}, with_file]}


def _models(base: type[SpecModel]) -> list[type[SpecModel]]:
    return [model for child in base.__subclasses__() for model in (child, *_models(child))]


@cache
def field_docs(module: str) -> dict[tuple[str, str], str]:
    """The texts under the fields of a module's classes, by class and field.

    Reads the module's source, which costs too much for every import.
    """
    docs: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for pair in pairwise(node.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[node.name, field] = unwrapped(text)
    return docs


def description(model: type[BaseModel], field: str) -> str | None:
    """Return the docstring of a field from the nearest class that has one; `None` if there is none."""
    classes = (cls for cls in model.__mro__ if issubclass(cls, BaseModel) and cls is not BaseModel)
    docs = (field_docs(cls.__module__).get((cls.__name__, field)) for cls in classes)
    return next(filter(None, docs), None)


def unwrap(definition: dict[str, Any]) -> None:
    """Remove the line breaks of the source code from the description of a class."""
    if "description" in definition:
        definition["description"] = unwrapped(definition["description"])


def unwrapped(text: str) -> str:
    """Return a docstring with one line per paragraph; lists and code stay unchanged."""
    lines: list[str] = []
    code = goes_on = False
    for line in inspect.cleandoc(text).split("\n"):
        if goes_on and not _KEEPS_ITS_LINE.match(line):
            lines[-1] += f" {line}"
            continue
        lines.append(line)
        code ^= line.startswith("```")
        goes_on = not code and not _KEEPS_ITS_LINE.match(line)
    return "\n".join(lines)
