"""`aigo-bridge run … --report`: the page of what was run, beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extras.report.page.test_writing import summary
from tests.support.commands import REPOSITORY, Run

ANSWERS = REPOSITORY / "examples" / "capitals" / "answers.jsonl"


def test_a_task_has_its_page(aigo: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"

    done = aigo(
        "run", REPOSITORY / "examples" / "capitals", "--model", f"scripted/{ANSWERS}", "-o", out, "--report"
    )

    assert done.out.splitlines()[-1].split() == ["report", "out/report.html"]
    (shown,) = summary(out / "report.html")["results"]
    (value,) = shown["metrics"][0]["values"]
    assert (shown["file"], value["name"], value["text"]) == ("capitals.tasklog.json", "Accuracy", "0.75")


def test_an_evaluation_has_one_page_with_its_policies(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The model of the file is named by a path from the root of the repository.
    monkeypatch.chdir(REPOSITORY)

    done = aigo("run", "examples/capitals/run.yaml", "-o", tmp_path, "--report", "--json")

    assert done.json["status"] == "success"
    assert "report" in done.err
    (evaluation,) = summary(tmp_path / "report.html")["evaluations"]
    assert [rule["passed"] for rule in evaluation["policies"]] == [True]
