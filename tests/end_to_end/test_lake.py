"""Lakes: new logs are imported, and verbs that accept results accept a lake."""

from __future__ import annotations

import csv
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.lakes import make_log

from aigo_scale.lake.tables import TABLES

LAST = TABLES[-1]


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_lake_tables_equal_tables_of_the_imported_results(tmp_path: Path, aigo: Run) -> None:
    make_log(tmp_path / "logs" / "a.eval", run="run-a")
    make_log(tmp_path / "logs" / "b.eval", run="run-b", samples=3)
    assert aigo("import", "logs", "--lake", "team.lake").code == 0
    assert aigo("import", "logs", "--out", "evidence").code == 0

    of_lake = aigo("table", "team.lake", "--table", "scores", "--out", "lake.csv")
    of_results = aigo("table", "evidence", "--table", "scores", "--out", "results.csv")

    assert (of_lake.code, of_results.code) == (0, 0), of_lake.err
    (head, *rows), (other_head, *other_rows) = cells(tmp_path / "lake.csv"), cells(tmp_path / "results.csv")
    assert head == other_head
    place = head.index("result") if "result" in head else None
    assert sorted(row[:place] for row in rows) == sorted(row[:place] for row in other_rows)
    assert len(rows) >= 5


def test_lake_tables_are_readable_by_other_programs(tmp_path: Path, aigo: Run) -> None:
    import duckdb
    import polars as pl
    from deltalake import DeltaTable

    make_log(tmp_path / "logs" / "a.eval", run="run-a")
    make_log(tmp_path / "logs" / "b.eval", run="run-b", samples=3)
    assert aigo("import", "logs", "--lake", "team.lake").code == 0
    question = "SELECT sample_id, count(*), sum(value) FROM {} GROUP BY 1 ORDER BY 1"
    ours = aigo("sql", question.format("scores"), "team.lake", "--json")
    table = str(tmp_path / "team.lake" / "scores")

    scores = DeltaTable(table).to_pyarrow_dataset()
    of_duckdb = duckdb.connect().execute(question.format("scores")).fetchall()
    frame = pl.read_delta(table)
    of_polars = frame.group_by("sample_id").agg(pl.len(), pl.col("value").sum()).sort("sample_id").rows()

    assert scores.schema.names[-2:] == ["by_task", "by_model"]
    assert ours.code == 0, ours.err
    assert [tuple(row.values()) for row in ours.json] == of_duckdb == of_polars
    assert sum(row[1] for row in of_duckdb) == 5
    assert set(frame["run_id"]) == {"run-a", "run-b"}


@pytest.mark.slow
def test_new_logs_are_imported_until_the_command_is_stopped(tmp_path: Path, aigo: Run) -> None:
    make_log(tmp_path / "logs" / "a.eval", run="run-a")
    words = ["aigo-bridge", "import", "logs", "--lake", "team.lake", "--watch", "--interval", "0.2"]
    commits = tmp_path / "team.lake" / LAST / "_delta_log"

    def results() -> int:
        # The table that is written last has one commit that makes it, and one for each import.
        return len(list(commits.glob("*.json"))) - 1

    def wait_for(number: int) -> None:
        deadline = time.monotonic() + 90
        while results() < number:
            assert time.monotonic() < deadline, (tmp_path / "told").read_text("utf-8")
            time.sleep(0.1)

    with (
        (tmp_path / "told").open("wb") as told,
        start(words, stdout=told, stderr=told) as process,
    ):
        wait_for(1)
        make_log(tmp_path / "logs" / "b.eval", run="run-b", samples=3)
        wait_for(2)
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert code == 130
    text = (tmp_path / "told").read_text("utf-8")
    assert "run the same command again to import new logs" in text
    assert "--resume" not in text
    listed = aigo("lake", "list", "team.lake", "--json")
    assert listed.code == 0, listed.err
    assert {entry["run_id"] for entry in listed.json} == {"run-a", "run-b"}
    assert aigo("lake", "verify", "team.lake").code == 0
