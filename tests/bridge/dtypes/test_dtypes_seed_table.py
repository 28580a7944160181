"""All names of the published page exist, with their fields, flags, defaults and values."""

from __future__ import annotations

import ast
import json
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import aigo_bridge.dtypes as dtypes

TABLE: dict[str, Any] = json.loads(
    Path(__file__).with_name("core_types_table.json").read_text(encoding="utf-8")
)
TYPES: dict[str, dict[str, Any]] = TABLE["types"]
ENUMS = {name: entry for name, entry in TYPES.items() if entry["values"]}
MODELS = {name: entry for name, entry in TYPES.items() if entry["fields"]}
MEMBERS = [(model, member) for model, e in TYPES.items() for member in (*e["properties"], *e["methods"])]


def fields_by_key(model: str) -> dict[str, Any]:
    cls: type[BaseModel] = getattr(dtypes, model)
    return {field.alias or name: field for name, field in cls.model_fields.items()}


def test_table_has_as_many_entries_as_the_page() -> None:
    """A parser that loses entries would make the other tests pass."""
    assert len(TYPES) == 158
    assert len(ENUMS) == 23
    assert len(TABLE["aliases"]) == 15


@pytest.mark.parametrize("name", [*TYPES, *TABLE["aliases"]])
def test_every_name_is_public(name: str) -> None:
    assert hasattr(dtypes, name)
    assert name in dtypes.__all__


def test_all_names_exist_and_are_sorted() -> None:
    assert dtypes.__all__ == sorted(dtypes.__all__)
    assert len(dtypes.__all__) == len(set(dtypes.__all__))


@pytest.mark.parametrize("name", ENUMS)
def test_enums_have_the_published_values_in_order(name: str) -> None:
    enum: type[Enum] = getattr(dtypes, name)

    assert [member.value for member in enum] == ENUMS[name]["values"]
    assert not issubclass(enum, str)


@pytest.mark.parametrize("name", MODELS)
def test_models_have_the_published_fields_in_order(name: str) -> None:
    """Dumps have their keys in this order."""
    assert list(fields_by_key(name)) == list(MODELS[name]["fields"])


@pytest.mark.parametrize("model", MODELS)
def test_fields_are_required_or_have_the_published_default(model: str) -> None:
    for name, published in MODELS[model]["fields"].items():
        ours = fields_by_key(model)[name]

        assert ours.is_required() == published["required"], name
        if "default" in published:
            default = ours.default.value if isinstance(ours.default, Enum) else ours.default
            assert str(default) == published["default"], name
        elif not published["required"]:
            assert ours.default_factory is not None, name


@pytest.mark.parametrize("model", MODELS)
def test_fields_have_the_published_kind_of_value(model: str) -> None:
    """The page and our types are compared as JSON Schema."""
    cls: type[BaseModel] = getattr(dtypes, model)
    schema = cls.model_json_schema(by_alias=True)

    for name, published in MODELS[model]["fields"].items():
        ours = _kinds(schema["properties"][name], schema.get("$defs", {}))

        assert ours == ({"time"} if (model, name) in TIMES else _published_kinds(published["type"])), name


@pytest.mark.parametrize("model", MODELS)
def test_patterns_and_lengths_are_the_published_ones(model: str) -> None:
    cls: type[BaseModel] = getattr(dtypes, model)
    properties = cls.model_json_schema(by_alias=True)["properties"]

    for name, published in MODELS[model]["fields"].items():
        for key, keyword in (("pattern", "pattern"), ("max_length", "maxLength")):
            if key in published:
                assert properties[name][keyword] == published[key]


TIMES = {
    # The page says text, but only times are accepted.
    *((model, "timestamp") for model in MODELS if "timestamp" in MODELS[model]["fields"]),
    ("TraceMetadata", "created_at"),
}


def _published_kinds(text: str) -> set[str]:
    kinds = set()
    for part in _split_at_commas(text):
        if part.startswith("array["):
            kinds.add("array")
        elif part.startswith("Literal"):
            kinds.add("string")
        elif part in TYPES:
            kinds.add("string" if part in ENUMS or part == "ModelProviderId" else "object")
        else:
            kinds.add({"Any": "any"}.get(part, part))
    return {"any"} if "any" in kinds else kinds


def _split_at_commas(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _kinds(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return _kinds(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches:
        found = set().union(*(_kinds(branch, definitions) for branch in branches)) - {"null"}
        return {"any"} if "any" in found else found
    if schema.get("format") == "date-time":
        return {"time"}
    return {schema["type"]} if "type" in schema else {"any"}


@pytest.mark.parametrize(("model", "member"), MEMBERS)
def test_models_have_the_published_members(model: str, member: str) -> None:
    published_as_property = member in TYPES[model]["properties"]

    assert isinstance(getattr(getattr(dtypes, model), member), property) == published_as_property


def test_every_field_has_a_description() -> None:
    """Every field has a docstring written for this project."""
    folder = Path(dtypes.__file__).parent
    silent = []
    for file in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name in MODELS:
                for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
                    if isinstance(statement, ast.AnnAssign) and not isinstance(following, ast.Expr):
                        silent.append(f"{node.name}.{ast.unparse(statement.target)}")
    assert silent == []
