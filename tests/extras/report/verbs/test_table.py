"""Command line of `aigo-bridge table`."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.missing import verbs_without
from tests.support.results import metric, question, result, write_result


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    samples = [question(number, "a", "a") for number in range(3)]
    return write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 1.0})]))


def test_table_writes_trials_by_default(aigo: Run, quiz: Path, tmp_path: Path) -> None:
    done = aigo("table", quiz, "-o", "t.csv")

    assert (done.code, done.out, done.err) == (0, "t.csv: 3 rows\n", "")
    with (tmp_path / "t.csv").open() as file:
        assert [row["answer"] for row in csv.DictReader(file)] == ["a", "a", "a"]
    assert aigo("table", quiz, "--table", "metrics", "-o", "m.jsonl").out == "m.jsonl: 1 row\n"
    assert json.loads((tmp_path / "m.jsonl").read_text())["scored"] == 3


def test_workbook_contains_all_tables_except_events(aigo: Run, quiz: Path, tmp_path: Path) -> None:
    assert aigo("table", quiz, quiz.parent, "-o", "t.xlsx").out == "t.xlsx: 11 rows\n"

    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        book = archive.read("xl/workbook.xml").decode()
    assert [name for name in ("results", "metrics", "samples", "trials", "scores") if f'"{name}"' in book] == [
        "results", "metrics", "samples", "trials", "scores",
    ]  # fmt: skip
    assert "events" not in book


def test_tasks_without_a_result_are_reported(aigo: Run, quiz: Path, tmp_path: Path) -> None:
    entries = [{"key": "quiz", "result": "quiz.tasklog.json"}, {"key": "gone", "result": None}]
    (tmp_path / "evaluation.json").write_text(json.dumps({"results": entries}))

    done = aigo("table", tmp_path, "-o", "t.csv")

    assert (done.out, done.err) == (
        "t.csv: 3 rows\n",
        "note: the result of 'gone' is missing from the evaluation\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quiz.tasklog.json", "-o", "t.txt"], "found the extension '.txt', expected .csv"),
        (["quiz.tasklog.json", "-o", "t.xlsx.gz"], "found the extension '.gz', expected .csv"),
        (
            ["quiz.tasklog.json", "-o", "t.csv", "--table", "x"],
            "no table 'x', expected one of 'results', 'metrics'",
        ),
        (["none.tasklog.json", "-o", "t.csv"], "result log 'none.tasklog.json' does not exist"),
        (["quiz.tasklog.json", "-o", "none/t.csv"], "none"),
        (["quiz.tasklog.json"], "Missing option"),
    ],
)
def test_invalid_table_arguments_exit_with_2(
    aigo: Run, quiz: Path, arguments: list[str], message: str
) -> None:
    done = aigo("table", *arguments)

    assert done.code == 2
    assert message in done.err


@pytest.mark.slow
def test_missing_table_packages_are_reported_with_the_install_command(quiz: Path, tmp_path: Path) -> None:
    source = str(quiz)
    lines, sheet, parquet, sql = verbs_without(
        tmp_path,
        ["pyarrow", "xlsxwriter", "duckdb"],
        ["table", source, "-o", "t.csv"],
        ["table", source, "-o", "t.xlsx"],
        ["table", source, "-o", "t.parquet"],
        ["sql", "select 1", source],
    )

    assert (lines.code, lines.err) == (0, "")
    for done, name in ((sheet, "XlsxWriter"), (parquet, "pyarrow"), (sql, "duckdb")):
        assert done.code == 2
        (line,) = done.err.splitlines()
        assert f"needs {name}, which is not installed; run: pip install " in line
        assert name.lower() in line.partition("pip install ")[2].lower()
    assert not (tmp_path / "t.xlsx").exists()
