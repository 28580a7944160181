"""CSV: types per column, missing cells, and everything that is wrong at once."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aigo_bridge.datasets import Selection, load_file
from aigo_bridge.errors import DatasetError


def load(folder: Path, text: str | bytes, **options: Any) -> list[dict[str, Any]]:
    path = folder / "data.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [row.data for row in load_file(path, **options).rows]


def column(folder: Path, *cells: str) -> list[Any]:
    return [row["x"] for row in load(folder, "x,y\n" + "".join(f"{cell},.\n" for cell in cells))]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        (["1", "2.5"], [1.0, 2.5]),
        ([".5", "1e3", "-1.5E-2"], [0.5, 1000.0, -0.015]),
        (["true", "False", "TRUE"], [True, False, True]),
        (["true", "1"], ["true", "1"]),
        (["007", "1"], ["007", "1"]),
        (["+41", "1"], ["+41", "1"]),
        ([" 5", "5"], [" 5", "5"]),
        (["1_000"], ["1_000"]),
        (["1234567890123456789", "1"], ["1234567890123456789", "1"]),
        (["123456789012345678"], [123456789012345678]),
        (["2024-01-01"], ["2024-01-01"]),
        (["inf", "nan", "1"], ["inf", "nan", "1"]),
        (["None", "null", "NA"], ["None", "null", "NA"]),
        (["yes", "no"], ["yes", "no"]),
        (["٣"], ["٣"]),
        (["0x10", "1e5000"], ["0x10", "1e5000"]),
        (["", "text"], ["", "text"]),
        (["", ""], ["", ""]),
    ],
)
def test_a_column_has_one_type(tmp_path: Path, cells: list[str], values: list[Any]) -> None:
    found = column(tmp_path, *cells)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_an_empty_cell_of_a_typed_column_is_missing_and_keeps_integers(tmp_path: Path) -> None:
    text = "n,b,t\n1,true,x\n,,\n"
    first, second = load(tmp_path, text)
    assert first == {"n": 1, "b": True, "t": "x"}
    assert type(first["n"]) is int
    assert math.isnan(second["n"])
    assert math.isnan(second["b"])
    assert second["t"] == ""
    assert load(tmp_path, text, missing="none")[1] == {"n": None, "b": None, "t": ""}
    assert load(tmp_path, text, missing="absent")[1] == {"t": ""}


def test_a_short_row_lacks_its_last_cells(tmp_path: Path) -> None:
    assert load(tmp_path, "a,b\nx\n", missing="none") == [{"a": "x", "b": None}]


def test_types_do_not_depend_on_how_many_rows_are_selected(tmp_path: Path) -> None:
    text = "x\n1\n2\nthree\n"
    assert load(tmp_path, text, selection=Selection(1)) == [{"x": "1"}]


def test_quotes_newlines_unicode_and_bom(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfa,b\r\n"x, ""y""\nz",\xe2\x80\xa8\xf0\x9f\x98\x80\r\n\r\nlast,row'
    assert load(tmp_path, text) == [{"a": 'x, "y"\nz', "b": "\u2028😀"}, {"a": "last", "b": "row"}]


def test_blank_lines_are_not_rows_and_row_numbers_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n\n1,2\n\n\n3,4\n")
    assert [row.sample_id for row in load_file(path).rows] == [0, 1]


def test_a_header_alone_is_a_data_set_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n")
    rows = load_file(path)
    assert (len(rows), rows.columns, rows.total) == (0, ("a", "b"), 0)


def test_all_problems_are_reported_with_their_lines(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as raised:
        load(tmp_path, b'a,b\n1,2,3\n"multi\nline",2,3\n"x"y,1\n\xff,1\n5,6\n')
    found = [(issue.line, issue.message) for issue in raised.value.issues]
    assert found == [
        (2, "found 3 cells, expected 2 as in the header"),
        (3, "found 3 cells, expected 2 as in the header"),
        (5, "not CSV: ',' expected after '\"'"),
        (6, "byte 1 is not UTF-8 (0xFF)"),
    ]
    assert all(issue.file == str(tmp_path / "data.csv") for issue in raised.value.issues)


def test_a_file_of_windows_is_told_with_the_way_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "mein export.csv"
    path.write_bytes("frage,antwort\nWo?,Zürich\n".encode("cp1252"))
    with pytest.raises(DatasetError) as raised:
        load_file(path)
    (issue,) = raised.value.issues
    assert (issue.line, issue.message) == (2, "byte 6 is not UTF-8 (0xFC)")
    assert issue.hint == (
        "in Windows-1252 it is 'ü'; if that is meant, convert the file to UTF-8:"
        " iconv -f CP1252 -t UTF-8 'mein export.csv' > 'mein export.utf8.csv'"
    )


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_suspected(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"question{separator}answer\nWhere?{separator}there\n")
    (doubt,) = load_file(path).warnings
    assert (doubt.severity, doubt.line, doubt.column) == ("warning", 1, 1)
    assert doubt.message == (
        f"the only column is {f'question{separator}answer'!r}: {separator!r} seems to separate the cells, expected ','"
    )
    path.write_text(f"question{separator}answer\nWhere, please?{separator}there\n")
    with pytest.raises(DatasetError) as raised:
        load_file(path)
    assert raised.value.issues[0].hint == f"{separator!r} seems to separate the cells, and only commas do"


def test_columns_with_semicolons_in_their_names_are_nothing_odd(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a;b,c\n1,2\n")
    assert load_file(path).warnings == ()


def test_rows_that_are_too_short_are_told(tmp_path: Path) -> None:
    """They are taken, as the platform takes them, but a forgotten comma moves every cell behind it."""
    path = tmp_path / "d.csv"
    path.write_text("a,b,c\n1,2,3\n\n1,2\n1,2,3\n1\n")
    rows = load_file(path)
    assert len(rows) == 4
    assert [(issue.severity, issue.line, issue.message) for issue in rows.warnings] == [
        (
            "warning",
            4,
            "2 rows have fewer cells than the header, the first in this line; their last columns are missing values",
        )
    ]


def test_of_many_problems_twenty_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as raised:
        load(tmp_path, "a\n" + "1,2\n" * 1_020)
    assert len(raised.value.issues) == 21
    assert raised.value.issues[-1].message == "and 1,000 more problems"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"a,b,a\n1,2,3\n", "the column 'a' occurs twice"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        (b'a,b\n"never closed,1\n2,3\n', "not CSV"),
        (b"a,b\r1,2\r", "not CSV"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load(tmp_path, content)


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    assert len(load(tmp_path, "a,b\n" + "x" * 1_000_000 + ",1\n")[0]["a"]) == 1_000_000


_cells = st.text(
    alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0"), min_size=1
)


@given(st.lists(_cells, min_size=1, max_size=8))
@example(["True"])
@example(["007", "1e5"])
def test_every_cell_is_recovered_or_typed_without_loss(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["x", "tail"], *([cell, "t"] for cell in cells)])
    path = tmp_path_factory.mktemp("csv") / "d.csv"
    path.write_bytes(buffer.getvalue().encode())
    found = [row.data["x"] for row in load_file(path).rows]
    for cell, value in zip(cells, found, strict=True):
        if isinstance(value, bool):
            assert str(value).lower() == cell.lower()
        else:
            assert value == (cell if isinstance(value, str) else float(cell))
