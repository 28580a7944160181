"""Dataset filters and action rules: results of each operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.filtering import CompiledFilter, Semantics, matches
from aigo_bridge.errors import DatasetError, TemplateError
from aigo_bridge.spec.base import Filter

FILTER: TypeAdapter[Filter] = TypeAdapter(Filter)
NAN = float("nan")


def rule(op: str, *constants: Any, expression: str = "{{ sample.x }}") -> Filter:
    written: dict[str, Any] = {"op": op, "expression": expression}
    if op in ("in", "not_in"):
        written["values"] = list(constants)
    elif constants:
        (written["value"],) = constants
    return FILTER.validate_python(written)


def ask(semantics: Semantics, op: str, value: Any, *constants: Any) -> bool:
    return matches(rule(op, *constants), semantics=semantics, sample={"x": value})


@pytest.mark.parametrize(
    ("value", "constant", "expected"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, True),
        (1, "1", False),
        ("1", 1, True),
        ("1", "1", False),
        ("a", "a", True),
        ("'a'", "a", True),
        ("True", True, True),
        ("true", True, False),
        ("true", "true", True),
        ("01234", "01234", True),
        ("2024-01-01", "2024-01-01", True),
        (" 3", " 3", True),
        ("None", "None", False),
        (None, "None", False),
        ("[1]", "[1]", False),
    ],
)
def test_dataset_filter_compares_equality_with_types(value: Any, constant: Any, expected: bool) -> None:
    assert ask("dataset", "equals", value, constant) is expected
    assert ask("dataset", "not_equals", value, constant) is not expected
    assert ask("dataset", "in", value, "other", constant) is expected
    assert ask("dataset", "not_in", value, "other", constant) is not expected


@pytest.mark.parametrize(
    ("value", "constant", "expected"),
    [
        (3, "3", True),
        ("3", 3, True),
        (True, "true", True),
        (True, "True", True),
        ("x", "y", False),
        (None, "None", True),
    ],
)
def test_action_rule_also_compares_equality_as_text(value: Any, constant: Any, expected: bool) -> None:
    assert ask("action", "equals", value, constant) is expected
    assert ask("action", "not_equals", value, constant) is not expected
    assert ask("action", "in", value, "-", constant) is expected
    assert ask("action", "not_in", value, "-", constant) is not expected


@pytest.mark.parametrize(
    ("op", "value", "constant", "expected"),
    [
        ("greater_than", 2, 1, True),
        ("greater_than", 1, 1, False),
        ("greater_or_equal", 1, 1.0, True),
        ("less_than", "1.5", 2, True),
        ("less_or_equal", True, 1, True),
        ("less_than", 3, 2, False),
    ],
)
def test_ordering_operators_compare_numbers(op: str, value: Any, constant: Any, expected: bool) -> None:
    assert ask("dataset", op, value, constant) is expected
    assert ask("action", op, value, constant) is expected


@pytest.mark.parametrize(("value", "constant"), [("abc", 1), (None, 1), ([1], 1), (1, "1"), ("", 1)])
def test_ordering_of_non_numeric_values_fails_in_a_dataset_filter(value: Any, constant: Any) -> None:
    with pytest.raises(TemplateError, match="expected a number"):
        ask("dataset", "greater_than", value, constant)


def test_action_rule_orders_only_numbers_and_numeric_text() -> None:
    assert ask("action", "greater_than", "3", "2.5")
    with pytest.raises(TemplateError, match="found 'abc', expected a number"):
        ask("action", "greater_than", "abc", 1)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), (False, False), ("True", True), ("False", False)]
)
def test_dataset_filter_is_true_accepts_booleans(value: Any, expected: bool) -> None:
    assert ask("dataset", "is_true", value) is expected
    assert ask("dataset", "is_false", value) is not expected


@pytest.mark.parametrize("value", [1, 0, "true", "yes", None, "", NAN, [True]])
def test_dataset_filter_is_true_refuses_other_values(value: Any) -> None:
    for op in ("is_true", "is_false"):
        with pytest.raises(TemplateError, match="expected true or false"):
            ask("dataset", op, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (1, True), (2.5, True), ("yes", True), (" TRUE ", True), ("1", True), (0, False), ("no", False),
     (None, False), (NAN, False), ("", False), ([1], False)],
)  # fmt: skip
def test_action_rule_is_true_accepts_numbers_and_text(value: Any, expected: bool) -> None:
    assert ask("action", "is_true", value) is expected
    assert ask("action", "is_false", value) is not expected


@pytest.mark.parametrize(
    ("value", "in_action"), [(1, True), ("", True), (None, False), (NAN, False), ("None", True)]
)
def test_exists_is_false_only_for_missing_values_in_an_action_rule(value: Any, in_action: bool) -> None:
    assert ask("dataset", "exists", value)
    assert not ask("dataset", "not_exists", value)
    assert ask("action", "exists", value) is in_action
    assert ask("action", "not_exists", value) is not in_action


@pytest.mark.parametrize("semantics", ["dataset", "action"])
@pytest.mark.parametrize("expression", ["{{ sample.gone }}", "{{ sample.gone.deeper }}", "{{ gone }}"])
def test_missing_column_does_not_exist(semantics: Semantics, expression: str) -> None:
    assert not matches(rule("exists", expression=expression), semantics=semantics, sample={})
    assert matches(rule("not_exists", expression=expression), semantics=semantics, sample={})


@pytest.mark.parametrize(
    ("op", "constants", "in_action"),
    [("equals", ("x",), False), ("not_equals", ("x",), True), ("in", ("x",), False), ("not_in", ("x",), True),
     ("is_true", (), False), ("is_false", (), False), ("greater_than", (1,), False)],
)  # fmt: skip
def test_undefined_name_fails_in_a_dataset_filter_but_not_in_an_action_rule(
    op: str, constants: tuple[Any, ...], in_action: bool
) -> None:
    with pytest.raises(TemplateError, match=r"`sample\.x` is undefined"):
        matches(rule(op, *constants), sample={"y": 1})
    assert matches(rule(op, *constants), semantics="action", sample={"y": 1}) is in_action


def test_an_action_rule_sees_scores() -> None:
    other = rule("equals", "OTHER", expression="{{ scores.labeller.label }}")
    assert matches(other, semantics="action", sample={}, scores={"labeller": {"label": "OTHER"}})


def test_failing_expression_is_an_error_in_filters_and_rules() -> None:
    broken = rule("exists", expression="{{ 1 / 0 }}")
    for semantics in ("dataset", "action"):
        with pytest.raises(TemplateError, match="division by zero"):
            CompiledFilter(broken, semantics).matches({})


def test_selection_applies_to_rows_that_pass_all_filters(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f'{{"n": {n}, "kind": "{"ab"[n % 2]}"}}\n' for n in range(10)))
    filters = [
        rule("equals", "a", expression="{{ kind }}"),
        rule("greater_than", 2, expression="{{ sample.n }}"),
    ]
    rows = load_file(path, filters=filters)
    assert [row.data["n"] for row in rows.rows] == [4, 6, 8]
    assert [row.sample_id for row in rows.rows] == [4, 6, 8]
    assert rows.total == 3


def test_csv_filters_see_text_and_types_are_inferred_from_passing_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("n,keep\n1,True\nx,False\n2,True\n")
    rows = load_file(path, filters=[rule("is_true", expression="{{ keep }}")])
    assert [row.data for row in rows.rows] == [{"n": 1, "keep": True}, {"n": 2, "keep": True}]
    assert len(load_file(path, filters=[rule("equals", 2, expression="{{ n }}")])) == 1
    assert len(load_file(path, filters=[rule("equals", "2", expression="{{ n }}")])) == 0


def test_a_failing_filter_names_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("n\n1\nx\n2\n\ny\n")
    with pytest.raises(DatasetError) as raised:
        load_file(path, filters=[rule("greater_than", 0, expression="{{ n }}")])
    assert [issue.line for issue in raised.value.issues] == [3, 6]
    assert (
        "filter: `greater_than` of '{{ n }}' found 'x', expected a number" in raised.value.issues[0].message
    )


def test_an_invalid_filter_template_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("n\n1\n")
    with pytest.raises(TemplateError, match="unexpected"):
        load_file(tmp_path / "d.csv", filters=[rule("exists", expression="{{ n")])


_values = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
_constants = st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)


@given(_values, st.lists(_constants, max_size=4), st.sampled_from(["dataset", "action"]))
def test_operator_in_means_equal_to_any_value(value: Any, constants: list[Any], semantics: Semantics) -> None:
    found = ask(semantics, "in", value, *constants)
    assert found == any(ask(semantics, "equals", value, constant) for constant in constants)
    assert ask(semantics, "not_in", value, *constants) is not found
