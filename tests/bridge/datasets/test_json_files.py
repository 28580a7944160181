"""JSONL, JSON and Parquet: types as in the file, missing keys, and everything that is wrong at once."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import math
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.datasets import Rows, load_file
from aigo_bridge.errors import DatasetError


def lines(folder: Path, text: str | bytes, **options: Any) -> Rows:
    path = folder / "data.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_file(path, **options)


def test_json_types_stay(tmp_path: Path) -> None:
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


def test_a_key_missing_in_some_rows_is_nan_none_or_absent(tmp_path: Path) -> None:
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


def test_a_null_that_is_written_stays_null(tmp_path: Path) -> None:
    assert lines(tmp_path, '{"a": null}\n').rows[0].data == {"a": None}


def test_blank_lines_bom_and_windows_line_ends(tmp_path: Path) -> None:
    rows = lines(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n   \n{"a": 2}')
    assert [(row.sample_id, row.data) for row in rows.rows] == [(0, {"a": 1}), (1, {"a": 2})]


def test_all_bad_lines_are_reported(tmp_path: Path) -> None:
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


def test_a_bad_line_has_its_column_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as raised:
        lines(tmp_path, b'{"a": 1}\n  {"a": 1,}\n' + '{"a": "é"}\n'.encode("cp1252"))
    broken, encoded = raised.value.issues
    assert (broken.line, broken.column, broken.hint) == (2, 11, "every line is one whole JSON object")
    assert encoded.line == 3
    assert encoded.hint is not None
    assert "iconv -f CP1252 -t UTF-8" in encoded.hint


def test_a_broken_json_file_has_a_place(tmp_path: Path) -> None:
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
        ('{"a": 1}', "one JSON object per line is a .jsonl file"),
        ("", "not JSON: expecting value at character 1"),
        ("3", "found a number, expected a list of objects"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_other_json_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(DatasetError, match=words):
        load_file(path)


def test_compressed_files_give_the_same_rows(tmp_path: Path) -> None:
    content = b'{"a": 1}\n{"a": 2}\n'
    plain = lines(tmp_path, content)
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(content))
    # Two frames, as parallel compressors write them.
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
    monkeypatch.setattr("aigo_bridge.datasets.json_tables.LONGEST_LINE", 1024 * 1024)
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    path = tmp_path / "d.jsonl.gz"
    path.write_bytes(bomb.compress(b"x" * 50_000_000) + bomb.flush())
    with pytest.raises(DatasetError, match="a line of more than"):
        load_file(path)


@pytest.mark.parametrize("name", ["d.txt", "d", "d.parquet.gz", "d.gz", ".csv.exe"])
def test_unknown_endings_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(DatasetError, match="unknown kind of data file"):
        load_file(tmp_path / name)


@pytest.mark.parametrize("name", ["no.csv", "no.jsonl", "no.parquet"])
def test_a_file_that_does_not_exist_or_is_a_folder_is_refused(tmp_path: Path, name: str) -> None:
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


def test_what_is_not_parquet_is_refused(tmp_path: Path) -> None:
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
