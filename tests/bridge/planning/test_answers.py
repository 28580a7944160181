"""Ground truth that no model can match is reported before the run; valid data has no issues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.features import features, ready
from tests.conformance.test_shipped_tasks import CONFIG, DATA, NAMES

from aigo_bridge.errors import Issue
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.validation import planning_issues
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.planning.answers import MOST_RENDERINGS, answer_issues
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "?"}]}
  scorers:
    - %s
"""
EQUALS = '{type: string_equals, ground_truth: "{{ sample.a }}"}'
MCQA = '{type: string_equals_mcqa, ground_truth_choice: "{{ sample.a }}", choices: [A, B]}'
OF_ROWS = '{type: string_equals_mcqa, ground_truth_choice: "{{ sample.a }}", choices: "{{ sample.c }}"}'
LIKELY = '{type: string_equals_mcqa, method: loglikelihood, ground_truth_choice: "{{ sample.a }}", choices: "{{ sample.c }}"}'


def issues(folder: Path, scorer: str, *rows: dict[str, Any]) -> list[Issue]:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(TASK % scorer)
    return list(plan(PlanOrigin(task=str(folder / "t.yaml"))).warnings)


def cells(*values: Any) -> list[dict[str, Any]]:
    return [{"a": value} for value in values]


def test_an_invalid_correct_choice_is_reported_with_its_rows(tmp_path: Path) -> None:
    (issue,) = issues(tmp_path, MCQA, *cells("A", "E", "a", "B", "E", "F", "G", "E"))

    assert issue.message == (
        "'ground_truth_choice' is not one of the choices in 6 of 8 samples: 'E' of ['A', 'B'] (sample 1 and 2 more),"
        " 'a' of ['A', 'B'] (sample 2), 'F' of ['A', 'B'] (sample 5), and 1 other values"
    )
    assert issue.hint == "these samples always count as wrong"
    assert (issue.severity, issue.line) == ("warning", 10)


@pytest.mark.parametrize(
    ("scorer", "rows", "message", "hint"),
    [
        (MCQA, cells("A", " B"), "' B' of ['A', 'B'] (sample 1)", "only in case or whitespace"),
        (MCQA, cells("A", "b"), "is not one of the choices", "only in case or whitespace"),
        (MCQA, cells("A", 1), "'1' of ['A', 'B']", "count as wrong"),
        (OF_ROWS, [{"a": "A", "c": ["A", "B"]}, {"a": "C", "c": ["A", "B"]}], "'C' of ['A', 'B']", "wrong"),
        (OF_ROWS, [{"a": "A", "c": '["B", "C"]'}], "'A' of ['B', 'C']", "count as wrong"),
        (OF_ROWS, [{"a": "A", "c": ["A", "A"]}], "'choices' contains a choice twice", "the same letter"),
        (OF_ROWS, [{"a": "A", "c": ["A", "B"]}, {"a": "A", "c": "A or B"}], "'choices' cannot be read", "fail"),
        (OF_ROWS, [{"a": "A", "c": ["A"]}, {"a": "A", "c": 5}], "'choices' cannot be read in 1 of 2", "fail"),
        (OF_ROWS, [{"a": "1", "c": [1, 2]}], "expected a list of texts", "fail"),
        (OF_ROWS, [{"a": "Oslo", "c": ["Oslo", "Rome"]}], "does not start with a character", "first character"),
        (LIKELY, [{"a": "Oslo", "c": ["Oslo", "Rome"]}, {"a": "Bern", "c": ["x", "y"]}], "'Bern' of", "fail"),
        (EQUALS, cells("x", " Oslo"), "whitespace in 1 of 2 samples: ' Oslo' (sample 1)", "trim"),
        (EQUALS, cells("x", "Oslo\n"), "begins or ends with whitespace", "trim"),
        (EQUALS, cells("x", "  "), "is an empty text in 1 of 2 samples: sample 1", "empty answer"),
        (EQUALS.replace("sample.a", "sample.a.b"), cells({"b": "x"}, {"b": None}), "null or missing", "fail"),
        (EQUALS.replace("sample.a", "sample.a.b"), cells({"b": "x"}, {}), "cannot be rendered", "fail"),
        (EQUALS.replace("sample.a", "sample.a[0]"), cells(["x"], []), "cannot be rendered", "fail"),
        (EQUALS.replace("sample.a", "sample.a | trim"), cells("x", " "), "is an empty text", "empty answer"),
    ],
)  # fmt: skip
def test_data_faults_are_warnings(
    tmp_path: Path, scorer: str, rows: list[dict[str, Any]], message: str, hint: str
) -> None:
    (issue,) = issues(tmp_path, scorer, *rows)
    assert message in issue.message
    assert hint in str(issue.hint)
    assert issue.severity == "warning"
    assert issue.line == 10


@pytest.mark.parametrize(
    ("scorer", "rows"),
    [
        (EQUALS, cells("x", 0, False, 1.5, ["x"], "a b")),
        (EQUALS, cells("same", "same", "same")),
        ('{type: string_equals, ground_truth: "{{ sample.a }} ", value: "{{ sample.a }}"}', cells("x")),
        ('{type: string_equals, ground_truth: ""}', cells("x")),
        (EQUALS.replace("sample.a", "solver_output.output"), cells("x")),
        (MCQA, cells("A", "B", "B")),
        (EQUALS.replace("sample.a", "sample.a or 'none'"), cells("x", "")),
        (EQUALS.replace("sample.a", "sample.a if sample.a else 0"), cells("x", "")),
        ('{type: string_equals, ground_truth: x, value: "{{ sample.a }}"}', cells("x", "")),
        (OF_ROWS, [{"a": "A", "c": ["A", "B"]}, {"a": "1", "c": '["1", "2"]'}, {"a": "a", "c": ["A", "a"]}]),
        (LIKELY, [{"a": " Oslo", "c": [" Oslo", " Rome"]}]),
        (MCQA.replace("sample.a", "'AB'[sample.a]"), cells(0, 1, True)),
        ('{type: bleu, ground_truth: "{{ sample.a }}"}', cells(" a reference with blanks ")),
    ],
)
def test_valid_data_has_no_issues(tmp_path: Path, scorer: str, rows: list[dict[str, Any]]) -> None:
    assert issues(tmp_path, scorer, *rows) == []


def test_cells_without_a_value_are_reported_once(tmp_path: Path) -> None:
    """`planning_nulls` reports nulls for each column."""
    found = issues(tmp_path, MCQA, *cells("A", None, "", "B"))
    assert [issue.message.split(" in ")[0] for issue in found] == [
        "column 'a' is null",
        "'ground_truth_choice' is an empty text",
    ]


def test_empty_cells_of_combined_datasets_are_reported_once(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in cells("x", None, "")))
    task = (TASK % EQUALS).replace("{key: d}", "{keys: [d, e]}").replace("sample.a", "sample.e.a")
    (tmp_path / "d.jsonl").write_text("{}\n" * 3)
    (tmp_path / "t.yaml").write_text(task)
    found = plan(PlanOrigin(task=str(tmp_path / "t.yaml"))).warnings
    assert [issue.message.split(" in ")[0] for issue in found] == [
        "column 'e.a' is null",
        "'ground_truth' is an empty text",
    ]


def test_validate_reports_the_same_issue_as_a_run(tmp_path: Path) -> None:
    issues(tmp_path, MCQA, *cells("A", "E"))
    (issue,) = planning_issues("task", read(TaskSpec, tmp_path / "t.yaml"), None)
    assert issue.message.startswith("'ground_truth_choice' is not one of the choices in 1 of 2 samples")
    assert issue.severity == "warning"


def test_costly_templates_are_checked_for_the_first_samples_only(tmp_path: Path) -> None:
    made = plan_of(tmp_path, EQUALS.replace("sample.a", "sample.a | trim"), MOST_RENDERINGS + 5)
    (issue,) = answer_issues(made.benchmark, made.samples)
    assert f"in 1 of the first {MOST_RENDERINGS} samples: sample 0" in issue.message


def test_costly_templates_with_few_values_are_checked_for_all_samples(tmp_path: Path) -> None:
    made = plan_of(tmp_path, MCQA.replace("sample.a", "'ABC'[sample.n]"), MOST_RENDERINGS + 5)
    (issue,) = answer_issues(made.benchmark, made.samples)
    assert f"of {MOST_RENDERINGS + 5} samples: 'C'" in issue.message


def plan_of(folder: Path, scorer: str, count: int) -> Any:
    rows = [{"a": f"x{number}" if number else " ", "n": number % 3} for number in range(count)]
    issues(folder, scorer, *rows[:1])
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return plan(PlanOrigin(task=str(folder / "t.yaml")))


@pytest.mark.parametrize("name", NAMES)
def test_shipped_tasks_have_valid_answers(name: str) -> None:
    origin = PlanOrigin(task=f"aigo_tasks/{name}", config=CONFIG.get(name, {}), datasets=DATA.get(name, {}))
    made = plan(origin)
    if made.entity != "system":
        assert list(answer_issues(made.benchmark, made.samples)) == []


FAULTY = {"data: sample ids", "failures: template errors", "scorers: string_equals"}
"""Compared with: ids, of which one is a blank; a ground truth that cannot be rendered; an empty text, which an empty answer equals."""


def test_conformance_tasks_have_valid_answers(tmp_path: Path) -> None:
    told = {}
    for number, feature in enumerate(features()):
        if "tiny_model" in feature.document or "jsonl" in feature.document:
            continue
        made = ready(feature, tmp_path / str(number)).plan
        if made.entity != "system":
            told[feature.id] = [issue.message for issue in answer_issues(made.benchmark, made.samples)]
    assert {name: found for name, found in told.items() if found}.keys() == FAULTY
