"""Parquet tables of an engine log and its result log are equal and have a number for every numeric score."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types
import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.loggers import heard

from aigo_bridge.metrics.grades import graded_number

INSPECT = REPOSITORY / "tests" / "golden" / "inspect"
CAPITALS = REPOSITORY / "examples" / "capitals"
TABLES = ("samples", "scores", "events", "messages")


def tables(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: pq.read_table(folder / f"{name}.parquet").to_pylist() for name in TABLES}


@pytest.mark.parametrize("log", sorted(INSPECT.iterdir()), ids=lambda path: path.name)
def test_tables_of_a_result_log_equal_tables_of_the_engine_log(aigo: Run, tmp_path: Path, log: Path) -> None:
    suffix = "json.zst" if log.suffix == ".json" else "json"
    assert aigo("import", log, "--out", "direct", "--format", "parquet").code == 0
    assert aigo("import", log, "--out", "evidence", "--format", suffix, "--context", "delta").code == 0
    (result,) = (tmp_path / "evidence").glob("*.tasklog.*")

    done = aigo("import", result, "--out", "tables", "--format", "parquet", "--json")

    assert done.code == 0, done.err
    assert done.json[0]["status"] == "success"
    (direct,), (indirect,) = (list((tmp_path / name).glob("*.tasklog")) for name in ("direct", "tables"))
    assert tables(indirect) == tables(direct)
    frame = json.loads((indirect / "result.json").read_text())
    assert "samples" not in frame["evidence"]
    assert (
        frame["evidence"]["metrics"]
        == json.loads((direct / "result.json").read_text())["evidence"]["metrics"]
    )


def test_a_run_and_its_log_give_the_same_tables(aigo: Run, tmp_path: Path) -> None:
    assert (
        aigo("run", CAPITALS, "--model", f"scripted/{CAPITALS / 'answers.jsonl'}", "--out", "run").code == 0
    )
    (tmp_path / "run" / "capitals.eval").write_bytes((INSPECT / "0.3.50.eval").read_bytes())

    done = aigo(
        "import", "run/capitals.*", "run/capitals.tasklog.json", "-o", "tables", "--format", "parquet"
    )

    assert done.code == 0, done.err
    # No tables replace others of the same name.
    assert sorted(path.name for path in (tmp_path / "tables").glob("*.tasklog")) == [
        "capitals-2.tasklog",
        "capitals.tasklog",
    ]
    own = tables(tmp_path / "tables" / "capitals-2.tasklog")
    assert [(row["scorer"], row["name"], row["number"]) for row in own["scores"]] == [
        ("string_equals", "is_correct", value) for value in (1.0, 1.0, 0.0, 1.0)
    ]
    assert sum(row["prompt_tokens"] for row in own["samples"]) == 44
    # A result log can only be converted to tables.
    refused = aigo("import", "run/capitals.tasklog.json")
    assert (refused.code, "--format parquet" in refused.err) == (2, True)


def test_secrets_and_damage_in_result_logs_are_reported(aigo: Run, tmp_path: Path) -> None:
    secret = "sk-" + "a1" * 12
    trial = {
        "index": 0,
        "sample_id": "x",
        "sample": {"data": {"input": secret}},
        "solver": None,
        "scores": [{"scorer_key": "s", "values": {"v": "P", "list": [1], "w": "Yes"}}],
        "errors": [],
    }
    sample = {
        "sample_id": "x",
        "sample": None,
        "solver": None,
        "scores": None,
        "errors": [],
        "trials": [trial],
    }
    assert aigo("import", INSPECT / "0.3.50.eval").code == 0
    whole = json.loads((tmp_path / "out" / "0.3.50.tasklog.json").read_text())
    whole["evidence"]["samples"] = [sample]
    (tmp_path / "a.json").write_text(json.dumps(whole))
    (tmp_path / "b.json").write_text(json.dumps(whole)[:-200])

    done = aigo("import", "a.json", "b.json", "--format", "parquet", "-o", "tables")

    assert done.code == 3
    assert "b.json: unreadable" in done.out
    assert "tables/a.tasklog; 1 redacted\n" in done.out
    found = tables(tmp_path / "tables" / "a.tasklog")
    assert secret not in json.dumps(found)
    assert {row["name"]: row["number"] for row in found["scores"]} == {"v": 0.5, "list": None, "w": 1.0}
    assert not (tmp_path / "tables" / "b.tasklog").exists()


VALUES = [
    *("C", "I", "P", "N", "c", "i", "CORRECT", "yes", "Yes", "NO", "true", "False", "maybe", ""),
    *("1", " 2.5 ", "-3", "1e3", "1_000", "nan", "inf", "0x10", "٣", "50%"),
    *(True, False, 0, 1, -2, 0.25, 10**20, [1], {"a": 1}, None),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_graded_number_equals_the_value_in_inspect(
    value: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspect_ai.scorer import value_to_float

    with heard("inspect_ai.scorer._metric", caplog, monkeypatch):
        expected = value_to_float()(value)
    unconverted = any("Unable to convert" in record.message for record in caplog.records)
    assert graded_number(value) == (None if unconverted else expected)


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400])
def test_non_finite_values_are_null(value: float) -> None:
    assert graded_number(value) is None
