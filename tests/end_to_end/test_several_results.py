"""`verify`, `show` and `score` accept several results: files, folders and patterns, like `stats` and `table`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.results import question, result, write_result


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two folders with results: one in the first and two in the second."""
    for name, answers in (("a/quiz", "xxx"), ("b/quiz", "xyx"), ("b/more", "yyy")):
        path = tmp_path / f"{name}.tasklog.json"
        path.parent.mkdir(exist_ok=True)
        write_result(path, result([question(number, text, "x") for number, text in enumerate(answers)]))
    return tmp_path


@pytest.mark.parametrize(
    ("places", "number"),
    [(["a", "b"], 3), (["b"], 2), (["*/quiz.tasklog.json"], 2), (["a/quiz.tasklog.json", "b"], 3)],
)
def test_verify_checks_each_result_and_counts_verdicts(
    aigo: Run, folder: Path, places: list[str], number: int
) -> None:
    finished = aigo("verify", *places)
    assert finished.out.splitlines()[-1] == f"{number} results: {number} partly verified"
    assert len(aigo("verify", *places, "--json").json) == number


def test_verify_of_several_results_fails_if_one_has_failed(aigo: Run, folder: Path) -> None:
    file = folder / "b/more.tasklog.json"
    file.write_text(file.read_text().replace('"num_total":3', '"num_total":4'))
    finished = aigo("verify", "a", "b")
    assert finished.code == 1
    assert finished.out.splitlines()[-1] == "3 results: 2 partly verified, 1 FAILED"
    wrong = aigo("verify", "a", "b", "--provenance", "p.json")
    assert (wrong.code, "files of one result, found 3" in wrong.err) == (2, True)


def test_verify_and_show_report_missing_results(aigo: Run, folder: Path) -> None:
    for verb in ("verify", "show"):
        finished = aigo(verb, "a", "nothing.tasklog.json")
        assert finished.code == 2
        assert "nothing.tasklog.json" in finished.err


def test_show_prints_the_samples_of_each_result(aigo: Run, folder: Path) -> None:
    finished = aigo("show", "a", "b", "-n", "1")
    assert [line for line in finished.out.splitlines() if line.endswith(".tasklog.json")] == [
        "a/quiz.tasklog.json",
        "b/more.tasklog.json",
        "b/quiz.tasklog.json",
    ]
    assert finished.out.count("sample 0 ") == 3


def test_show_of_one_sample_leaves_out_results_without_it(aigo: Run, folder: Path) -> None:
    write_result(folder / "b/less.tasklog.json", result([question(0, "x", "x")]))
    assert aigo("show", "b", "--sample", "2").out.count("sample 2 ") == 2
    missing = aigo("show", "a", "b", "--sample", "nine")
    assert (missing.code, "no result has a sample 'nine'" in missing.err) == (2, True)


@pytest.mark.engine
@pytest.mark.slow
def test_score_takes_folders_and_patterns(aigo: Run, tmp_path: Path) -> None:
    task = shutil.copytree(REPOSITORY / "examples/capitals", tmp_path / "capitals")
    for out in ("a", "b"):
        aigo("run", task, "--model", f"scripted/{task}/answers.jsonl", "--out", out)
    assert aigo("score", task, "a", "b", "--out", "folders").code == 0
    assert aigo("score", task, "[ab]/*.tasklog.json", "--out", "patterns").code == 0
    for out in ("folders", "patterns"):
        scored = sorted(
            str(path.relative_to(tmp_path / out)) for path in (tmp_path / out).glob("*/*.tasklog.json")
        )
        assert scored == ["a-capitals/capitals.tasklog.json", "b-capitals/capitals.tasklog.json"]
