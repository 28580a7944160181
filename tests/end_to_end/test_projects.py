"""A project from each template: init, validate, run, report, and its workflow step by step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import Run
from tests.support.shells import exchange

from aigo_bridge.projects import TEMPLATES
from aigo_inspect.sandbox import available

EXPECTED: dict[str, dict[str, float]] = {
    "chat": {"Accuracy": 0.75},
    "judge": {"right": 2 / 3, "clear": 2.5 / 3},
    "multi-turn": {"booked": 1.0, "turns": 2.0},
    "agent": {"solved": 1.0, "commands": 1.0},
    "rag": {"recall": 1.0, "precision": 0.75, "faithfulness": 0.75, "hallucination": 0.25},
    "data-set": {"complete": 0.75, "unique": 0.5},
    "jsonl": {"exact_match": 2 / 3},
}
"""Template → what its scripted answers come to."""


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_project_validates_runs_and_reports(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    assert aigo("init", "p", "--template", template).code == 0
    monkeypatch.chdir(tmp_path / "p")

    checked = aigo("validate", ".", "--strict")
    run = aigo("run", "tasks.jsonl" if template == "jsonl" else "run.yaml", "--json")

    assert (checked.code, checked.err) == (0, "")
    if (
        template == "agent" and available()[0] is None
    ):  # it is refused where there is no sandbox, as its page says
        assert run.code == 2
        assert "sandbox" in run.err
        return
    assert run.code == 0, run.err
    (result,) = run.json.get("results", [run.json])
    values = {metric["name"]: metric["value"] for metric in result["metrics"]}
    assert values == pytest.approx(EXPECTED[template])
    assert Path("out/report.html").stat().st_size > 50_000


def test_a_new_task_with_a_new_scorer_and_dataset_runs(aigo: Run) -> None:
    aigo("init")
    for part, name in [("task", "mine"), ("scorer", "brevity"), ("dataset", "words")]:
        assert aigo("new", part, name).code == 0
    task = Path("tasks/mine/task.yaml")
    text = task.read_text().replace("dataset: {key: mine}", "dataset: {key: words}")
    task.write_text(text.replace("  scorers:\n", "  scorers:\n    - {$ref: ../../scorers/brevity.yaml}\n"))

    done = aigo("run", "tasks/mine", "--model", "scripted/tasks/mine/answers.jsonl", "--json")

    values = {metric["name"]: metric["value"] for metric in done.json["metrics"]}
    assert values == {"brevity": 0.5, "Accuracy": 0.5}


def steps(folder: Path) -> list[dict[str, Any]]:
    """Return the workflow steps in order."""
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "evaluation.yaml").read_text())
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


ON_GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true"}
"""What GitHub sets, and typer reads when it is loaded."""


@pytest.fixture(scope="module")
def commands() -> Iterator[str]:
    """Folder of forked commands, which do not have GitHub's variables."""
    with exchange(*ON_GITHUB) as folder:
        yield folder


def carried_out(folder: Path, *commands: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run the workflow steps like GitHub: each in a shell, until one fails."""
    path = os.pathsep.join([*commands, str(Path(sys.executable).parent), os.environ["PATH"]])
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    for step in steps(folder):
        # Packages are already installed; `make environments` tests their installation.
        if "run" in step and step["name"] != "Install":
            done[step["name"]] = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=folder,
                env={**os.environ, **ON_GITHUB, "PATH": path},
                capture_output=True,
                text=True,
                timeout=120,
            )
            if done[step["name"]].returncode:
                break
    return done


@pytest.mark.parametrize("template", ["chat", "jsonl"])
def test_the_workflow_passes_step_by_step(command: Run, tmp_path: Path, commands: str, template: str) -> None:
    command("aigo-bridge", "init", ".", "--template", template)

    done = carried_out(tmp_path, commands)

    assert {name: each.returncode for name, each in done.items() if each.returncode} == {}
    assert list(done) == ["Validate", "Run"] + (["Check"] if template == "jsonl" else [])
    (upload,) = [step for step in steps(tmp_path) if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "always()"
    assert (tmp_path / upload["with"]["path"] / "report.html").is_file()


def test_workflow_annotates_an_error_and_stops(aigo: Run, tmp_path: Path) -> None:
    """With GitHub's variables."""
    aigo("init", ".")
    task = tmp_path / "tasks" / "capitals" / "task.yaml"
    task.write_text(task.read_text().replace("sample.capital ", "sample.capitol "))

    done = carried_out(tmp_path)

    assert list(done) == ["Validate"]
    assert "::error file=tasks/capitals/task.yaml,line=" in done["Validate"].stdout


def test_workflow_fails_if_a_policy_fails(command: Run, tmp_path: Path, commands: str) -> None:
    command("aigo-bridge", "init", ".")
    answers = tmp_path / "tasks" / "capitals" / "answers.jsonl"
    answers.write_text(json.dumps({"default": True, "reply": "?"}) + "\n")

    done = carried_out(tmp_path, commands)

    assert done["Run"].returncode == 1
    assert "policy FAILED" in done["Run"].stdout
