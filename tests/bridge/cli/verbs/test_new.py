"""`aigo-bridge new`: adds parts to the current project."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import Run


@pytest.fixture
def project(aigo: Run, tmp_path: Path) -> Path:
    assert aigo("init").code == 0
    return tmp_path


def test_new_parts_are_valid_and_work_together(aigo: Run, project: Path) -> None:
    for part, name in [("task", "mine"), ("scorer", "brevity"), ("dataset", "words")]:
        done = aigo("new", part, name)
        assert done.code == 0, done.err
        assert "next:" in done.out
    task = project / "tasks" / "mine" / "task.yaml"
    text = task.read_text().replace("dataset: {key: mine}", "dataset: {key: words}")
    task.write_text(text.replace("  scorers:\n", "  scorers:\n    - {$ref: ../../scorers/brevity.yaml}\n"))

    done = aigo("validate", ".", "--strict")

    shared = ["scorers/brevity.yaml", "scorers/brevity.py", "datasets/words.yaml", "datasets/words.jsonl"]
    assert done.code == 0
    assert done.out.splitlines() == [
        *(f"reads {file}, outside the task folder" for file in shared),
        "4 files are valid (dataset, run, task)",
    ]


def test_new_adds_to_the_project_of_the_current_folder(
    aigo: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "tasks" / "capitals")

    assert aigo("new", "dataset", "words").code == 0

    assert (project / "datasets" / "words.yaml").is_file()


def test_name_that_is_not_a_valid_key_is_refused(aigo: Run, project: Path) -> None:
    files = {*project.rglob("*")}
    for name in ("", "../x", "a b", "é", "-x", "CON", "x" * 101, "a/b"):
        done = aigo("new", "task", "--", name)

        assert done.code == 2, name
        assert "expected letters, digits, - and _" in done.err
        assert {*project.rglob("*")} == files, name


def test_files_that_cannot_be_added_are_reported(aigo: Run, project: Path) -> None:
    done = aigo("new", "metric", "mine")

    assert (done.code, done.err) == (
        2,
        "error: new: found 'metric', expected task, scorer or dataset [AB801]\n",
    )


def test_existing_part_is_not_overwritten(aigo: Run, project: Path) -> None:
    aigo("new", "scorer", "mine")
    (project / "scorers" / "mine.py").write_text("mine")

    done = aigo("new", "scorer", "mine")

    assert done.code == 2
    assert "is not overwritten" in done.err
    assert (project / "scorers" / "mine.py").read_text() == "mine"


def test_outside_a_project_new_suggests_init(aigo: Run) -> None:
    done = aigo("new", "task", "mine")

    assert done.code == 2
    assert "is not in a project; create one with `aigo-bridge init`" in done.err
