"""The README is executed: its files are the files, its commands run, its output is what comes out."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.endpoint import Endpoint, completion

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
CONSOLE = [
    (command, expected)
    for kind, block in BLOCKS
    if kind == "console"
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]
MAKE = [command for command, _ in CONSOLE if command.startswith("make ")]
RUNS = [(command, expected) for command, expected in CONSOLE if not command.startswith("make ")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a reader of the README has in front of him."""
    for folder in ("examples", "tasks"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", **more}


def squeezed(text: str) -> list[str]:
    """Lines without the padding of tables."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_commands_work_as_shown(checkout: Path, endpoint: Endpoint) -> None:
    """All of them, one after the other in one folder, as a reader would."""
    endpoint.answer = lambda _: (200, completion("Oslo"))
    env = environment(OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="k", INSPECT_DISPLAY="none")

    for command, expected in RUNS:
        done = subprocess.run(
            ["bash", "-c", command], cwd=checkout, env=env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed = squeezed(done.stdout)
        assert [line for line in squeezed(expected) if line not in printed] == [], command

    assert [request["model"] for request in endpoint.requests] == ["gpt-4.1-nano"] * 5


def test_the_task_file_is_the_file() -> None:
    yaml, *_ = [block for kind, block in BLOCKS if kind == "yaml"]

    assert yaml == (REPOSITORY / "examples" / "capitals" / "task.yaml").read_text()


def test_the_piece_of_evidence_is_in_the_evidence(checkout: Path) -> None:
    (shown,) = [json.loads(block) for kind, block in BLOCKS if kind == "json"]
    subprocess.run(shlex.split(RUNS[0][0]), cwd=checkout, env=environment(), check=True, capture_output=True)

    result = json.loads((checkout / "out" / "capitals.tasklog.json").read_text())
    assert result["evidence"]["samples"][2]["trials"][0]["scores"] == [shown]


def test_the_error_is_the_error(checkout: Path) -> None:
    task = checkout / "examples" / "capitals" / "task.yaml"
    task.write_text(task.read_text().replace("sample.capital", "sample.capitol"))
    (shown,) = [block for kind, block in BLOCKS if kind == "text"]

    done = subprocess.run(
        ["aigo-bridge", "run", "task.yaml", "--model", "mockllm/x"],
        cwd=task.parent,
        env=environment(),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert [
        line for line in squeezed(shown) if not any(line in found for found in squeezed(done.stderr))
    ] == []


def test_demo_runs_the_three_tasks(tmp_path: Path) -> None:
    """`make demo`, with the environment that is there instead of a new one."""
    assert MAKE == ["make demo", "make test"]
    done = subprocess.run(
        ["make", "demo", f"VENV={sys.prefix}", "-o", f"{sys.prefix}/installed", f"OUT={tmp_path}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("*.tasklog.json")} == {
        "singleturn-generic-input.tasklog.json",
        "hp-trivia.tasklog.json",
        "uniqueness-task.tasklog.json",
    }
    for value in ("0.8182", "0.8095", "0.8"):
        assert value in done.stdout
