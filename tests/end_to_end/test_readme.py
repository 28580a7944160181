"""The README is executed: its files exist, and its commands print the shown output."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.consoles import Reader, squeezed
from tests.support.endpoint import Endpoint, completion
from tests.support.pages import PAGES, page
from tests.support.shells import exchange

README = page(REPOSITORY / "README.md")
RUNNING = page(REPOSITORY / "docs" / "guides" / "run-a-task.md")
MODELS = page(REPOSITORY / "docs" / "reference" / "models.md")
EXTRAS = re.compile(r"(?:make install EXTRAS=|(?:aigo-bridge|'\.)\[)([a-z\d,]+)")
SERVER = "http://127.0.0.1:8000/v1"
"""What the pages write for the address of the reader's own server."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Clone after `make demo`, as a reader has it."""
    for folder in ("examples", "tasks"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def unlike(shown: str, printed: str) -> list[str]:
    """Return the shown lines that were not printed."""
    return [line for line in squeezed(shown) if line not in squeezed(printed)]


def answered(endpoint: Endpoint) -> None:
    """Make the endpoint answer two capitals correctly and Oslo otherwise."""
    answers = {"Peru": "Lima", "Japan": "Tokyo"}

    def answer(request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        text = str(request["messages"])
        return 200, completion(next((known for asked, known in answers.items() if asked in text), "Oslo"))

    endpoint.answer = answer


@pytest.mark.timeout(600)  # a dozen commands, each in a process of its own
def test_commands_work_as_typed(checkout: Path, endpoint: Endpoint) -> None:
    """All commands run from the top in one shell that has no command of this project at first."""
    answered(endpoint)
    reader = Reader(checkout, activated=False, OPENAI_BASE_URL=endpoint.url, INSPECT_DISPLAY="none")

    for block in README.blocks:
        if block.kind == "csv":
            (checkout / "questions.csv").write_text(block.text)
        for command, _ in block.commands:
            if not command.startswith("make "):
                reader.run(command)

    assert [request["model"] for request in endpoint.requests] == ["gpt-4.1-nano"] * 2
    log = json.loads((checkout / "out" / "singleturn-generic-input.tasklog.json").read_text())
    (metric,) = log["evidence"]["metrics"]
    assert list(metric["values"].values()) == [1.0]
    assert (checkout / "report.html").is_file()


@pytest.mark.timeout(600)
def test_commands_for_common_tasks_work(checkout: Path, endpoint: Endpoint) -> None:
    commands = re.findall(r"^\| [^|]+ \| `(aigo-bridge [^`]+)`", README.text, re.MULTILINE)
    assert len(commands) == 8
    answered(endpoint)
    reader = Reader(checkout, OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="sk-x", INSPECT_DISPLAY="none")
    reader.run("aigo-bridge run examples/capitals --model scripted/examples/capitals/answers.jsonl")
    for name in ("old", "new"):
        shutil.copy(checkout / "out" / "capitals.tasklog.json", checkout / f"{name}.tasklog.json")
    shutil.copytree(checkout / "out", checkout / "logs", ignore=shutil.ignore_patterns("*.json"))

    for command in commands:
        if "init" in command:
            shutil.rmtree(checkout / "my-project", ignore_errors=True)
        # Four samples cannot exclude a regression: exit code 4.
        reader.run(f"{command} || [ $? = 4 ]" if " check " in command else command)


def test_commands_of_the_pages_on_running_work_as_typed(
    aigo: Run, checkout: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, which has loaded the engine already, because there are many such pages."""
    endpoint.answer = lambda _: (200, completion("Oslo"))
    reader = Reader(checkout, INSPECT_DISPLAY="none")

    for command, shown in [
        each for of in (RUNNING, MODELS) for block in of.blocks for each in block.commands
    ]:
        verb, *words = shlex.split(command.replace(SERVER, endpoint.url))
        if verb == "export":
            for name, _, value in [word.partition("=") for word in words]:
                monkeypatch.setenv(name, value)
        elif verb == "aigo-bridge":
            done = aigo(*words)
            assert (done.code, unlike(shown, done.out)) == (0, []), f"{command}\n{done.err}"
        else:
            reader.run(command)

    assert [request["model"] for request in endpoint.requests] == ["my-model"] * 4


def test_only_network_commands_are_not_executed() -> None:
    """Blocks that are not consoles have one of these kinds; `sh` is for downloads that a test cannot do."""
    kinds = {block.kind for block in README.blocks}
    fetched = [block.text for block in README.blocks if block.kind == "sh"]

    assert kinds == {"console", "csv", "text", "sh"}
    assert all(line.startswith("make install EXTRAS=") for text in fetched for line in text.splitlines())


def test_extras_named_on_pages_exist() -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    lists = [found for each in PAGES for found in EXTRAS.findall(page(each).text)]
    named = {extra for found in lists for extra in found.split(",")}

    assert {"openai", "huggingface", "lighteval"} <= named <= extras


def test_no_command_replaces_the_installed_clone() -> None:
    """`pip install '.[x]'` replaces an editable installation with a copy, which ignores later edits."""
    assert [each.name for each in PAGES if "pip install '.[" in page(each).text] == []


def test_the_page_is_short() -> None:
    assert len(re.sub(r"```.*?```", "", README.text, flags=re.DOTALL).split()) <= 700


def test_shown_error_equals_the_printed_error(checkout: Path) -> None:
    task = checkout / "examples" / "capitals" / "task.yaml"
    task.write_text(task.read_text().replace("sample.capital", "sample.capitol"))
    (shown,) = [block.text for block in RUNNING.blocks if block.kind == "text"]

    done = subprocess.run(
        [Path(sys.executable).parent / "aigo-bridge", "run", "task.yaml", "--model", "mockllm/x"],
        cwd=task.parent,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert [
        line for line in squeezed(shown) if not any(line in found for found in squeezed(done.stderr))
    ] == []


OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMERR", "MAKE_TERMOUT", "MFLAGS", "OUT", "VENV")
"""Variables that make sets for its commands."""


def test_demo_runs_the_three_tasks(tmp_path: Path) -> None:
    """`make demo` with the existing environment."""
    commands = [command for block in README.blocks for command, _ in block.commands]
    assert [each for each in commands if each.startswith("make ")] == ["make demo", "make test"]
    with exchange(*OF_MAKE) as folder:
        environment = Path(folder).parent
        done = subprocess.run(
            ["make", "demo", f"VENV={environment}", "-o", f"{environment}/installed", f"OUT={tmp_path}"],
            cwd=REPOSITORY,
            env=os.environ,  # without the size of a terminal, which readline puts into that of the process
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
    for value in ("81.82 %", "80.95 %", "80 %"):
        assert value in done.stdout
