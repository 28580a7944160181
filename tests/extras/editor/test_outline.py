"""Outlines of complete and incomplete YAML texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import REPOSITORY

from aigo_editor.outline import Mapping, Scalar, Sequence, data_of, outline, spot_at

FILES = sorted(
    path
    for folder in ("examples", "tasks", "tests/conformance/features", "tests/golden/outputs/inputs")
    for path in (REPOSITORY / folder).rglob("*.yaml")
    if path.parent.name != "no-yaml"
)


_ALIAS = re.compile(r"[:\-\[,] \*\w")


class _Loader(yaml.SafeLoader):
    """YAML loader that reads includes as plain text."""


_Loader.add_constructor("!include", lambda loader, node: node.value)


def shape(value: Any) -> Any:
    """Return mappings and lists with scalars converted to text or `None`."""
    if isinstance(value, dict):
        return {str(key): shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "text"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_outline_of_a_file_matches_the_yaml_parser(path: Path) -> None:
    for text in path.read_text("utf-8").split("\n---\n"):  # one document per file
        if not _ALIAS.search(text):  # aliases are not resolved
            assert shape(data_of(outline(text))) == shape(yaml.load(text, _Loader))


_scalars = st.text("abc ö𝄞'\"#:-{}[]", max_size=8) | st.integers() | st.booleans()
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text("abc_-", min_size=1, max_size=5), inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@given(_values.filter(lambda value: isinstance(value, dict)), st.sampled_from([None, True, False]))
def test_outline_of_generated_yaml_matches_its_data(value: Any, flow: bool | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True, width=10_000, sort_keys=False)
    assert shape(data_of(outline(text))) == shape(value)


@given(st.text("ab: -{}[],'\"|>#&*!\n\t<%ö𝄞", max_size=60))
def test_outline_positions_are_nested_for_any_text(text: str) -> None:
    def check(node: Any, start: int, end: int) -> None:
        assert start <= node.start <= node.end <= end
        if isinstance(node, Mapping):
            for pair in node.pairs:
                assert node.start <= pair.start <= pair.end <= node.end
                if pair.value is not None:
                    check(pair.value, pair.end, node.end)
        elif isinstance(node, Sequence):
            for item in node.items:
                check(item, node.start, node.end)

    root = outline(text)
    check(root, 0, len(text))
    for offset in range(len(text) + 1):
        assert spot_at(root, offset).node is not None


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("key: a\nde\nother: b", {"key": "a", "de": None, "other": "b"}),
        ("de\nother: b", {"de": None, "other": "b"}),
        ("a: {b: c, d\ne: f", {"a": {"b": "c", "d": None}, "e": "f"}),
        ("a: [b, {c: d\ne: f", {"a": ["b", {"c": "d"}], "e": "f"}),
        ('a: "b\nc: d', {"a": "b", "c": "d"}),
        ("a:\n  - \n  - b: c\n    d", {"a": [None, {"b": "c", "d": None}]}),
        ("a:\n  b: c\n    d: e\nf: g", {"a": {"b": "c\n    d: e"}, "f": "g"}),
        ("a: |\n  x: y\n\n  z\nb: c", {"a": "  x: y\n\n  z", "b": "c"}),
        ("a: !include p.md # why\nb: {$ref: q.yaml}", {"a": "p.md", "b": {"$ref": "q.yaml"}}),
        ("a: 'it''s: {so'\nb: \"x\\\"y\"", {"a": "it''s: {so", "b": 'x\\"y'}),
        ("  a: b\nc: d", {"a": "b", "c": "d"}),
        ("", None),
        ("# nothing\n\n", None),
    ],
)
def test_incomplete_lines_do_not_affect_surrounding_data(text: str, data: object) -> None:
    assert data_of(outline(text)) == data


def test_extremely_deep_nesting_is_parsed() -> None:
    for text in (
        "[" * 10_000,
        "{a: " * 10_000,
        "- " * 10_000,
        "a:\n" + "".join(" " * n + "b:\n" for n in range(1, 400)),
    ):
        assert outline(text) is not None


def test_offset_resolves_to_the_key_or_value_at_that_position() -> None:
    text = "a:\n  - b: 𝄞 c\n  - d"
    root = outline(text)

    key = spot_at(root, text.index("b"))
    value = spot_at(root, text.index("c") + 1)
    item = spot_at(root, len(text))

    assert key.pair is not None
    assert (key.path, key.pair.key) == (("a", 0), "b")
    assert isinstance(value.node, Scalar)
    assert (value.path, value.node.text) == (("a", 0, "b"), "𝄞 c")
    assert item.path == ("a", 1)
