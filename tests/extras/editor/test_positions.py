"""Columns in UTF-8, UTF-16 and UTF-32, and the underlined ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import Issue
from aigo_editor.positions import Lines, Unit

UNITS: tuple[Unit, ...] = ("utf-8", "utf-16", "utf-32")
TEXT = "a𝄞b\nöx\n"


@pytest.mark.parametrize(("unit", "column"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_column_of_a_non_bmp_character_depends_on_the_position_encoding(unit: Unit, column: int) -> None:
    lines = Lines(TEXT)

    assert lines.place(TEXT.index("b"), unit) == (0, column)
    assert lines.offset(0, column, unit) == TEXT.index("b")
    assert lines.place(TEXT.index("x"), unit) == (1, 2 if unit == "utf-8" else 1)


def test_column_inside_a_character_maps_to_its_start() -> None:
    assert Lines(TEXT).offset(0, 2, "utf-16") == 1
    assert Lines(TEXT).offset(0, 3, "utf-8") == 1


def test_positions_outside_the_text_map_to_the_nearest_offset() -> None:
    lines = Lines(TEXT)

    assert lines.offset(0, 99) == 3
    assert lines.offset(99, 0) == len(TEXT)
    assert lines.offset(-1, 0) == 0
    assert lines.line(7) == ""


@given(st.text("aö€𝄞\n", max_size=30), st.sampled_from(UNITS))
def test_offsets_survive_a_round_trip_through_positions(text: str, unit: Unit) -> None:
    lines = Lines(text)
    for offset in range(len(text) + 1):
        assert lines.offset(*lines.place(offset, unit), unit) == offset


@pytest.mark.parametrize(
    ("line", "column", "underlined"),
    [
        ("  kye: value # why", 3, "kye"),
        ("  key: some value # why", 8, "some value"),
        ('  key: "some: value", b', 8, '"some: value"'),
        ("  {a: b, c: d}", 7, "b"),
        ("  key:", 7, ":"),
    ],
)
def test_diagnostics_underline_the_word_or_value(line: str, column: int, underlined: str) -> None:
    text = f"first: line\n{line}\n"
    span = Lines(text).span_of(Issue("wrong", line=2, column=column))
    assert text[span.start : span.end] == underlined


def test_file_level_issue_underlines_the_first_line() -> None:
    assert Lines("one\ntwo").span_of(Issue("wrong")).end == 3
