"""Footers of Parquet files are read by another process, which a corrupt footer can crash."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest

from aigo_bridge.access.bounds import LogTooLargeError
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.process.pool import Worker
from aigo_lighteval.importing import footer
from aigo_lighteval.importing.footer import RowGroup, read_footer


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


def parquet() -> bytes:
    file = io.BytesIO()
    table = pa.table({"doc": [{"id": str(n), "n": [n] * n} for n in range(10)]})
    pq.write_table(table, file, row_group_size=6)
    return file.getvalue()


def groups_of(data: bytes, worker: Worker, most: int = 1 << 30) -> list[RowGroup]:
    return read_footer(io.BytesIO(data), len(data), most, worker)


def test_a_footer_gives_the_size_of_its_columns(worker: Worker) -> None:
    first, second = groups_of(parquet(), worker)
    assert (first.rows, second.rows) == (6, 4)
    assert [chunk.path for chunk in first.chunks] == ["doc.id", "doc.n.list.element"]
    assert [chunk.values for chunk in first.chunks] == [6, 16]
    assert all(chunk.packed > 0 and chunk.unpacked > 0 for chunk in first.chunks)


def test_a_damaged_footer_is_reported(worker: Worker) -> None:
    data = parquet()
    length = int.from_bytes(data[-8:-4], "little")
    with pytest.raises(EvidenceError, match="the footer is damaged: ") as caught:
        groups_of(data[: -8 - length] + b"\xff" * length + data[-8:], worker)
    assert caught.value.code == Code.DAMAGED_LOG
    with pytest.raises(LogTooLargeError, match="bound 'member_bytes'"):
        groups_of(data, worker, most=10)


def dies(_: bytes) -> None:
    os.abort()


def test_a_footer_that_crashes_the_reader_is_reported_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Worker() as worker:
        with monkeypatch.context() as patched:
            patched.setattr(footer, "_row_groups", dies)
            with pytest.raises(EvidenceError, match="reading it crashes the process"):
                groups_of(parquet(), worker)
        assert len(groups_of(parquet(), worker)) == 2
