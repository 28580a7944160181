"""`aigo-bridge validate`: reports about several related files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("input_builder", "input_bilder", "unknown key 'input_bilder'"),
        ("sample.capital }}", "sample.captial }}", "`sample.captial` is not a column"),
        ("field: is_correct", "field: is_corect", "the scorer does not return score 'is_corect'"),
    ],
)
def test_a_mistake_in_a_task_of_a_run_file_is_reported_once(
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


def test_task_records_in_a_project_are_validated(aigo: Run, tmp_path: Path) -> None:
    aigo("init", "--template", "jsonl")

    assert aigo("validate", ".").out == "tasks.jsonl: a valid jsonl\n"
    with (tmp_path / "tasks.jsonl").open("a") as file:
        file.write("{}\n")
    assert "tasks.jsonl:4: error: task_id: the field is missing" in aigo("validate", ".").out


def test_an_empty_folder_is_reported_with_the_expected_files(aigo: Run) -> None:
    assert "YAML files, tasks.jsonl and result logs" in aigo("validate", ".").out


GUIDE = {
    "datasets/dataset.yaml": "key: docs\ndisplay_name: Docs\nsource: {type: folder, directory_path: ../documents}\n",
    "documents/a.txt": "one",
    "tasks/task.yaml": (
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: docs}\n"
        "  scorers: [{type: python, compute_scores_snippet: !include ../parts/score.py}]\n"
    ),
    "parts/score.py": "def compute_scores(sample):\n    return {'a': 1}\n",
}


def test_validated_folder_is_the_root_of_its_files(aigo: Run, tmp_path: Path) -> None:
    guide = tmp_path / "guide"
    for name, text in GUIDE.items():
        (guide / name).parent.mkdir(parents=True, exist_ok=True)
        (guide / name).write_text(text)

    done = aigo("validate", "guide")
    assert done.code == 0, done.out
    assert "2 files are valid (dataset, task)" in done.out
    alone = aigo("validate", "guide/datasets/dataset.yaml")
    assert alone.code == 1
    assert (
        "hint: to allow it, use a wider root: --root guide; to allow it permanently, create a run file, app.yaml"
        in alone.out
    )

    (guide / "app.yaml").write_text("key: a\ndisplay_name: A\n")
    assert aigo("validate", "guide/datasets/dataset.yaml", "guide/tasks/task.yaml").code == 0

    (tmp_path / "documents").mkdir()
    (guide / "datasets" / "dataset.yaml").write_text(
        GUIDE["datasets/dataset.yaml"].replace("../documents", "../../documents")
    )
    outside = aigo("validate", "guide")
    assert outside.code == 1
    assert "is outside the root folder" in outside.out


def test_shipped_task_is_validated_by_its_name(aigo: Run) -> None:
    done = aigo("validate", "aigo_tasks/gsm8k")
    assert done.code == 0, done.err
    assert "gsm8k" in done.out


def test_two_datasets_with_the_same_key_are_refused_with_an_option_hint(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(REPOSITORY / "examples" / "capitals", tmp_path / "capitals"))
    Path("capitals.csv").write_text("country,capital\nPeru,Lima\n", encoding="utf-8")

    refused = aigo("validate", "task.yaml")

    assert refused.code == 1
    assert "contain the rows of dataset 'capitals': capitals.jsonl, capitals.csv [AB127]" in refused.out
    assert "--dataset capitals=FILE" in refused.out
    chosen = aigo("explain", "task.yaml", "--dataset", "capitals=capitals.csv", "-n", "1")
    assert chosen.code == 0, chosen.err
