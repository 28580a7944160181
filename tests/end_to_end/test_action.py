"""`action.yml`, run step by step as on GitHub: each step in a shell, with inputs as environment variables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import REPOSITORY, Run
from tests.support.pages import page
from tests.support.shells import exchange

ACTION: dict[str, Any] = yaml.safe_load((REPOSITORY / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


def carried_out(folder: Path, **given: str) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run the steps and return their results; after a failure, only steps that always run are executed."""
    inputs = {name: str(each["default"]) for name, each in ACTION["inputs"].items()} | {"package": ""} | given
    own = {name for step in STEPS for name in step.get("env", {})}
    with exchange(*own) as commands:
        return in_shells(folder, inputs, commands)


def in_shells(
    folder: Path, inputs: dict[str, str], commands: str
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Return the steps with the command folder on the path."""
    path = f"{commands}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    failed = False
    for step in STEPS:
        condition = step.get("if", "")
        wanted = [inputs[name] for name in re.findall(r"inputs\.([\w-]+) != ''", condition)]
        if not all(wanted) or (failed and "always()" not in condition) or "run" not in step:
            continue
        values = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: inputs[match[1]], text)
            for name, text in step["env"].items()
        }
        result = done[step["name"]] = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**os.environ, **values, "PATH": path},
            capture_output=True, text=True, timeout=170,
        )  # fmt: skip
        failed |= result.returncode != 0
    return done


def test_action_validates_runs_checks_and_reports(aigo: Run, tmp_path: Path) -> None:
    aigo("init", ".")

    done = carried_out(tmp_path, rules="Accuracy >= 0.5\n\nAccuracy >= 0.1", out="my results")

    assert {name: (each.returncode, each.stderr) for name, each in done.items() if each.returncode} == {}
    assert list(done) == ["Validate", "Run", "Check", "Report"]
    assert done["Check"].stdout.count("passed") == 2
    results = tmp_path / "my results"
    assert {"capitals.tasklog.json", "report.html", "junit.xml"} <= {path.name for path in results.iterdir()}


def test_invalid_task_is_annotated_and_not_run(aigo: Run, tmp_path: Path) -> None:
    aigo("init", ".")
    task = tmp_path / "tasks" / "capitals" / "task.yaml"
    task.write_text(task.read_text().replace("sample.capital ", "sample.capitol "))

    done = carried_out(tmp_path)

    assert {name: each.returncode for name, each in done.items()} == {"Validate": 1, "Report": 0}
    assert "::error file=tasks/capitals/task.yaml,line=" in done["Validate"].stdout


def test_failed_rule_fails_the_action_and_keeps_the_report(aigo: Run, tmp_path: Path) -> None:
    aigo("init", ".")
    words = "--model\nscripted/tasks/capitals/answers.jsonl"

    done = carried_out(tmp_path, path="tasks", run="tasks/capitals", arguments=words, rules="Accuracy >= 0.9")

    assert {name: each.returncode for name, each in done.items()} == {
        "Validate": 0,
        "Run": 0,
        "Check": 1,
        "Report": 0,
    }
    assert "::error title=" in done["Check"].stdout + done["Check"].stderr
    assert (tmp_path / "out" / "report.html").is_file()


def test_action_inputs_are_not_run_as_commands(tmp_path: Path) -> None:
    hostile = '$(touch made); "; touch made; `touch made`'

    carried_out(
        tmp_path,
        **dict.fromkeys(("path", "run", "arguments", "rules", "result", "baseline"), hostile),
        out="o",
    )

    assert not (tmp_path / "made").exists()
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "an input would be a part of a command"


def test_page_lists_every_input_and_default() -> None:
    table = page(REPOSITORY / "docs" / "reference" / "pipelines.md").section("GitHub").body
    rows = dict(re.findall(r"^\| `([\w-]+)` \|\s*([^|]*?)\s*\|", table, re.MULTILINE))

    assert list(rows) == sorted(rows, key=list(rows).index)
    assert set(rows) == set(ACTION["inputs"])
    for name, default in rows.items():
        if name != "package":
            assert default.strip().strip("`") == ACTION["inputs"][name]["default"]


def test_action_always_uploads_the_output_folder() -> None:
    (keep,) = [step for step in STEPS if "upload-artifact" in step.get("uses", "")]

    assert keep["if"].startswith("always()")
    assert keep["with"]["path"] == "${{ inputs.out }}"


@pytest.mark.parametrize("step", [step for step in STEPS if "uses" in step], ids=lambda step: step["name"])
def test_third_party_actions_are_pinned(step: dict[str, Any]) -> None:
    assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
