"""SQL over results: correct rows, and hostile queries that stay within the tables."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support.results import metric, question, result, write_result

from aigo_bridge.errors import EvidenceError, UsageError
from aigo_report.tables.results import results_at
from aigo_report.tables.sql import TimeLimit, answered, schema_text


@pytest.fixture
def quiz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    samples = [question(number, ["a", "b"][number % 2], "a") for number in range(5)]
    return write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 0.6})]))


def ask(query: str, source: Path) -> list[dict[str, Any]]:
    with answered(query, results_at([source])) as answer:
        return list(answer.rows)


def test_queries_return_the_table_values(quiz: Path) -> None:
    assert ask("select avg(value) as mean, count(*) as n from scores where counted", quiz) == [
        {"mean": 0.6, "n": 5}
    ]
    assert ask("SELECT value FROM Metrics", quiz) == [{"value": 0.6}]
    joined = """
        with wrong as (select result, sample from scores where value = 0)  -- those that are wrong
        select data ->> '$.topic' as topic, count(*) as n
        from samples join wrong using (result, sample) group by all
    """
    assert ask(joined, quiz) == [{"topic": "cities", "n": 2}]
    assert ask("from samples select sum(sample) as total", quiz) == [{"total": 10}]
    assert ask("select * from query('select count(*) as n from trials')", quiz) == [{"n": 5}]


def test_select_returns_all_rows_of_each_table(quiz: Path) -> None:
    found = results_at([quiz])
    for table in ("results", "metrics", "samples", "trials", "scores", "events"):
        assert ask(f"select * from {table}", quiz) == list(found.table(table))
        assert f"\n\n{table}: " in f"\n\n{schema_text()}"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("select nothing from samples", '"nothing" not found'),
        ("select * from sample", "sample does not exist"),
        ("select 1; select 2", "found 2 statements, expected one SELECT"),
        ("", "found 0 statements"),
        ("select 1 as a, 2 as a", "several columns 'a'"),
        ("select error::int from samples, (select 'x' as error) t", "rror"),
        ("select ('x' || sample_id)::int from samples", "Conversion"),
    ],
)
def test_invalid_query_is_reported(quiz: Path, query: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ask(query, quiz)


class Server(http.server.BaseHTTPRequestHandler):
    """Server that records its clients."""

    asked: ClassVar[list[str]] = []
    raw_requestline: bytes

    def parse_request(self) -> bool:
        self.asked.append(str(self.raw_requestline))
        return False


@pytest.fixture
def address() -> Iterator[str]:
    Server.asked.clear()
    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/x"
    server.shutdown()
    server.server_close()


HOSTILE = (
    "select * from read_text('{secret}')",
    "select * from read_blob('{secret}')",
    "select * from read_csv('{secret}')",
    "select * from read_json('{secret}')",
    "select * from '{secret}'",
    "select * from sniff_csv('{secret}')",
    "select * from glob('{folder}/*')",
    "select * from parquet_metadata('{secret}')",
    "select * from read_text('{address}')",
    "select * from read_csv('{address}')",
    "select * from read_duckdb('{database}')",
    "select * from query('select * from read_text(''{secret}'')')",
    "with t as (select * from read_text('{secret}')) select * from t",
    "describe select * from read_csv('{secret}')",
    "summarize select * from read_csv('{secret}')",
    "select getenv('AIGO_HIDDEN')",
    "select * from hidden_frame",
    "copy samples to '{out}'",
    "copy samples from '{secret}'",
    "copy (select 1) to '{address}'",
    "export database '{out}'",
    "import database '{folder}'",
    "attach '{database}'",
    "attach '{out}' as o",
    "install httpfs",
    "load httpfs",
    "force install httpfs from '{address}'",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma enable_external_access",
    "set temp_directory = '{folder}'",
    "create table t as select 1",
    "create temp table t as select 1",
    "create temp macro m() as 1",
    "insert into samples select * from samples",
    "delete from samples",
    "drop table samples",
    "update samples set error = ''",
    "create secret s (type s3)",
    "call enable_logging()",
    "checkpoint",
    "vacuum",
    "prepare q as select 1",
    "begin transaction",
    "use memory",
    "explain analyze copy samples to '{out}'",
    "select 1; copy samples to '{out}'",
)


@pytest.mark.parametrize("query", HOSTILE)
def test_query_cannot_access_anything_but_the_tables(
    quiz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, query: str
) -> None:
    import duckdb
    import pyarrow as pa  # type: ignore[import-untyped]  # has no types

    hidden_frame = pa.table({"hidden": ["hunter2"]})
    assert hidden_frame.num_rows == 1
    monkeypatch.setenv("AIGO_HIDDEN", "hunter2")
    (tmp_path / "secret.csv").write_text("a,b\nhunter2,hunter2\n")
    duckdb.connect(str(tmp_path / "other.duckdb")).close()
    names = sorted(path.name for path in tmp_path.iterdir())
    places = {
        "secret": tmp_path / "secret.csv",
        "folder": tmp_path,
        "out": tmp_path / "out.csv",
        "database": tmp_path / "other.duckdb",
        "address": address,
    }

    with pytest.raises(UsageError, match="the query: "):
        ask(query.format(**places), quiz)

    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert Server.asked == []


ENDLESS = (
    "select count(*) from range(100000000000)",
    "with recursive t as (select 1 as n union all select n + 1 from t) select count(*) from t",
    "select sum(a.range * b.range) from range(1000000) a, range(1000000) b",
    "select * from range(100000000000)",
    "select a.* from samples a, range(100000000000) b order by random()",
)


@pytest.mark.parametrize("query", ENDLESS)
def test_slow_query_is_stopped_after_the_timeout(quiz: Path, query: str) -> None:
    start = time.monotonic()
    with (
        pytest.raises(UsageError, match=r"takes longer than 0\.1 s; allow more with --timeout"),
        answered(query, results_at([quiz]), TimeLimit(0.1)) as answer,
    ):
        for _ in answer.rows:
            pass
    assert time.monotonic() - start < 10
    assert ask("select count(*) as n from samples", quiz) == [{"n": 5}]


def test_uninterruptible_query_is_killed_after_the_timeout(quiz: Path) -> None:
    """DuckDB only checks for interrupts between operations, and a single operation may take forever."""
    query = "select levenshtein(repeat('a', 200000), repeat('b', 200000)) as n"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from aigo_bridge.cli import main; main()",
            "sql",
            query,
            str(quiz),
            "--timeout",
            "0.5",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(quiz.parent)},
        check=False,
    )
    assert done.returncode == 2
    assert "takes longer than 0.5 s" in done.stderr
    assert "Traceback" not in done.stderr


def test_sql_injection_in_results_is_harmless(tmp_path: Path) -> None:
    evil = "'); drop table samples; --"
    path = tmp_path / "x'; drop table samples; --.tasklog.json"
    write_result(path, result([question(0, evil, evil)]))

    assert ask("select answer, result from trials", path) == [{"answer": evil, "result": str(path)}]


def test_query_on_a_damaged_result_fails(tmp_path: Path) -> None:
    log = json.dumps(result([question(number, "a", "a") for number in range(3)]))
    path = tmp_path / "cut.tasklog.json"
    path.write_text(log[: log.index('"sample_id": 2')])

    with pytest.raises(EvidenceError, match="cut off"):
        ask("select count(*) as n from samples", path)
