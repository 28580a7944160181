"""Invalid files with one error each (`rejects.toml`): position, message and hint of the issue."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.bridge.reading.reading_examples import (
    CONNECTIONS,
    EXAMPLES,
    MODEL,
    SINGLE_TURN,
    SYSTEM,
    broken,
    errors_of,
)

ROWS = [
    (file["example"], old, new, message, *(hint or [None]))
    for file in tomllib.loads(Path(__file__).with_name("rejects.toml").read_text("utf-8"))["broken"]
    for old, new, message, *hint in file["errors"]
]


def test_error_table_has_enough_rows() -> None:
    assert len(ROWS) >= 150


@pytest.mark.parametrize(
    ("example", "old", "new", "message", "hint"),
    ROWS,
    ids=[f"{index}-{row[3][:40]}" for index, row in enumerate(ROWS)],
)
def test_error_is_reported_at_its_position(
    example: str, old: str, new: str, message: str, hint: str | None, tmp_path: Path
) -> None:
    text, line, column = broken(EXAMPLES[example], old, new)
    issues = errors_of(text, tmp_path)
    said = [(issue.message, issue.line, issue.column) for issue in issues]
    found = [
        issue
        for issue in issues
        if (issue.line, issue.column) == (line, column) and _same(issue.message, message)
    ]
    assert found, said
    if hint is not None:
        assert found[0].hint == hint
    assert found[0].source_line == text.split("\n")[line - 1]


def _same(found: str, expected: str) -> bool:
    # Folders differ between runs; the text after them is the same.
    return (
        found == expected
        or found.startswith(expected)
        or found.replace(str(Path(found).parent), "") == expected
    )


def test_solver_without_dataset_is_reported_at_the_definition(tmp_path: Path) -> None:
    text = SINGLE_TURN.replace("  dataset:\n    source: dataset\n    key: << config.dataset_key >>\n", "")
    (issue,) = [issue for issue in errors_of(text, tmp_path) if "dataset" in issue.message]
    assert issue.message == "a task with a solver needs 'dataset', found none"
    assert issue.path == ("definition",)


def test_missing_dataset_is_reported_together_with_other_errors(tmp_path: Path) -> None:
    text = SINGLE_TURN.replace("  dataset:\n    source: dataset\n    key: << config.dataset_key >>\n", "")
    text = text.replace("purpose: qa", "purpose: quality")
    messages = [issue.message for issue in errors_of(text, tmp_path)]
    assert "a task with a solver needs 'dataset', found none" in messages
    assert "'purpose': found 'quality', expected one of 'score', 'qa'" in messages


def test_a_system_task_without_type_is_checked_as_a_benchmark_task(tmp_path: Path) -> None:
    (issue,) = errors_of(SYSTEM.replace("  type: system_task\n", ""), tmp_path)
    assert issue.message == "unknown key 'compute_evidence_snippet'"


@pytest.mark.parametrize("connection", CONNECTIONS)
def test_a_connection_without_its_last_field_is_refused(connection: str, tmp_path: Path) -> None:
    last = CONNECTIONS[connection].rstrip("}").rsplit(", ", 1)
    if connection in {"default", "placeholder", "custom_inference", "aws_bedrock"}:
        return  # their last field is the only one, or is optional
    text = MODEL[: MODEL.index("config:")] + f"config: {last[0]}}}\n"
    name = last[1].split(":")[0]
    assert [issue.message for issue in errors_of(text, tmp_path)] == [f"{name!r} is missing"]


def test_all_errors_are_reported_together_in_line_order(tmp_path: Path) -> None:
    text = SINGLE_TURN
    for old, new in (
        ("purpose: qa", "purpose: q"),
        ("key: exact", "key: e x"),
        ("num_trials: 5", "num_trials: x"),
    ):
        text = text.replace(old, new, 1)
    issues = errors_of(text, tmp_path)
    assert len(issues) == 3
    assert [issue.line for issue in issues] == sorted(issue.line or 0 for issue in issues)


def test_misspelt_required_key_is_one_issue(tmp_path: Path) -> None:
    """A misspelt required key is not also reported as missing."""
    (issue,) = errors_of(SINGLE_TURN.replace("ground_truth_choice:", "ground_truth_choise:", 1), tmp_path)
    assert (issue.message, issue.hint) == (
        "unknown key 'ground_truth_choise'",
        "did you mean 'ground_truth_choice'?",
    )
