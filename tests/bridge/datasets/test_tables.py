"""CSV, JSON and Parquet files: column types, missing cells, and all errors together."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import json
import math
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Rows, Selection
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
def test_csv_column_has_one_type(tmp_path: Path, cells: list[str], values: list[Any]) -> None:
    found = column(tmp_path, *cells)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_empty_cell_is_missing_and_the_column_stays_integer(tmp_path: Path) -> None:
    text = "n,b,t\n1,true,x\n,,\n"
    first, second = load(tmp_path, text)
    assert first == {"n": 1, "b": True, "t": "x"}
    assert type(first["n"]) is int
    assert math.isnan(second["n"])
    assert math.isnan(second["b"])
    assert second["t"] == ""
    assert load(tmp_path, text, missing="none")[1] == {"n": None, "b": None, "t": ""}
    assert load(tmp_path, text, missing="absent")[1] == {"t": ""}


def test_last_cells_of_a_short_row_are_missing(tmp_path: Path) -> None:
    assert load(tmp_path, "a,b\nx\n", missing="none") == [{"a": "x", "b": None}]


def test_types_do_not_depend_on_how_many_rows_are_selected(tmp_path: Path) -> None:
    text = "x\n1\n2\nthree\n"
    assert load(tmp_path, text, selection=Selection(1)) == [{"x": "1"}]


def test_csv_quotes_newlines_unicode_and_bom_are_read(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfa,b\r\n"x, ""y""\nz",\xe2\x80\xa8\xf0\x9f\x98\x80\r\n\r\nlast,row'
    assert load(tmp_path, text) == [{"a": 'x, "y"\nz', "b": "\u2028😀"}, {"a": "last", "b": "row"}]


def test_blank_lines_are_not_rows_and_row_numbers_are_ids(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n\n1,2\n\n\n3,4\n")
    assert [row.sample_id for row in load_file(path).rows] == [0, 1]


def test_csv_with_only_a_header_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n")
    rows = load_file(path)
    assert (len(rows), rows.columns, rows.total) == (0, ("a", "b"), 0)


def test_all_csv_errors_are_reported_with_their_lines(tmp_path: Path) -> None:
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


def test_a_windows_encoding_is_reported_with_a_conversion_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
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
def test_other_csv_separator_is_a_warning(separator: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"question{separator}answer\nWhere?{separator}there\n")
    (doubt,) = load_file(path).warnings
    assert (doubt.severity, doubt.line, doubt.column) == ("warning", 1, 1)
    assert doubt.message == (
        f"the only column is {f'question{separator}answer'!r}; the cells seem to be separated by {separator!r}, expected ','"
    )
    path.write_text(f"question{separator}answer\nWhere, please?{separator}there\n")
    with pytest.raises(DatasetError) as raised:
        load_file(path)
    assert (
        raised.value.issues[0].hint
        == f"the cells seem to be separated by {separator!r}; only commas are supported"
    )


def test_semicolon_in_a_column_name_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a;b,c\n1,2\n")
    assert load_file(path).warnings == ()


def test_short_rows_are_reported(tmp_path: Path) -> None:
    """They are accepted, as on the platform, but a forgotten comma shifts all cells after it."""
    path = tmp_path / "d.csv"
    path.write_text("a,b,c\n1,2,3\n\n1,2\n1,2,3\n1\n")
    rows = load_file(path)
    assert len(rows) == 4
    assert [(issue.severity, issue.line, issue.message) for issue in rows.warnings] == [
        (
            "warning",
            4,
            "2 rows have fewer cells than the header, first in this line; the missing cells have no value",
        )
    ]


def test_first_twenty_problems_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
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


def test_long_csv_cell_is_read(tmp_path: Path) -> None:
    assert len(load(tmp_path, "a,b\n" + "x" * 1_000_000 + ",1\n")[0]["a"]) == 1_000_000


_cells = st.text(
    alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0"), min_size=1
)


@given(st.lists(_cells, min_size=1, max_size=8))
@example(["True"])
@example(["007", "1e5"])
def test_csv_cells_are_typed_without_loss(tmp_path_factory: pytest.TempPathFactory, cells: list[str]) -> None:
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


def lines(folder: Path, text: str | bytes, **options: Any) -> Rows:
    path = folder / "data.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_file(path, **options)


def test_json_types_are_kept(tmp_path: Path) -> None:
    row = {"i": 1, "f": 1.0, "s": "1", "b": True, "n": None, "l": [1, {"x": "y"}], "u": "é😀\u2028"}
    found = lines(tmp_path, json.dumps(row, ensure_ascii=False) + "\n").rows[0].data
    assert found == row
    assert [type(value) for value in found.values()] == [type(value) for value in row.values()]


def test_integers_stay_exact_and_nan_is_accepted(tmp_path: Path) -> None:
    found = (
        lines(tmp_path, '{"big": 123456789012345678901234567890, "nan": NaN, "inf": -Infinity}\n')
        .rows[0]
        .data
    )
    assert found["big"] == 123456789012345678901234567890
    assert math.isnan(found["nan"])
    assert found["inf"] == -math.inf


def test_a_key_missing_in_some_rows_is_nan_null_or_absent(tmp_path: Path) -> None:
    text = '{"a": 1}\n{"b": 2}\n'
    rows = lines(tmp_path, text)
    assert rows.columns == ("a", "b")
    assert math.isnan(rows.rows[0].data["b"])
    assert math.isnan(rows.rows[1].data["a"])
    assert [row.data for row in lines(tmp_path, text, missing="none").rows] == [
        {"a": 1, "b": None},
        {"a": None, "b": 2},
    ]
    assert [row.data for row in lines(tmp_path, text, missing="absent").rows] == [{"a": 1}, {"b": 2}]


def test_explicit_null_is_kept(tmp_path: Path) -> None:
    assert lines(tmp_path, '{"a": null}\n').rows[0].data == {"a": None}


def test_jsonl_blank_lines_bom_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    rows = lines(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n   \n{"a": 2}')
    assert [(row.sample_id, row.data) for row in rows.rows] == [(0, {"a": 1}), (1, {"a": 2})]


def test_all_invalid_lines_are_reported(tmp_path: Path) -> None:
    text = b'{"a": 1}\n[1]\n\n{"a"\n"text"\n{"a": "\xff"}\nnull\n' + b"[" * 100_000 + b"\n3\n"
    with pytest.raises(DatasetError) as raised:
        lines(tmp_path, text)
    assert [(issue.line, issue.message) for issue in raised.value.issues] == [
        (2, "found a list, expected an object with one key per column"),
        (4, "not JSON: expecting ':' delimiter at character 5"),
        (5, "found a text, expected an object with one key per column"),
        (6, "not JSON: byte 8 is not UTF-8 (0xFF)"),
        (7, "found null, expected an object with one key per column"),
        (8, "not JSON: nested too deeply"),
        (9, "found a number, expected an object with one key per column"),
    ]


def test_invalid_line_is_reported_with_its_column_and_a_fix(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as raised:
        lines(tmp_path, b'{"a": 1}\n  {"a": 1,}\n' + '{"a": "é"}\n'.encode("cp1252"))
    broken, encoded = raised.value.issues
    assert (broken.line, broken.column, broken.hint) == (2, 11, "each line must be one complete JSON object")
    assert encoded.line == 3
    assert encoded.hint is not None
    assert "iconv -f CP1252 -t UTF-8" in encoded.hint


def test_invalid_json_file_is_reported_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('[\n  {"a": 1},\n  {"a" 2}\n]')
    with pytest.raises(DatasetError) as raised:
        load_file(path)
    assert (raised.value.issues[0].line, raised.value.issues[0].column) == (3, 8)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert len(lines(tmp_path, "")) == 0


def test_a_json_file_is_a_list_of_objects(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('[{"a": 1}, {"b": 2}]')
    assert [row.data for row in load_file(path, missing="absent").rows] == [{"a": 1}, {"b": 2}]
    path.write_text('[{"a": 1}, 3, []]')
    with pytest.raises(DatasetError) as raised:
        load_file(path)
    assert [issue.path for issue in raised.value.issues] == [(1,), (2,)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1}', "for one JSON object per line, use the extension .jsonl"),
        ("", "not JSON: expecting value at character 1"),
        ("3", "found a number, expected a list of objects"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_file_that_is_not_a_list_of_objects_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match=words):
        load_file(path)


def test_compressed_files_give_the_same_rows(tmp_path: Path) -> None:
    content = b'{"a": 1}\n{"a": 2}\n'
    plain = lines(tmp_path, content)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(content))
    # Parallel compressors write two frames.
    half = zstandard.compress(content[:9]) + zstandard.compress(content[9:])
    (tmp_path / "d.JSONL.zst").write_bytes(half)
    assert load_file(tmp_path / "d.jsonl.gz") == plain
    assert load_file(tmp_path / "d.JSONL.zst") == plain


@pytest.mark.parametrize("name", ["d.csv.gz", "d.jsonl.zst", "d.jsonl.gz"])
def test_a_damaged_compressed_file_is_an_error(tmp_path: Path, name: str) -> None:
    good = (
        gzip.compress(b'{"a": 1}\n' * 1_000)
        if name.endswith("gz")
        else zstandard.compress(b'{"a": 1}\n' * 1_000)
    )
    path = tmp_path / name
    for content in (b"not compressed", good[: len(good) // 2]):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=r"cannot be read|not JSON|not CSV"):
            load_file(path)


def test_a_decompression_bomb_without_lines_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.datasets.tables.LONGEST_LINE", 1024 * 1024)
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(bomb.compress(b"x" * 50_000_000) + bomb.flush())
    with pytest.raises(DatasetError, match="a line of more than"):
        load_file(path)


@pytest.mark.parametrize("name", ["d.txt", "d", "d.parquet.gz", "d.gz", ".csv.exe"])
def test_unknown_file_extensions_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(DatasetError, match="unknown kind of data file"):
        load_file(tmp_path / name)


@pytest.mark.parametrize("name", ["no.csv", "no.jsonl", "no.parquet"])
def test_missing_file_or_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="does not exist"):
        load_file(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(DatasetError, match="is a folder"):
        load_file(tmp_path / name)


def test_parquet_types_become_json_types(tmp_path: Path) -> None:
    table = pa.table(
        {
            "i": [1, None],
            "t": [dt.datetime(2020, 1, 2, 3, 4, tzinfo=dt.UTC), None],
            "d": [dt.date(2020, 1, 2), None],
            "n": [decimal.Decimal("1.50"), decimal.Decimal("2.00")],
            "b": [b"\x00\x01", None],
            "l": [[1, 2], []],
            "s": [{"x": "y"}, None],
        }
    )
    pq.write_table(table, tmp_path / "d.parquet")
    rows = load_file(tmp_path / "d.parquet")
    assert rows.rows[0].data == {
        "i": 1,
        "t": "2020-01-02T03:04:00+00:00",
        "d": "2020-01-02",
        "n": 1.5,
        "b": "AAE=",
        "l": [1, 2],
        "s": {"x": "y"},
    }
    assert rows.rows[1].data["i"] is None
    assert rows.total == 2


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_text("nope")
    with pytest.raises(DatasetError, match="not a Parquet file"):
        load_file(tmp_path / "d.parquet")


_rows = st.lists(
    st.dictionaries(
        st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        max_size=4,
    ),
    max_size=6,
)


@given(_rows)
def test_jsonl_and_json_give_the_same_rows_and_digest(
    tmp_path_factory: pytest.TempPathFactory, data: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("json")
    (folder / "d.json").write_text(json.dumps(data))
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    one, two = (load_file(folder / name, missing="absent") for name in ("d.json", "d.jsonl"))
    assert [row.data for row in one.rows] == data
    assert one == two
