"""Which folder a file's includes may reach: its project, found by what lies in the folders above, and never more."""

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
    """A project with a task in `tasks/`; marks are files, or folders when they end in `/`."""
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
def test_run_files_are_evaluations_and_plans_too(text: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p")
    (tmp_path / "p" / "x.yaml").write_bytes(text.encode())
    assert root_of(task) == tmp_path / "p"


@pytest.mark.parametrize(
    "text", ["key: a\ntags: [evaluation]\n", "job:\n  evaluation: 1\n", "evaluation_steps: 5\n", "\xff"]
)
def test_other_files_mark_no_project(text: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p")
    (tmp_path / "p" / "config.yaml").write_text(text, encoding="latin-1")
    assert root_of(task) == tmp_path / "p" / "tasks"


def test_a_file_that_becomes_a_run_file_marks_a_project_from_then_on(tmp_path: Path) -> None:
    task = project(tmp_path / "p", "other.yaml")
    other = tmp_path / "p" / "other.yaml"
    other.write_text(RUN.replace("evaluation:", "valuations:"))
    assert root_of(task) == tmp_path / "p" / "tasks"

    other.write_text(RUN)
    assert root_of(task) == tmp_path / "p"

    other.write_text(RUN.replace("evaluation:", "valuations:"))
    assert root_of(task) == tmp_path / "p" / "tasks"


def test_the_nearest_mark_counts(tmp_path: Path) -> None:
    """A project that was unpacked inside of another one does not reach into that."""
    inner = project(tmp_path / "outer" / "downloads" / "theirs", "run.yaml")
    (tmp_path / "outer" / ".git").mkdir()
    assert root_of(inner) == tmp_path / "outer" / "downloads" / "theirs"
    assert root_of(inner.parents[2] / "other.yaml") == tmp_path / "outer"


def test_a_run_file_in_evaluations_reaches_tasks_in_the_project(tmp_path: Path) -> None:
    project(tmp_path / "p", "evaluations/run.yaml")
    assert root_of(tmp_path / "p" / "evaluations" / "run.yaml") == tmp_path / "p"
    assert root_of(tmp_path / "p" / "run.yaml") == tmp_path / "p"


@pytest.mark.parametrize("mark", [".git/", "run.yaml", "evaluations/other.yaml"])
def test_run_files_deep_in_the_folder_for_evaluations_belong_to_its_project(
    mark: str, tmp_path: Path
) -> None:
    project(tmp_path / "p", mark, "evaluations/geo/2025/run.yaml")
    assert root_of(tmp_path / "p" / "evaluations" / "geo" / "2025" / "run.yaml") == tmp_path / "p"


def test_a_project_may_lie_in_a_folder_that_is_called_evaluations(tmp_path: Path) -> None:
    task = project(tmp_path / "evaluations" / "mine", "run.yaml")
    assert root_of(task) == tmp_path / "evaluations" / "mine"


def test_without_a_project_it_is_the_files_own_folder(tmp_path: Path) -> None:
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


def test_the_hint_proposes_no_root_that_holds_everything(tmp_path: Path) -> None:
    task = project(tmp_path / "p", ".git/")
    task.write_text(TASK.replace("../parts/x.md", "/etc/passwd"))
    with pytest.raises(SpecError) as caught:
        read(TaskSpec, task, env={})
    assert caught.value.issues[0].hint == "to allow it, use a wider root: --root DIR"


@pytest.mark.parametrize("mark", [".git/", "pyproject.toml", "run.yaml"])
def test_home_is_nobodys_project(mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keep their dot files in a repository; a task in there must not read keys."""
    task = project(tmp_path / "home", mark)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert root_of(task) == tmp_path / "home" / "tasks"
    assert root_of(tmp_path / "home" / "task.yaml") == tmp_path / "home"


def test_folders_above_home_are_not_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path / "all", "run.yaml")
    task = project(tmp_path / "all" / "me" / "p")
    monkeypatch.setenv("HOME", str(tmp_path / "all" / "me"))
    assert root_of(task) == task.parent


def test_a_folder_that_everybody_may_write_to_is_nobodys_project(tmp_path: Path) -> None:
    """Anybody could put a mark there."""
    task = project(tmp_path / "shared", ".git/")
    (tmp_path / "shared").chmod(0o1777)
    assert root_of(task) == task.parent


@pytest.mark.parametrize("between", [".cache", "lib/site-packages"])
def test_no_project_is_looked_for_above_caches_and_installed_packages(between: str, tmp_path: Path) -> None:
    task = project(tmp_path / "p" / between / "theirs")
    (tmp_path / "p" / ".git").mkdir()
    assert root_of(task) == task.parent


def test_a_hidden_folder_may_be_a_project(tmp_path: Path) -> None:
    task = project(tmp_path / ".work", "pyproject.toml")
    assert root_of(task) == tmp_path / ".work"


def test_links_are_followed_before_the_project_is_looked_for(tmp_path: Path) -> None:
    """A link into a stranger's folder does not make that a part of one's own project."""
    theirs = project(tmp_path / "theirs")
    mine = tmp_path / "mine"
    project(mine, ".git/")
    (mine / "linked").symlink_to(theirs.parent)
    assert root_of(mine / "linked" / "task.yaml") == theirs.parent


def test_a_link_does_not_lead_out_of_the_project(tmp_path: Path) -> None:
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


def test_the_hint_names_paths_as_seen_from_the_current_folder(
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


def test_a_named_folder_is_the_project_of_its_files_unless_one_is_marked(tmp_path: Path) -> None:
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


def test_home_is_nobodys_project_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = project(tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with naming([tmp_path / "home"]):
        assert root_of(task) == task.parent
