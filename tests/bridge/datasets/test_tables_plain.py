"""Values of typed sources as JSON, and errors without the optional libraries."""

from __future__ import annotations

import datetime as dt
import sys
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # as above
import pytest

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.sources import load_dataset
from aigo_bridge.datasets.tables import plain
from aigo_bridge.errors import DatasetError
from aigo_bridge.spec.datasets import DatasetSpec


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.timedelta(minutes=1), 60.0),
        (dt.time(1, 2), "01:02:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal(3), 3),
        (Decimal("0.1"), 0.1),
        (Decimal("Infinity"), float("inf")),
        (b"ab", "YWI="),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        ({1: (2, None)}, {"1": [2, None]}),
    ],
)
def test_value_is_converted_to_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


@pytest.mark.parametrize("value", [object(), {1, 2}, 3j])
def test_a_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises(DatasetError, match="cannot be written as JSON"):
        plain(value)


def test_parquet_without_pyarrow_shows_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DatasetError, match="run: pip install 'pyarrow>="):
        load_file(tmp_path / "d.parquet")


def test_hub_dataset_without_the_library_shows_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    source = {"type": "huggingface", "path": "x/y", "split": "test"}
    spec = DatasetSpec.model_validate({"key": "d", "display_name": "D", "source": source})
    with granting(Grants(network=True)), pytest.raises(DatasetError, match="run: pip install 'datasets>="):
        load_dataset(spec, base=Path())


def test_a_parquet_file_damaged_in_the_middle_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": [f"row {number}" for number in range(5_000)]}), path)
    content = bytearray(path.read_bytes())
    content[200:3_000] = b"\xff" * 2_800
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="damaged"):
        load_file(path)


def test_a_parquet_column_without_a_type_is_null(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"a": pa.array([Decimal("1.5")]), "b": pa.array([None], pa.null())}), path)
    assert load_file(path).rows[0].data == {"a": 1.5, "b": None}
