"""Numbers that exceed a table column are null there and exact in the data; column types do not change."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types
import pytest

from aigo_inspect.importing.importing import ImportOptions, ImportReport, import_file

BIG = 10**30


def imported(folder: Path, sample: dict[str, Any], member: str = "samples/1_epoch_1.json") -> ImportReport:
    header = {"status": "success", "eval": {"task": "t", "dataset": {}, "config": {}}}
    whole = {"id": 1, "epoch": 1, "input": "i", "target": "t", "messages": [], "events": [], **sample}
    with zipfile.ZipFile(folder / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr(member, json.dumps(whole))
    result = import_file(folder / "log.eval", folder / "out", ImportOptions(output_format="parquet"))
    assert result.exit_code == 0, result.reason
    return result


def rows(result: ImportReport, table: str) -> list[dict[str, Any]]:
    assert result.output is not None
    found: list[dict[str, Any]] = pq.read_table(result.output / f"{table}.parquet").to_pylist()
    return found


NOTE = "number that does not fit its column: null there, kept as text"


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (0.5, 0.5, "0.5"),
        (True, 1.0, "true"),
        (2**53 + 1, float(2**53), str(2**53 + 1)),
        (2**63, float(2**63), str(2**63)),
        (-(2**64), -float(2**64), str(-(2**64))),
        (BIG, 1e30, str(BIG)),
        (10**308, 1e308, str(10**308)),
    ],
)
def test_scores_are_stored_as_nearest_double_and_exact_text(
    value: Any, column: float, text: str, tmp_path: Path
) -> None:
    result = imported(tmp_path, {"scores": {"s": {"value": value}}})
    (row,) = rows(result, "scores")
    assert (row["value"], row["text"]) == (column, text)
    assert NOTE not in result.loss.changed


def test_token_counts_beyond_64_bits_are_in_the_data(tmp_path: Path) -> None:
    usage = {"m": {"input_tokens": BIG, "output_tokens": 7, "total_tokens": BIG}}
    result = imported(tmp_path, {"model_usage": usage})
    (row,) = rows(result, "samples")
    assert (row["prompt_tokens"], row["completion_tokens"]) == (None, 7)
    assert json.loads(row["data"])["numbers"]["prompt_tokens"] == BIG
    assert result.loss.changed[NOTE] == 1


def test_an_epoch_beyond_32_bits_is_in_the_data(tmp_path: Path) -> None:
    result = imported(tmp_path, {"epoch": 5_000_000_000}, "samples/1_epoch_5000000000.json")
    (row,) = rows(result, "samples")
    assert row["trial"] is None
    assert json.loads(row["data"])["numbers"]["trial"] == 5_000_000_000


def test_column_types_do_not_depend_on_the_log(tmp_path: Path) -> None:
    small, big = tmp_path / "small", tmp_path / "big"
    small.mkdir()
    big.mkdir()
    one = imported(small, {"scores": {"s": {"value": 1}}})
    other = imported(big, {"scores": {"s": {"value": BIG}}, "model_usage": {"m": {"input_tokens": BIG}}})
    for table in ("samples", "scores", "events", "messages"):
        assert one.output is not None
        assert other.output is not None
        schemas = [pq.read_schema(output / f"{table}.parquet") for output in (one.output, other.output)]
        assert schemas[0].equals(schemas[1])
