"""`validate` checks a task together with the dataset in its folder."""

from __future__ import annotations

from pathlib import Path

from aigo_bridge.evaluation.validation import validate

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
"""


def messages(folder: Path) -> list[tuple[str, str]]:
    (report,) = validate([folder / "task.yaml"])
    return [(issue.severity, issue.message) for issue in report.issues]


def test_a_column_missing_in_the_dataset_of_the_task_is_reported(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "rows.jsonl").write_text('{"frage": "?"}\n')
    # The file does not name any other dataset, so this is an error, as in a run.
    assert messages(tmp_path) == [("error", "`sample.question` is not a column of the dataset")]


def test_matching_dataset_passes_and_missing_dataset_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    ((severity, message),) = messages(tmp_path)
    assert (severity, message.split(";")[0]) == ("warning", "dataset 'rows' was not found")
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}\n')
    assert messages(tmp_path) == []


def test_validate_finds_the_same_task_records_in_a_folder_as_run(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tasks.jsonl").write_text(
        '{"task_id": "x", "promt": "hi", "targets": ["a"], "category": "mcq"}\n'
    )
    (tmp_path / "rows.jsonl").write_text('{"question": "?"}\n')
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "tasks.jsonl").write_text("nonsense\n")

    (report,) = validate([tmp_path])

    assert (report.kind, report.file) == ("jsonl", tmp_path / "sub" / "tasks.jsonl")
    assert "promt: unknown field" in " ".join(issue.message for issue in report.issues)
