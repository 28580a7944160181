"""A foreign task in the user's project reads no private file with any field."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

import aigo_bridge
from aigo_bridge.errors import SpecError
from aigo_bridge.evaluation.validation import validate

SECRET = "TOP-SECRET-7731"
TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: %s}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.q }}"}]
"""
PLAIN = '"{{ sample.q }}"'
PRIVATE = (
    "../../.env",
    "../../.git/config",
    "../../server.pem",
    "../../ignored.txt",
    "../../out/x.txt",
    "link.txt",
)


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """Folder of a foreign task in a project with secrets of every kind."""
    project = tmp_path / "proj"
    folder = project / "tasks" / "stranger"
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".gitignore").write_text("ignored.*\n/out/\n", encoding="utf-8")
    (project / "out").mkdir()
    (project / ".rows").mkdir()
    for name in (".env", "server.pem", "ignored.txt", "out/x.txt"):
        (project / name).write_text(f"KEY={SECRET}\n", encoding="utf-8")
    for name in ("ignored.jsonl", "out/rows.jsonl", ".rows/rows.jsonl", "server.key.jsonl"):
        (project / name).write_text(json.dumps({"q": SECRET}) + "\n", encoding="utf-8")
    with (project / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(f"# {SECRET}\n")
    (project / "shared.txt").write_text("Shared: {{ sample.q }}", encoding="utf-8")
    (folder / "own.txt").write_text("Own: {{ sample.q }}", encoding="utf-8")
    (folder / "link.txt").symlink_to("../../.env")
    (folder / "rows.jsonl").write_text('{"q": "1"}\n', encoding="utf-8")
    (folder / "task.yaml").write_text(TASK % PLAIN, encoding="utf-8")
    return folder


def outputs(folder: Path, aigo: Run, *options: str) -> Iterator[tuple[int, str]]:
    """Return the output of each verb that reads a task."""
    out = folder.parent.parent / "evidence"
    answers = folder / "answers.jsonl"
    answers.write_text('{"default": true, "reply": "1"}\n', encoding="utf-8")
    for words in (
        ("validate", folder / "task.yaml"),
        ("explain", folder / "task.yaml"),
        ("run", folder / "task.yaml", "--model", f"scripted/{answers}", "-o", out),
        ("export", folder / "task.yaml", "--to", "inspect", "-o", folder / "export", "--force"),
    ):
        done = aigo(*words, *options)
        written = "".join(path.read_text("utf-8", "replace") for path in out.rglob("*") if path.is_file())
        yield done.code, done.out + done.err + written


@pytest.mark.parametrize("path", PRIVATE)
def test_private_file_cannot_be_included(path: str, stranger: Path, aigo: Run) -> None:
    (stranger / "task.yaml").write_text(TASK % f"!include {path}", encoding="utf-8")
    for code, said in outputs(stranger, aigo):
        assert code != 0
        assert "a task may not read it" in said
        assert SECRET not in said


@pytest.mark.parametrize("path", PRIVATE)
def test_private_file_cannot_be_referenced(path: str, stranger: Path) -> None:
    (stranger / "task.yaml").write_text((TASK % PLAIN) + f"extra: {{$ref: {path}}}\n", encoding="utf-8")
    (report,) = validate([stranger / "task.yaml"])
    messages = [issue.message for issue in report.issues if "may not read" in issue.message]
    assert messages
    assert SECRET not in str(report.issues)


@pytest.mark.parametrize(
    "source",
    [
        {"type": "local", "file_path": "../../ignored.jsonl"},
        {"type": "local", "file_path": "../../out/rows.jsonl"},
        {"type": "local", "file_path": "../../.rows/rows.jsonl"},
        {"type": "folder", "directory_path": "../.."},
        {"type": "folder", "directory_path": "../../out"},
        {"type": "folder", "directory_path": "../../.git"},
        {
            "type": "huggingface",
            "path": "json",
            "split": "train",
            "load_dataset_kwargs": {"data_files": "ignored.jsonl"},
        },
        {"type": "huggingface", "path": "out", "split": "train"},
        {"type": "claude_code", "path": "../../out"},
        {"type": "langsmith", "path": "../../ignored.jsonl"},
        {"type": "opentelemetry", "path": "../../out/rows.jsonl"},
        {"type": "inspect_ai", "path": "../../out"},
    ],
)
def test_private_file_cannot_be_read_as_rows(source: dict[str, Any], stranger: Path, aigo: Run) -> None:
    (stranger / "rows.jsonl").unlink()
    data = {"key": "rows", "display_name": "R", "source": source}
    (stranger / "rows.yaml").write_text(json.dumps(data), encoding="utf-8")
    done = aigo("explain", stranger / "task.yaml")
    assert done.code != 0
    assert "may not read" in done.out + done.err
    assert SECRET not in done.out + done.err


@pytest.mark.parametrize("name", ["datasets/rows.jsonl", "datasets/rows.yaml", "../../datasets/rows.jsonl"])
def test_private_file_cannot_be_found_by_its_key(name: str, stranger: Path, aigo: Run) -> None:
    (stranger / "rows.jsonl").unlink()
    file = stranger / name
    file.parent.mkdir(parents=True)
    data = {"key": "rows", "display_name": "R", "source": {"type": "local", "file_path": "x.jsonl"}}
    rows = json.dumps({"q": SECRET} if file.suffix == ".jsonl" else data)
    file.write_text(rows + "\n", encoding="utf-8")
    (stranger.parents[1] / ".gitignore").write_text("datasets/\n", encoding="utf-8")
    done = aigo("explain", stranger / "task.yaml")
    assert done.code != 0
    assert "--allow-file" in done.out + done.err
    assert SECRET not in done.out + done.err


def test_a_private_result_is_not_a_dataset(stranger: Path, aigo: Run) -> None:
    (stranger / "old.tasklog.json").write_text("{}", encoding="utf-8")
    (stranger.parents[1] / ".gitignore").write_text("*.tasklog.json\n", encoding="utf-8")
    task = (TASK % PLAIN).replace("{key: rows}", "{key: old, source: task_result}")
    (stranger / "task.yaml").write_text(task, encoding="utf-8")
    done = aigo("explain", stranger / "task.yaml")
    assert "is ignored by git; a task may not read it" in done.out + done.err


def test_private_files_named_by_the_user_are_read(
    stranger: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = stranger.parents[1]
    (stranger / "task.yaml").write_text(TASK % "!include ../../out/x.txt", encoding="utf-8")
    for allowed in (project / "out", project / "out" / "x.txt"):
        for code, said in outputs(stranger, aigo, "--allow-file", str(allowed)):
            assert code == 0, said
    done = aigo("explain", stranger / "task.yaml", "--allow-file", str(project / "nothing"))
    assert "--allow-file: file " in done.err
    assert "does not exist" in done.err
    plan = aigo_bridge.plan_task(stranger / "task.yaml", files=[project / "out"])
    assert len(plan.samples) == 1
    with pytest.raises(SpecError, match="may not read"):
        aigo_bridge.plan_task(stranger / "task.yaml", files=[project / ".env"])
    (project / "aigo-bridge.toml").write_text('files = ["out"]\n', encoding="utf-8")
    assert aigo("explain", stranger / "task.yaml").code != 0
    monkeypatch.chdir(project)
    assert aigo("explain", stranger / "task.yaml").code == 0
    (project / "aigo-bridge.toml").write_text('files = ["../other"]\n', encoding="utf-8")
    done = aigo("explain", stranger / "task.yaml")
    assert "is outside the project" in done.err
    # A data file that the user gives is the user's choice.
    (stranger / "task.yaml").write_text(TASK % PLAIN, encoding="utf-8")
    (project / "aigo-bridge.toml").unlink()
    assert (
        aigo("explain", stranger / "task.yaml", "--dataset", f"rows={project / 'out' / 'rows.jsonl'}").code
        == 0
    )


def test_files_outside_the_task_folder_are_listed(stranger: Path, aigo: Run) -> None:
    shared = os.path.realpath(stranger.parents[1] / "shared.txt")
    (stranger / "task.yaml").write_text(TASK % "!include ../../shared.txt", encoding="utf-8")
    for verb in ("validate", "explain"):
        done = aigo(verb, stranger / "task.yaml")
        assert done.code == 0
        assert f"{os.path.basename(shared)}, outside the task folder" in done.out  # noqa: PTH119
    (report,) = validate([stranger / "task.yaml"])
    assert report.files == (shared,)
    listed = aigo("explain", stranger / "task.yaml", "--json").json["files"]
    assert [Path(file).name for file in listed] == ["shared.txt"]
    (stranger / "task.yaml").write_text(TASK % "!include own.txt", encoding="utf-8")
    assert "own folder" not in aigo("validate", stranger / "task.yaml").out
    (stranger / "rows.jsonl").rename(stranger.parents[1] / "rows.jsonl")
    (stranger / "rows.yaml").write_text(
        json.dumps(
            {"key": "rows", "display_name": "R", "source": {"type": "local", "file_path": "../../rows.jsonl"}}
        ),
        encoding="utf-8",
    )
    assert "rows.jsonl, outside the task folder" in aigo("explain", stranger / "task.yaml").out


@pytest.mark.parametrize("path", ["../../.env", "../../ignored.txt"])
def test_converted_task_includes_no_private_file(path: str, stranger: Path, aigo: Run) -> None:
    (stranger / "lm.yaml").write_text(f"task: x\ninclude: {path}\n", encoding="utf-8")
    done = aigo(
        "convert", f"lm-eval:{stranger / 'lm.yaml'}", "-o", stranger / "c", "--root", stranger.parents[1]
    )
    assert done.code != 0
    assert "may not read" in done.out + done.err
    assert SECRET not in done.out + done.err
