"""`aigo-bridge run … --report` writes the report page next to the result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.extras.report.page.test_writing import summary
from tests.support.commands import REPOSITORY, Run
from tests.support.forked import start

ANSWERS = REPOSITORY / "examples" / "capitals" / "answers.jsonl"


def test_task_run_has_a_report_page(aigo: Run, tmp_path: Path) -> None:
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


def test_a_closed_pipe_ends_the_output_without_a_message(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from aigo_bridge.cli import main; main()"]
    task, out = REPOSITORY / "examples" / "capitals", tmp_path / "out"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        run = ["aigo-bridge", "run", task, "--model", f"scripted/{ANSWERS}", "-o", out, "--report"]
        with start(run, stdout=pipe, stderr=subprocess.PIPE) as process:
            _, errors = process.communicate(timeout=120)
        listed = subprocess.run(
            [*command, "list"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (process.returncode, "rror" in errors) == (0, False)
    assert (out / "report.html").exists()
    assert (listed.returncode, listed.stderr) == (1, "")
