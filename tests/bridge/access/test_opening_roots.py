"""The folder that includes of a file may reach: its project, found by markers in the parent folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.access.opening import naming, root_of
from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

TASK = "key: a\ndisplay_name: A\ndescription: !include ../parts/x.md\ndefinition: {scorers: []}\n"
RUN = "run_config: {}\nevaluation: {key: e, display_name: E, task_specifications: []}\n"


def project(folder: Path, *marks: str) -> Path:
    """Write a project with a task in `tasks/`. Markers are files, or folders if they end in `/`."""
    for name in ("tasks", "parts"):
        (folder / name).mkdir(parents=True)
    (folder / "parts" / "x.md").write_text("shared")
    for mark in marks:
        path = folder / mark
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if mark.endswith("/") else path.write_text(RUN)
    task = folder / "tasks" / "task.yaml"
    task.write_text(TASK)
    return task


@pytest.mark.parametrize(
    "mark",
    [
        ".git/",
        ".git",  # of a work tree, or a submodule
        "pyproject.toml",
        "app.yaml",
        "run.yaml",
        "whatever-it-is-called.yml",
        "evaluations/run.yaml",
        "evaluation/quiz.yaml",
    ],
)
def test_a_project_is_recognized_by_its_files(mark: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p", mark)
    assert root_of(task) == tmp_path / "p"
    assert read(TaskSpec, task, env={}).spec.description == "shared"


@pytest.mark.parametrize(
    "text",
    [
        "key: e\ndisplay_name: E\ntask_specifications: []\n",
        "key: p\ndisplay_name: P\nevaluation_specifications:\n  - {evaluation_key: e}\n",
        "key: p\ndisplay_name: P\nevaluations:\n  - $ref: run.yaml\n",
        "tasks: []\r\nevaluation:\r\n  key: e\r\n",
    ],
)
def test_evaluation_or_run_plan_file_marks_a_project(text: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p")
    (tmp_path / "p" / "x.yaml").write_bytes(text.encode())
    assert root_of(task) == tmp_path / "p"


@pytest.mark.parametrize(
    "text", ["key: a\ntags: [evaluation]\n", "job:\n  evaluation: 1\n", "evaluation_steps: 5\n", "\xff"]
)
def test_other_yaml_files_do_not_mark_a_project(text: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p")
    (tmp_path / "p" / "config.yaml").write_text(text, encoding="latin-1")
    assert root_of(task) == tmp_path / "p" / "tasks"


def test_file_changed_into_a_run_file_marks_a_project(tmp_path: Path) -> None:
    task = project(tmp_path / "p", "other.yaml")
    other = tmp_path / "p" / "other.yaml"
    other.write_text(RUN.replace("evaluation:", "valuations:"))
    assert root_of(task) == tmp_path / "p" / "tasks"

    other.write_text(RUN)
    assert root_of(task) == tmp_path / "p"

    other.write_text(RUN.replace("evaluation:", "valuations:"))
    assert root_of(task) == tmp_path / "p" / "tasks"


def test_nearest_project_marker_wins(tmp_path: Path) -> None:
    """A project that was unpacked inside another one cannot read files of the outer project."""
    inner = project(tmp_path / "outer" / "downloads" / "theirs", "run.yaml")
    (tmp_path / "outer" / ".git").mkdir()
    assert root_of(inner) == tmp_path / "outer" / "downloads" / "theirs"
    assert root_of(inner.parents[2] / "other.yaml") == tmp_path / "outer"


def test_run_file_in_evaluations_can_read_tasks_of_the_project(tmp_path: Path) -> None:
    project(tmp_path / "p", "evaluations/run.yaml")
    assert root_of(tmp_path / "p" / "evaluations" / "run.yaml") == tmp_path / "p"
    assert root_of(tmp_path / "p" / "run.yaml") == tmp_path / "p"


@pytest.mark.parametrize("mark", [".git/", "run.yaml", "evaluations/other.yaml"])
def test_run_file_nested_in_evaluations_belongs_to_the_project(mark: str, tmp_path: Path) -> None:
    project(tmp_path / "p", mark, "evaluations/geo/2025/run.yaml")
    assert root_of(tmp_path / "p" / "evaluations" / "geo" / "2025" / "run.yaml") == tmp_path / "p"


def test_project_may_be_in_a_folder_named_evaluations(tmp_path: Path) -> None:
    task = project(tmp_path / "evaluations" / "mine", "run.yaml")
    assert root_of(task) == tmp_path / "evaluations" / "mine"


def test_root_without_a_project_is_the_folder_of_the_file(tmp_path: Path) -> None:
    task = project(tmp_path / "p")
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, task, env={})
    (issue,) = caught.value.issues
    own = str(tmp_path / "p" / "tasks")
    assert issue.message == f"!include: '../parts/x.md' is outside the root folder {own!r}"
    wider = tmp_path / "p"
    assert issue.hint == (
        f"to allow it, use a wider root: --root {wider};"
        f" to allow it permanently, create a run file, app.yaml, pyproject.toml or .git in {wider}"
    )
    assert (issue.line, issue.column) == (3, 14)


def test_hint_does_not_suggest_the_file_system_root(tmp_path: Path) -> None:
    task = project(tmp_path / "p", ".git/")
    task.write_text(TASK.replace("../parts/x.md", "/etc/passwd"))
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, task, env={})
    assert caught.value.issues[0].hint == "to allow it, use a wider root: --root DIR"


@pytest.mark.parametrize("mark", [".git/", "pyproject.toml", "run.yaml"])
def test_home_folder_is_not_a_project(mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many people keep their dot files in a repository. A task there must not read keys."""
    task = project(tmp_path / "home", mark)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert root_of(task) == tmp_path / "home" / "tasks"
    assert root_of(tmp_path / "home" / "task.yaml") == tmp_path / "home"


def test_folders_above_home_are_not_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path / "all", "run.yaml")
    task = project(tmp_path / "all" / "me" / "p")
    monkeypatch.setenv("HOME", str(tmp_path / "all" / "me"))
    assert root_of(task) == task.parent


def test_world_writable_folder_is_not_a_project(tmp_path: Path) -> None:
    """Any user could put a marker there."""
    task = project(tmp_path / "shared", ".git/")
    (tmp_path / "shared").chmod(0o1777)
    assert root_of(task) == task.parent


@pytest.mark.parametrize("between", [".cache", "lib/site-packages"])
def test_no_project_is_found_above_caches_and_installed_packages(between: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p" / between / "theirs")
    (tmp_path / "p" / ".git").mkdir()
    assert root_of(task) == task.parent


def test_a_hidden_folder_may_be_a_project(tmp_path: Path) -> None:
    task = project(tmp_path / ".work", "pyproject.toml")
    assert root_of(task) == tmp_path / ".work"


def test_symlinks_are_resolved_before_the_project_search(tmp_path: Path) -> None:
    """A symlink to another user's folder does not make that folder part of the project."""
    theirs = project(tmp_path / "theirs")
    mine = tmp_path / "mine"
    project(mine, ".git/")
    (mine / "linked").symlink_to(theirs.parent)
    assert root_of(mine / "linked" / "task.yaml") == theirs.parent


def test_symlink_cannot_leave_the_project(tmp_path: Path) -> None:
    task = project(tmp_path / "p", ".git/")
    (tmp_path / "secret.txt").write_text("TOP SECRET")
    (tmp_path / "p" / "parts" / "x.md").unlink()
    (tmp_path / "p" / "parts" / "x.md").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SpecError, match="is outside the root folder"):
        read(TaskSpec, task, env={})


def test_circular_links_do_not_crash(tmp_path: Path) -> None:
    task = project(tmp_path / "p", ".git/")
    circle = tmp_path / "p" / "parts" / "x.md"
    circle.unlink()
    circle.symlink_to(circle)
    with pytest.raises(SpecError):
        read(TaskSpec, task, env={})


def test_hint_shows_paths_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = project(tmp_path / "p")
    for current, wider in ((tmp_path, "p"), (tmp_path / "p", "."), (task.parent, "..")):
        monkeypatch.chdir(current)
        with pytest.raises(SpecError) as caught:
            read(TaskSpec, task, env={})
        assert (caught.value.issues[0].hint or "").startswith(
            f"to allow it, use a wider root: --root {wider};"
        )


def test_named_folder_is_the_project_unless_a_marked_project_exists(tmp_path: Path) -> None:
    task = project(tmp_path / "all" / "p")
    with naming([tmp_path / "all" / "p" / "tasks", tmp_path / "all" / "p"]):
        assert root_of(task) == tmp_path / "all" / "p"
        (tmp_path / "all" / ".git").mkdir()
        assert root_of(task) == tmp_path / "all"
    (tmp_path / "all" / ".git").rmdir()
    assert root_of(task) == task.parent

    inner = project(tmp_path / "all" / "theirs", "run.yaml")
    with naming([tmp_path / "all"]):
        assert root_of(inner) == tmp_path / "all" / "theirs"
        assert root_of(task) == tmp_path / "all"


def test_home_folder_is_not_a_project_even_if_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = project(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with naming([tmp_path / "home"]):
        assert root_of(task) == task.parent
