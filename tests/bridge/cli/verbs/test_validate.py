"""`aigo-bridge validate`: what is said about several files that have to do with each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import Run


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("input_builder", "input_bilder", "unknown key 'input_bilder'"),
        ("sample.capital }}", "sample.captial }}", "`sample.captial` is not a column"),
        ("field: is_correct", "field: is_corect", "the scorer has no score 'is_corect'"),
    ],
)
def test_a_mistake_in_a_task_is_told_once_though_the_run_file_has_it_too(
    aigo: Run, tmp_path: Path, right: str, wrong: str, message: str
) -> None:
    aigo("init")
    task = tmp_path / "tasks" / "capitals" / "task.yaml"
    task.write_text(task.read_text().replace(right, wrong))

    done = aigo("validate", ".")

    assert done.code == 1
    assert done.out.count(message) == 1
    assert done.out.endswith("1 error\n2 of 2 files are not valid\n")
    annotations = aigo("validate", ".", "--format", "github").out
    assert annotations.count("::error file=tasks/capitals/task.yaml") == 1
    assert [len(report["issues"]) for report in aigo("validate", ".", "--format", "json").json] == [1, 1]


def test_records_of_a_project_are_validated_with_it(aigo: Run, tmp_path: Path) -> None:
    aigo("init", "--template", "jsonl")

    assert aigo("validate", ".").out == "tasks.jsonl: a valid jsonl\n"
    with (tmp_path / "tasks.jsonl").open("a") as file:
        file.write("{}\n")
    assert "tasks.jsonl:4: error: task_id: the field is missing" in aigo("validate", ".").out


def test_a_folder_without_anything_to_validate_is_told_what_is_looked_for(aigo: Run) -> None:
    assert "YAML files, tasks.jsonl and result logs" in aigo("validate", ".").out
