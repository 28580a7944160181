"""Empty cells that a template would print are reported before the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aigo_bridge.errors import Issue
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.validation import validate
from aigo_bridge.plan.plan import PlanOrigin

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "%s"}]}
  scorers:
    - {type: string_equals, ground_truth: "%s"}
"""


def warnings(folder: Path, rows: list[dict[str, object]], *, asked: str, truth: str) -> list[Issue]:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(TASK % (asked, truth))
    return list(plan(PlanOrigin(task=str(folder / "t.yaml"))).warnings)


def test_null_in_a_prompt_is_a_warning_with_the_first_sample(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"q": "x", "a": "y"},
        {"q": None, "a": "y"},
        {"q": "x"},
        {"q": None, "a": "y"},
    ]

    asked, truth = warnings(tmp_path, rows, asked="Q: {{ sample.q }}", truth="{{ sample.a }}")

    assert asked.message == "column 'q' is null in 2 of 4 samples (first: sample 1)"
    assert (asked.severity, asked.line) == ("warning", 8)
    assert "renders it as 'None'" in str(asked.hint)
    assert truth.message == "column 'a' is missing in 1 of 4 samples (first: sample 2)"
    assert truth.line == 10
    assert truth.hint == "these samples cannot be compared and will fail"


@pytest.mark.parametrize(
    "asked",
    [
        "{% if sample.q %}{{ sample.q }}{% else %}nothing{% endif %}",
        "{{ sample.q | default('', true) }}",
        "{{ sample.q | tojson }}",
        "{{ sample.q if sample.q is not none else '' }}",
        "no column at all",
    ],
)
def test_template_that_handles_nulls_has_no_warning(tmp_path: Path, asked: str) -> None:
    rows: list[dict[str, object]] = [{"q": None, "a": "y"}, {"q": "None", "a": "nan"}]
    assert warnings(tmp_path, rows, asked=asked, truth="{{ sample.a }}") == []


def test_rows_without_nulls_have_no_warning(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"q": 0, "a": 0}, {"q": False, "a": []}, {"q": "", "a": "x"}]
    assert warnings(tmp_path, rows, asked="{{ sample.q }}", truth="{{ sample.a }}") == []


def test_empty_ground_truth_is_a_warning(tmp_path: Path) -> None:
    """An empty cell in a CSV text column would make an empty answer correct."""
    warnings(tmp_path, [{"q": "x", "a": "y"}], asked="{{ sample.q }}", truth="{{ sample.a }}")
    (tmp_path / "d.jsonl").unlink()
    (tmp_path / "d.csv").write_text("q,a\n,b\nx,\n")

    (found,) = plan(PlanOrigin(task=str(tmp_path / "t.yaml"))).warnings

    assert found.message == "'ground_truth' is an empty text in 1 of 2 samples: sample 1"
    assert found.line == 10
    assert "an empty answer counts as correct" in str(found.hint)


def test_null_inside_a_longer_ground_truth_is_a_warning(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"q": "x", "a": 1, "unit": "kg"}, {"q": "x", "a": 2, "unit": None}]
    (found,) = warnings(tmp_path, rows, asked="{{ sample.q }}", truth="{{ sample.a }} {{ sample.unit }}")
    assert found.message == "column 'unit' is null in 1 of 2 samples (first: sample 1)"
    assert "renders it as 'None'" in str(found.hint)


def test_condition_that_treats_missing_cell_as_true_is_a_warning(tmp_path: Path) -> None:
    condition = "{% if sample.q %}yes{% else %}no{% endif %}"
    rows: list[dict[str, object]] = [{"a": "y", "q": True}, {"a": "y"}]
    (found,) = warnings(tmp_path, rows, asked="?", truth=condition)
    assert found.message == "column 'q' is missing in 1 of 2 samples (first: sample 1)"
    assert "{% if sample.q is true %}" in str(found.hint)
    assert warnings(tmp_path, [{"a": "y", "q": None}], asked="?", truth=condition) == []
    knowing = "{% if sample.q is true %}yes{% else %}no{% endif %}"
    assert warnings(tmp_path, rows, asked="?", truth=knowing) == []


def test_validate_reports_the_same_null_warning(tmp_path: Path) -> None:
    warnings(
        tmp_path,
        [{"q": "x", "a": "y"}, {"q": "x", "a": None}],
        asked="{{ sample.q }}",
        truth="{{ sample.a }}",
    )

    (report,) = validate([tmp_path / "t.yaml"])
    (found,) = report.issues

    assert found.message == "column 'a' is null in 1 of 2 samples (first: sample 1)"
    assert (found.severity, found.line) == ("warning", 10)
