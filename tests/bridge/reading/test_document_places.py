"""Positions inside texts, however YAML writes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import Issue
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

HEAD = 'key: a\ndisplay_name: A\ndescription: ""\n'
TAIL = "definition: {scorers: []}\n"

STYLES = {
    "literal": "long_description: |\n\n  first line\n    second X here\n\n  third\n",
    "literal with indicator": "long_description: |2-\n  first line\n    second X here\n",
    "folded": "long_description: >\n  first line\n  second\n  X here\n",
    "plain": "long_description: first line\n  second X here\n",
    "double": 'long_description: "first\\nline \\"second\\" \\u0041\n  X here"\n',
    "single": "long_description: 'first ''line''\n\n  second X here'\n",
}


@pytest.mark.parametrize("style", STYLES)
def test_position_in_a_text_is_found_in_every_yaml_style(style: str, tmp_path: Path) -> None:
    text = HEAD + STYLES[style] + TAIL
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    document = read(TaskSpec, tmp_path / "t.yaml")
    value = document.spec.long_description or ""
    at = value.index("X")
    line, column = value.count("\n", 0, at) + 1, at - value.rfind("\n", 0, at)
    place = document.locate(("long_description",), line=line, column=column)
    wanted = text.index("X")
    assert (place.line, place.column) == (
        text.count("\n", 0, wanted) + 1,
        wanted - text.rfind("\n", 0, wanted),
    )
    assert place.source_line is not None
    assert place.source_line[place.column - 1] == "X"


@pytest.mark.parametrize("style", [">", "|"])
def test_line_without_a_column_is_found_in_an_indented_text(style: str, tmp_path: Path) -> None:
    text = f"{HEAD}long_description: {style}\n  {{\n    first,\n    X here\n  }}\n{TAIL}"
    (tmp_path / "t.yaml").write_text(text, encoding="utf-8")
    place = read(TaskSpec, tmp_path / "t.yaml").locate(("long_description",), line=3)
    assert (place.column, place.source_line) == (5, "    X here")


def test_position_in_an_included_text_counts_stripped_lines(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("\n\n   first\nsecond X\n\n", encoding="utf-8")
    (tmp_path / "t.yaml").write_text(f"{HEAD}long_description: !include x.md\n{TAIL}", encoding="utf-8")
    document = read(TaskSpec, tmp_path / "t.yaml")
    first = document.locate(("long_description",), line=1, column=1)
    assert (first.file, first.line, first.column) == (str(tmp_path / "x.md"), 3, 4)
    second = document.locate(("long_description",), line=2, column=8)
    assert (second.line, second.column, second.source_line) == (4, 8, "second X")
    assert document.locate(("long_description",)).file == str(tmp_path / "t.yaml")


def test_positions_of_keys_values_and_unknown_paths_are_found(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(HEAD + "tags: [a, bb]\n" + TAIL, encoding="utf-8")
    document = read(TaskSpec, tmp_path / "t.yaml")
    for path, key, expected in (
        (("tags",), False, (4, 7)),
        (("tags",), True, (4, 1)),
        (("tags", 1), False, (4, 11)),
        (("tags", 9), False, (4, 7)),
        (("nothing", "there"), False, (1, 1)),
        ((), False, (1, 1)),
    ):
        place = document.locate(path, key=key)
        assert (place.line, place.column) == expected, path


def test_later_issue_gets_its_position_from_the_document(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(HEAD + "tags: [a, bb]\n" + TAIL, encoding="utf-8")
    issue = read(TaskSpec, tmp_path / "t.yaml").place(Issue("no such column", path=("tags", 1)))
    assert (issue.file, issue.line, issue.column, issue.source_line) == (
        str(tmp_path / "t.yaml"),
        4,
        11,
        "tags: [a, bb]",
    )


@given(
    st.lists(st.text(alphabet="ab \n\t\"\\'#:é\U0001f600", max_size=12), min_size=1, max_size=4).map(
        "X".join
    ),
    st.integers(0, 100),
)
def test_position_in_any_quoted_text_is_found(text: str, which: int) -> None:
    text += "X"
    source = HEAD + "long_description: " + json.dumps(text, ensure_ascii=False) + "\n" + TAIL
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.yaml")
        path.write_text(source, encoding="utf-8")
        document = read(TaskSpec, path)
    assert document.spec.long_description == text
    found = [index for index, letter in enumerate(text) if letter == "X"]
    at = found[which % len(found)]
    place = document.locate(
        ("long_description",), line=text.count("\n", 0, at) + 1, column=at - text.rfind("\n", 0, at)
    )
    wanted = [index for index, letter in enumerate(source) if letter == "X"][found.index(at)]
    assert (place.line, place.column) == (
        source.count("\n", 0, wanted) + 1,
        wanted - source.rfind("\n", 0, wanted),
    )
