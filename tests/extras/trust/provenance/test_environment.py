"""Recorded environment of a result: redacted command line, and repository state without executing hooks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aigo_trust.provenance.environment import command_line, environment, repository_state

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


def repository(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run([*GIT, "init", "-q", "."], cwd=folder, check=True)
    (folder / "task.yaml").write_text("key: a\n")
    subprocess.run([*GIT, "add", "."], cwd=folder, check=True)
    subprocess.run([*GIT, "commit", "-q", "-m", "one"], cwd=folder, check=True)
    return folder


def test_repository_state_has_commit_and_dirty_flag(tmp_path: Path) -> None:
    folder = repository(tmp_path / "a")
    state = repository_state(folder)
    assert state is not None
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True
    ).stdout.strip()
    assert state == {"commit": head, "dirty": False}
    changed = repository(tmp_path / "b")
    (changed / "task.yaml").write_text("key: b\n")
    assert (repository_state(changed) or {})["dirty"] is True
    assert repository_state(tmp_path / "..") is None or (tmp_path / "..").resolve() != tmp_path


@pytest.mark.parametrize(
    "configured",
    [
        '[core]\n\tfsmonitor = "touch ../started"\n',
        '[filter "x"]\n\tclean = "touch ../started; cat"\n',
        "[include]\n\tpath = ../elsewhere\n",
        '[diff "x"]\n\ttextconv = touch ../started\n',
    ],
)
def test_repository_with_executable_configuration_is_not_queried(configured: str, tmp_path: Path) -> None:
    folder = repository(tmp_path / "a")
    with (folder / ".git" / "config").open("a") as file:
        file.write(configured)
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    (folder / "task.yaml").write_text("key: b\n")
    assert repository_state(folder) is None
    assert not (tmp_path / "started").exists()


def test_recorded_command_line_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8t" * 2
    arguments = ["/x/bin/aigo-bridge", "run", "t", "--model-arg", "api_key=hunter2hunter2", "--model", key]
    monkeypatch.setattr(sys, "argv", arguments)
    line = command_line()
    assert line is not None
    assert line[:3] == ["aigo-bridge", "run", "t"]
    assert "hunter2" not in str(line)
    assert key not in str(line)
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert command_line() is None


def test_environment_lists_installed_versions() -> None:
    facts = environment()
    assert facts["packages"]["pydantic"]
    assert "pytest" not in facts["packages"]
    assert facts["python"] == sys.version.split()[0]
