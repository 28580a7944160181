"""Command line of `aigo-bridge sql`."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.hostile_texts import HOSTILE
from tests.support.results import message, question, result, sample, trial, write_result


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    samples = [question(number, ["a", "b"][number % 2], "a") for number in range(4)]
    return write_result(tmp_path / "out" / "quiz.tasklog.json", result(samples))


def test_sql_queries_results_in_the_default_folder(aigo: Run, quiz: Path) -> None:
    done = aigo(
        "sql",
        "select answer, count(*) as n, avg(sample) as mean from trials group by answer order by n, answer",
    )

    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()] == [
        ["answer", "n", "mean"],
        ["a", "2", "1"],
        ["b", "2", "2"],
    ]
    assert aigo("sql", "select sum(sample) as total, null as none from samples", quiz, "--json").json == [
        {"total": 6, "none": None}
    ]


def test_omitted_rows_are_reported(aigo: Run, quiz: Path) -> None:
    done = aigo("sql", "select sample_id from samples order by 1", quiz, "--rows", 2)

    assert done.out.split() == ["sample_id", "0", "1"]
    assert "more rows follow; show more with --rows N (now 2), or all with --rows 0" in done.err
    assert len(aigo("sql", "select sample_id from samples", quiz, "--rows", 0).out.split()) == 5


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".xlsx"])
def test_query_rows_are_written_to_a_file(aigo: Run, quiz: Path, tmp_path: Path, suffix: str) -> None:
    query = "select '=1' as text, sum(sample) as total, [1, 2] as list, 1.50 as price from samples"

    done = aigo("sql", query, quiz, "-o", f"t{suffix}")

    assert (done.code, done.out, done.err) == (0, f"t{suffix}: 1 row\n", "")
    if suffix == ".csv":
        assert (tmp_path / "t.csv").read_text().splitlines()[1] == '\'=1,6,"[1, 2]",1.50'
    if suffix == ".jsonl":
        assert json.loads((tmp_path / "t.jsonl").read_text())["total"] == 6


def test_schema_option_prints_the_tables(aigo: Run) -> None:
    done = aigo("sql", "--schema")

    assert done.code == 0
    assert "scores: a score of a trial" in done.out
    assert "  counted" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no query was given, expected one SELECT, or --schema"),
        (["select 1", "none"], "result log 'none' does not exist"),
        (["select 1", "-o", "t.txt"], "found the extension '.txt'"),
        (["select * from nothing"], "expected tables: results, metrics"),
        (["drop table samples"], "found DROP, expected one SELECT"),
    ],
)
def test_invalid_sql_arguments_exit_with_2(aigo: Run, quiz: Path, arguments: list[str], message: str) -> None:
    done = aigo("sql", *arguments)

    assert done.code == 2
    assert message in done.err


def test_sql_output_escapes_control_characters(aigo: Run, tmp_path: Path) -> None:
    samples = [sample(trial(text, [message("assistant", text)], data={text: text})) for text in HOSTILE]
    (tmp_path / "h.tasklog.json").write_text(json.dumps(result(samples)))

    done = aigo(
        "sql",
        "select sample_id, answer, data, answer || '\x1b[2J' as \"\x1b[31m\" from trials",
        "h.tasklog.json",
    )

    assert done.code == 0, done.err
    assert {char for char in done.out if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} == {
        "\n"
    }
    assert len(done.out.splitlines()) == len(HOSTILE) + 1
