"""`<< config.x >>`: inserted values, their types, and errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import bind_config, config_names, is_config_template

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("value", [3, 2.5, True, None, "text", ["a", 1], {"a": {"b": 1}}])
@pytest.mark.parametrize("text", ["<< config.x >>", "<<config.x>>", "  <<  config.x  >>\n"])
def test_a_whole_value_keeps_its_type(text: str, value: Any) -> None:
    bound = bind_config({"field": text}, {"x": value})
    assert bound == {"field": value}
    assert type(bound["field"]) is type(value)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (True, "True"),
        (None, "None"),
        (["a"], "['a']"),
        (1.0, "1.0"),
        ("plain", "plain"),
        ("{{ y }}", "{{ y }}"),
    ],
)
def test_value_inside_a_text_is_written_as_in_python(value: Any, printed: str) -> None:
    assert bind_config("if << config.x >>:", {"x": value}) == f"if {printed}:"


def test_all_markers_of_a_text_are_filled() -> None:
    assert bind_config("<< config.a >>-<< config.b >>-<< config.a >>", {"a": 1, "b": 2}) == "1-2-1"


def test_parameter_can_be_part_of_a_sample_template() -> None:
    assert bind_config("{{ sample.<< config.col >> }}", {"col": "question"}) == "{{ sample.question }}"
    assert (
        bind_config("{% if << config.flag >> %}y{% endif %}", {"flag": False}) == "{% if False %}y{% endif %}"
    )


def test_nested_and_dotted_parameter_names_are_found() -> None:
    config = {"judge": {"model": "m"}, "a.b": "dotted", "a": {"b": "nested"}}
    assert bind_config("<< config.judge.model >>", config) == "m"
    assert bind_config("<< config.a.b >>", config) == "dotted"
    assert bind_config("<< config.é-ü >>", {"é-ü": 1}) == 1


@pytest.mark.parametrize(
    "code", ["1 << 3", "x = 1 << config", "a << b.c >> d", "print(1<<2>>1)", "<<", ">> <<"]
)
def test_python_shift_operators_are_kept(code: str) -> None:
    assert bind_config(code, {"x": 1}) == code


def test_inserted_value_is_not_expanded_again() -> None:
    assert bind_config("<< config.a >> .", {"a": "<< config.b >>", "b": "no"}) == "<< config.b >> ."
    assert bind_config("<< config.a >>", {"a": "<< config.b >>", "b": "no"}) == "<< config.b >>"


def test_an_inserted_list_is_a_copy() -> None:
    config = {"x": [1, {"y": 2}]}
    bound = bind_config(["<< config.x >>"], config)
    bound[0][1]["y"] = 3
    assert config == {"x": [1, {"y": 2}]}


def test_markers_in_keys_are_not_replaced() -> None:
    assert bind_config({"<< config.x >>": 1}, {"x": "k"}) == {"<< config.x >>": 1}


def test_unknown_names_are_reported_with_path_line_and_suggestion() -> None:
    tree = {"a": ["<< config.temperatur >>"], "b": {"c": "line one\nand << config.nothing >> here"}}
    with pytest.raises(TemplateError) as raised:
        bind_config(tree, {"temperature": 1, "seed": 2})
    first, second = raised.value.issues
    assert first.path == ("a", 0)
    assert "unknown parameter `config.temperatur`; known: temperature, seed" in first.message
    assert first.hint == "did you mean `config.temperature`?"
    assert second.path == ("b", "c")
    assert (second.line, second.column) == (2, 5)
    assert second.hint is None


def test_a_name_below_a_plain_value_is_reported() -> None:
    with pytest.raises(TemplateError, match=r"`config\.x` has no parts"):
        bind_config("<< config.x.y >>", {"x": 3})


def test_unknown_name_below_a_mapping_is_reported_with_known_names() -> None:
    with pytest.raises(TemplateError, match=r"unknown parameter `config\.x\.z`; known: y"):
        bind_config("<< config.x.z >>", {"x": {"y": 3}})


@pytest.mark.parametrize("text", ["<< Config.x >>", "a << confg.x >> b", "<< secret.x >>"])
def test_a_misspelt_root_is_reported(text: str) -> None:
    with pytest.raises(TemplateError, match="did you mean"):
        bind_config(text, {"x": 1}, secrets={"x": "s"})


def test_secrets_are_filled_only_if_available() -> None:
    assert bind_config("<< secrets.KEY >>", {}, secrets={"KEY": "s3"}) == "s3"
    with pytest.raises(TemplateError, match="is not available here"):
        bind_config("<< secrets.KEY >>", {})


def test_too_long_text_is_an_error() -> None:
    with pytest.raises(TemplateError, match="longer than"):
        bind_config("<< config.x >> " * 100, {"x": "y" * 1_000_000})


def test_config_names_are_listed_in_order_of_first_use() -> None:
    text = "<< config.b >> << config.a.c >> << config.b >> << secrets.s >> 1 << 2"
    assert config_names(text) == ["b", "a.c"]


def test_whole_marker_is_a_config_template() -> None:
    assert is_config_template(" << config.x >> ")
    assert not is_config_template("x << config.x >>")
    assert not is_config_template(3)


@given(json_values)
def test_tree_without_markers_is_unchanged(tree: Any) -> None:
    if "<<" not in str(tree):
        assert bind_config(tree, {"x": 1}) == tree


@given(json_values)
def test_any_value_is_inserted_unchanged(value: Any) -> None:
    assert bind_config(["<< config.x >>"], {"x": value}) == [value]


@pytest.mark.parametrize("text", ["<< config.a >>", "x << config.a >>"])
@pytest.mark.parametrize("value", ["y" * 1_000_000, list(range(20_000))])
def test_size_limit_counts_inserted_values_of_the_whole_document(text: str, value: Any) -> None:
    with pytest.raises(TemplateError, match="make the document longer than") as error:
        bind_config([text] * 200, {"a": value})
    assert len(error.value.issues) == 1


@pytest.mark.parametrize("marker", ["<< config.zzz >>\n", "<< confg.a >>\n"])
def test_at_most_a_thousand_errors_are_reported(marker: str) -> None:
    with pytest.raises(TemplateError) as error:
        bind_config(marker * 100_000, {"a": 1})
    assert len(error.value.issues) == 1_000
