"""Small files that expand to large ones are refused with a message, without using the memory."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # has no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types
import pytest
import zstandard
from tests.support.forked import finished

from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Selection
from aigo_bridge.errors import DatasetError, UsageError

ONE = Selection(1)
MEMORY = 400 * 2**20
"""Address space that reading any of these files may take; what they stand for is more."""


def packed(pack: Callable[[bytes], Any], start: bytes, row: bytes, times: int) -> bytes:
    return b"".join((pack(start), *[pack(row * 10_000)] * (times // 10_000)))


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def parquet(table: pa.Table, **options: Any) -> bytes:
    into = io.BytesIO()
    pq.write_table(table, into, compression="zstd", dictionary_pagesize_limit=2**30, **options)
    return into.getvalue()


def repeated(values: pa.Array, times: int) -> pa.Array:
    """Write a text once to the file and repeat it by its dictionary index."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), values)


LONG = pa.array(["x" * 20_000_000])
TEXTS = pa.table({"q": repeated(LONG, 5_000)})
LISTS = pa.table({"q": pa.ListArray.from_arrays(pa.array([0, 5_000, 10_000]), repeated(LONG, 10_000))})
RECORDS = pa.table({"q": pa.StructArray.from_arrays([repeated(LONG, 5_000)], names=["a"])})

BOMBS: dict[str, Callable[[], bytes]] = {
    "rows.jsonl.gz": lambda: packed(gzip.compress, b"", b'{"q": "' + b"x" * 1000 + b'"}\n', 200_000),
    "rows.jsonl.zst": lambda: packed(zst, b"", b'{"q": "' + b"x" * 1000 + b'"}\n', 200_000),
    "rows.csv.gz": lambda: packed(gzip.compress, b"q,a\n", b"x" * 1000 + b",1\n", 200_000),
    "rows.json.gz": lambda: packed(gzip.compress, b"[", b'{"q": 1},', 20_000_000),
    "line.jsonl.zst": lambda: packed(zst, b'{"q": "', b"x" * 1000, 200_000),
    "texts.parquet": lambda: parquet(TEXTS),
    "lists.parquet": lambda: parquet(LISTS),
    "records.parquet": lambda: parquet(RECORDS),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_expands_to_gigabytes_is_refused(tmp_path: Path, name: str) -> None:
    """The child process has a memory limit."""
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    assert path.stat().st_size < 1_000_000
    code = f"""
import resource
from pathlib import Path
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Selection
from aigo_bridge.errors import DatasetError
if {name.endswith("parquet")}: import pyarrow.parquet, pyarrow.compute
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY}, used + {MEMORY}))
try:
    load_file(Path({str(path)!r}), Selection(1, "random"))
except DatasetError as error:
    print(error.issues[0].message, "|", error.issues[0].hint, error.code)
"""
    env = {**os.environ, "AIGO_BRIDGE_ROWS_MIB": "128"}
    done = finished(["-c", code], env=env, timeout=60)
    assert "MiB of rows; expected at most 100 times its size" in done.stdout, done.stderr[-2000:]
    assert "AIGO_BRIDGE_ROWS_MIB" in done.stdout
    assert "AB308" in done.stdout


def refused(path: Path, selection: Selection = ONE) -> str:
    with pytest.raises(DatasetError) as caught:
        load_file(path, selection)
    return caught.value.issues[0].message


def test_memory_of_selected_rows_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the memory use. A smaller selection still works."""
    monkeypatch.setenv("AIGO_BRIDGE_ROWS_MIB", "1")
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"q": "x" * 1000}) + "\n" for _ in range(2000)))
    assert refused(path, Selection()) == "the selected rows take more than 1 MiB of memory"
    assert len(load_file(path, Selection(500))) == 500
    assert len(load_file(path, Selection(500, "random"))) == 500


@pytest.mark.parametrize("row", ["{}", '{"a": []}', '{"a": {"b": {}}}'])
def test_memory_of_many_small_rows_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_ROWS_MIB", "1")
    (tmp_path / "rows.jsonl").write_text(f"{row}\n" * 20_000)
    (tmp_path / "rows.json").write_text("[" + ",".join([row] * 200_000) + "]")
    assert "take more than 1 MiB of memory" in refused(tmp_path / "rows.jsonl", Selection())
    assert "take more than 1 MiB of memory" in refused(tmp_path / "rows.json")


def test_number_of_distinct_columns_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row gets all columns, so kilobytes of rows can take gigabytes."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"c{number}": 1}}\n' for number in range(10_000)))
    assert refused(path, Selection()).startswith("10,000 rows with 10,000 columns each take more than")
    assert len(load_file(path, ONE).columns) == 10_000
    path.write_text("".join(f'{{"c{number}": 1}}\n' for number in range(100_002)))
    assert refused(path) == "the rows have more than 100,000 columns"


@pytest.mark.parametrize("value", ["0", "-3", "nan", "lots"])
def test_invalid_row_memory_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("AIGO_BRIDGE_ROWS_MIB", value)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="expected a number of MiB"):
        load_file(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("ending", ["jsonl.gz", "jsonl.zst"])
def test_highly_compressed_rows_are_read(tmp_path: Path, ending: str) -> None:
    """A compression ratio of 100 is unusual but accepted for small files."""
    text = b'{"q": "the same question again"}\n' * 100_000
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else zst(text))
    assert path.stat().st_size * 100 < len(text)
    assert load_file(path, ONE).total == 100_000


# Parquet: the same rows, and only the required part of them


def test_parquet_encodings_are_read_without_changes(tmp_path: Path) -> None:
    rows = [
        {
            "s": f"t{n % 3}",
            "b": b"raw",
            "l": [f"a{n}", None],
            "m": [{"role": "user", "x": {"y": "é"}}],
            "n": None,
            "e": [],
        }
        for n in range(2_500)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    found = load_file(tmp_path / "rows.parquet", missing="none")
    assert [row.data for row in found.rows[:2]] == [
        {**rows[n], "b": found.rows[n].data["b"], "l": [f"a{n}", None]} for n in range(2)
    ]
    assert found.total == 2_500


@pytest.mark.parametrize("ids", ["unique", "repeated", "none"])
def test_selected_parquet_rows_are_the_same_without_reading_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: str
) -> None:
    """After the last selected row, only the ids are read, so that duplicates are still found."""
    rows = [
        {
            "q": f"q{n}",
            **({} if ids == "none" else {"sample_id": f"s{0 if ids == 'repeated' and n == 4_999 else n}"}),
        }
        for n in range(5_000)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made: list[Any] = []

    def noted(value: Any) -> Any:
        made.append(value)
        return value

    monkeypatch.setattr("aigo_bridge.datasets.files.plain", noted)
    few, other = (
        load_file(tmp_path / "rows.parquet", Selection(2)),
        load_file(tmp_path / "rows.jsonl", Selection(2)),
    )
    assert (few.rows, few.columns, few.total, few.digest) == (
        other.rows,
        other.columns,
        other.total,
        other.digest,
    )
    assert bool(few.warnings) == bool(other.warnings) == (ids == "repeated")
    assert len(made) <= 5_000 + 4
