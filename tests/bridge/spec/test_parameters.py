"""Values of task parameters: accepted and rejected values, and conversion of command line texts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.errors import SpecError
from aigo_bridge.spec.parameters import Parameter, parse_text, resolve_config, template_values

PARAMETER: TypeAdapter[Parameter] = TypeAdapter(Parameter)


def parameter(kind: str, **fields: Any) -> Parameter:
    return PARAMETER.validate_python({"type": kind, "key": "p", "display_name": "P", **fields})


def resolve(kind: str, value: Any, **fields: Any) -> Any:
    return resolve_config([parameter(kind, **fields)], {"p": value})["p"]


def typed(kind: str, text: str, **fields: Any) -> Any:
    """Return the value of a command line text."""
    one = parameter(kind, **fields)
    return resolve_config([one], {"p": parse_text(one, text)})["p"]


COLOURS = {"allowed_values": ["red", "green"]}


@pytest.mark.parametrize(
    ("kind", "fields", "value", "resolved"),
    [
        ("float", {}, 2, 2),
        ("float", {"min": 0, "max": 1}, 1.0, 1.0),
        ("int", {}, 3, 3),
        ("int", {}, 3.0, 3),
        ("int", {"min": 1, "max": 5}, 1, 1),
        ("boolean", {}, False, False),
        ("string", {}, "", ""),
        ("string", {}, "ja", "ja"),
        ("model", {}, "openai$gpt", "openai$gpt"),
        ("dataset", {}, "d", "d"),
        ("dataset_column", {}, "a b", "a b"),
        ("task_result", {}, "r", "r"),
        ("list", {"dtype": "integer"}, (1, 2), [1, 2]),
        ("list", {"dtype": "float"}, [1, 2.5], [1, 2.5]),
        ("list", {"dtype": "string"}, [], []),
        ("list", {"dtype": "boolean"}, [True], [True]),
        ("dict", {"value_dtype": "float"}, {"a": 1}, {"a": 1}),
        ("categorical", COLOURS, "red", "red"),
        ("categorical", {**COLOURS, "multiple": True}, "red", ["red"]),
        ("categorical", {**COLOURS, "multiple": True}, ["green", "red"], ["green", "red"]),
        ("int", {"nullable": True}, None, None),
    ],
)
def test_valid_values_are_accepted(kind: str, fields: dict[str, Any], value: Any, resolved: Any) -> None:
    found = resolve(kind, value, **fields)
    assert found == resolved
    assert type(found) is type(resolved)


@pytest.mark.parametrize(
    ("kind", "fields", "value", "expected"),
    [
        ("float", {}, "1", "a finite number"),
        ("float", {}, True, "a finite number"),
        ("float", {}, math.nan, "a finite number"),
        ("float", {}, math.inf, "a finite number"),
        ("float", {}, 10**400, "a finite number"),
        ("float", {"max": 1}, 1.5, "at most 1.0"),
        ("int", {}, 1.5, "a whole number"),
        ("int", {}, True, "a whole number"),
        ("int", {}, 2**63, "a whole number"),
        ("int", {}, math.inf, "a whole number"),
        ("int", {"min": 1}, 0, "at least 1"),
        ("int", {"min": 1, "max": 5}, 6, "a number from 1 to 5"),
        ("boolean", {}, 1, "true or false"),
        ("string", {}, 1, "text"),
        ("model", {}, ["a"], "text"),
        ("list", {"dtype": "integer"}, "1", "a list of integer values"),
        ("list", {"dtype": "integer"}, [1.0], "a list of integer values"),
        ("list", {"dtype": "integer"}, [True], "a list of integer values"),
        ("list", {"dtype": "float"}, [math.nan], "a list of float values"),
        ("list", {"dtype": "integer"}, [2**64], "a list of integer values"),
        ("dict", {"value_dtype": "string"}, {"a": 1}, "a mapping from texts to string values"),
        ("dict", {"value_dtype": "string"}, {1: "a"}, "a mapping from texts to string values"),
        ("categorical", COLOURS, "blue", "one of 'red', 'green'"),
        ("categorical", COLOURS, ["red"], "one of 'red', 'green'"),
        ("categorical", {**COLOURS, "multiple": True}, ["red", "blue"], "any of 'red', 'green'"),
        ("categorical", {**COLOURS, "multiple": True}, 4, "any of 'red', 'green'"),
        ("int", {}, None, "a value (the parameter is not nullable)"),
    ],
)
def test_invalid_values_are_rejected(kind: str, fields: dict[str, Any], value: Any, expected: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve(kind, value, **fields)
    (issue,) = caught.value.issues
    assert issue.message == f"parameter 'p': found {value!r}, expected {expected}"
    assert issue.path == ("config", "p")


@pytest.mark.parametrize(
    ("kind", "fields", "text", "value"),
    [
        ("int", {}, "12", 12),
        ("int", {}, "010", 10),
        ("int", {}, "1e3", 1000),
        ("int", {}, "-3", -3),
        ("float", {}, "1e5", 1e5),
        ("float", {}, "0.1", 0.1),
        ("float", {}, "7", 7.0),
        ("boolean", {}, "true", True),
        ("boolean", {}, "no", False),
        ("string", {}, "yes", "yes"),
        ("string", {}, "12", "12"),
        ("string", {}, "null", "null"),
        ("string", {"nullable": True}, "null", None),
        ("int", {"nullable": True}, "null", None),
        ("list", {"dtype": "integer"}, "[1, 2]", [1, 2]),
        ("list", {"dtype": "string"}, "[a, b c]", ["a", "b c"]),
        ("dict", {"value_dtype": "float"}, "{a: 1.5}", {"a": 1.5}),
        ("categorical", COLOURS, "red", "red"),
        ("categorical", {**COLOURS, "multiple": True}, "red, green", ["red", "green"]),
        ("categorical", {**COLOURS, "multiple": True}, "[green]", ["green"]),
        ("categorical", {**COLOURS, "multiple": True}, "", []),
        ("categorical", {**COLOURS, "multiple": True, "nullable": True}, "null", None),
    ],
)
def test_command_line_texts_are_converted(kind: str, fields: dict[str, Any], text: str, value: Any) -> None:
    found = typed(kind, text, **fields)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("int", {}, "many"),
        ("int", {}, "1:30"),
        ("int", {}, "1.5"),
        ("int", {}, ""),
        ("float", {}, "nan"),
        ("float", {}, "1,5"),
        ("boolean", {}, "1"),
        ("list", {"dtype": "integer"}, "1"),
        ("list", {"dtype": "integer"}, "[1"),
        ("dict", {"value_dtype": "string"}, "a=b"),
        ("list", {"dtype": "string"}, "[2024-01-01]"),
    ],
)
def test_invalid_command_line_texts_are_rejected(kind: str, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError, match="parameter 'p'"):
        typed(kind, text, **fields)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_integer_is_read_unchanged(number: int) -> None:
    assert typed("int", str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_unchanged(number: float) -> None:
    assert typed("float", repr(number)) == number


@given(st.text())
def test_text_parameter_is_used_unchanged(text: str) -> None:
    assert typed("string", text) == text


def test_defaults_are_used_and_validated() -> None:
    assert resolve_config([parameter("int", default_value=3)], {}) == {"p": 3}
    assert resolve_config([parameter("boolean", default_value=False)], {}) == {"p": False}
    assert resolve_config([parameter("int", nullable=True)], {}) == {"p": None}
    with pytest.raises(SpecError, match="expected at most 2"):
        resolve_config([parameter("int", default_value=3, max=2)], {})


def test_all_wrong_parameters_are_reported_together() -> None:
    parameters = [parameter("int"), parameter("string", key="tone"), parameter("int", key="n", max=1)]
    with pytest.raises(SpecError) as caught:
        resolve_config(parameters, {"tine": "dry", "n": 2, "zzz": 1})
    messages = [(issue.message, issue.hint) for issue in caught.value.issues]
    assert messages == [
        ("parameter 'p' (P) has no value", "set it with --config p=…"),
        ("parameter 'tone' (P) has no value", "set it with --config tone=…"),
        ("parameter 'n': found 2, expected at most 1", None),
        ("unknown parameter 'tine'", "did you mean 'tone'?"),
        ("unknown parameter 'zzz'", "task parameters: p, tone, n"),
    ]


def test_a_mapped_category_is_replaced_by_its_value() -> None:
    mapped = parameter("categorical", values_mapping={"red": 0}, **COLOURS)
    assert template_values([mapped], {"p": "red"}) == {"p": 0}
    assert template_values([mapped], {"p": "green"}) == {"p": "green"}
    assert template_values([mapped], {"p": ["red", "green"]}) == {"p": [0, "green"]}
    assert template_values([mapped], {"p": None}) == {"p": None}
