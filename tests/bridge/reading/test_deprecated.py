"""Deprecated syntax is read with a warning that shows the new form, and upgraded with comments kept."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import BaseModel
from tests.bridge.reading.reading_examples import EXAMPLES, errors_of, issues_of

from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read, upgrade_text
from aigo_bridge.spec.task import TaskSpec

OLD_TASK = dedent(
    """\
    # A task of the first release.
    key: old  # its key
    display_name: Old
    description: ""
    evaluated_entity_type: model  # no longer needed
    modalities: [text]
    definition:
      # what it does
      kind: declarative_task
      dataset:
        source:
          id: rows  # the rows
        fast_subset_size: 10
      solver:
        key: single_turn_solver
        input_builder: {key: generic, template: "{}"}  # builder
      scorers:
        - type: python
          build_sample_evidence_snippet: |
            def compute_scores(sample, model_input, model_output):  # old
                return {}
    """
)

NEW_TASK = dedent(
    """\
    # A task of the first release.
    key: old  # its key
    display_name: Old
    description: ""
    definition:
      # what it does
      type: benchmark_task
      dataset:
        key: rows  # the rows
      solver:
        type: single_turn_solver
        input_builder: {type: generic, template: "{}"}  # builder
      scorers:
        - type: python
          compute_scores_snippet: |
            def compute_scores(sample, model_input, model_output):  # old
                return {}
    """
)


def test_deprecated_task_is_read_with_one_warning_per_form(tmp_path: Path) -> None:
    issues = issues_of(OLD_TASK, tmp_path)
    assert [(issue.severity, issue.line, issue.message) for issue in issues] == [
        ("warning", 5, "'evaluated_entity_type' is deprecated"),
        ("warning", 6, "'modalities' is no longer supported"),
        ("warning", 9, "'kind' is deprecated"),
        ("warning", 9, "'declarative_task' is deprecated"),
        ("warning", 12, "'source: {id: …}' is deprecated"),
        ("warning", 13, "'fast_subset_size' is no longer supported"),
        ("warning", 15, "'key' is deprecated"),
        ("warning", 16, "'key' is deprecated"),
        ("warning", 19, "'build_sample_evidence_snippet' is deprecated"),
        ("warning", 19, "compute_scores(sample, model_input, model_output) is deprecated"),
    ]
    assert all(issue.hint for issue in issues)


def test_deprecated_task_data_is_converted_and_keeps_positions(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(OLD_TASK, encoding="utf-8")
    document = read(TaskSpec, path)
    assert document.data["definition"]["dataset"] == {"key": "rows"}
    assert document.data["definition"]["type"] == "benchmark_task"
    place = document.locate(("definition", "dataset", "key"))
    assert (place.line, place.source_line) == (12, "      id: rows  # the rows")


def test_upgrade_changes_only_deprecated_syntax(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(OLD_TASK, encoding="utf-8")
    assert upgrade_text(path) == NEW_TASK


UPGRADES = {
    "dataset": (
        "key: d\ndisplay_name: D  # shown\nfile_path: ./x.csv  # rows\ntags: []\n",
        "key: d\ndisplay_name: D  # shown\nsource: {type: local, file_path: ./x.csv}  # rows\ntags: []\n",
    ),
    "generator": (
        "key: g\ndisplay_name: G\ndescription: ''\ndefinition:\n  data_source: {type: dataset_samples, dataset_key: d}\n  synthesizers:\n    - {type: llm, model_key: m, sample_properties: {}, user_prompt_template: u, system_prompt_template: s}\n",
        "key: g\ndisplay_name: G\ndescription: ''\ndefinition:\n  dataset: {type: dataset_samples, key: d}\n  synthesizers:\n    - {type: llm, model_key: m, sample_properties: {}, user_prompt_template: u, system_prompt: s}\n",
    ),
    "model with a named adapter": (
        "key: m\ndisplay_name: M\nmodality: text\nadapter_id: a  # translates\nconfig:\n  # where\n  url: u\n",
        "key: m\ndisplay_name: M\nconfig:\n  # where\n  adapter: {key: a}\n  url: u\n",
    ),
    "model with a mapping": (
        "key: m\ndisplay_name: M\nadapter: {key: a}\nconfig: {url: u}\n",
        "key: m\ndisplay_name: M\nconfig: {adapter: {key: a}, url: u}\n",
    ),
    "adapter": (
        "key: a\ndisplay_name: A\ntask: chat_completion\nprocess_input: {language: jinja, source_code: ''}\nprocess_output: {language: jinja, source_code: ''}\n",
        "key: a\ndisplay_name: A\nprocess_input: {language: jinja, source_code: ''}\nprocess_output: {language: jinja, source_code: ''}\n",
    ),
    "evaluation in debug mode": (
        "key: e\ndisplay_name: E\nconfig: {mode: debug}  # quick\ntask_specifications:\n  - {type: repeatability, config: {num_runs: 3}, inputs: [{evaluation_key: x}]}\n",
        "key: e\ndisplay_name: E\nnum_samples: 10  # quick\ntask_specifications:\n  - {type: repeatability, repeatability_config: {num_runs: 3}, inputs: [{evaluation_key: x}]}\n",
    ),
    "evaluation in full mode": (
        "key: e\ndisplay_name: E\nmode: full\ntask_specifications: []\n",
        "key: e\ndisplay_name: E\ntask_specifications: []\n",
    ),
    "first entry of a list item": (
        "tasks:\n  - evaluated_entity_type: model\n    key: t\n    display_name: T\n    description: ''\n    definition: {scorers: [], dataset: {fast_subset_size: 3, key: d}, solver: {type: pass_through_solver, trace_column: t}}\n",
        "tasks:\n  - key: t\n    display_name: T\n    description: ''\n    definition: {scorers: [], dataset: {key: d}, solver: {type: pass_through_solver, trace_column: t}}\n",
    ),
    "last entry in a flow mapping": (
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition: {dataset: {key: d, fast_subset_size: 3}, solver: {type: pass_through_solver, trace_column: t}}\n",
        "key: t\ndisplay_name: T\ndescription: ''\ndefinition: {dataset: {key: d}, solver: {type: pass_through_solver, trace_column: t}}\n",
    ),
}


@pytest.mark.parametrize("name", UPGRADES)
def test_every_deprecated_form_is_upgraded(name: str, tmp_path: Path) -> None:
    old, new = UPGRADES[name]
    path = tmp_path / "old.yaml"
    path.write_text(old, encoding="utf-8")
    assert upgrade_text(path) == new
    before = read(BaseModel, path, env={})
    assert before.issues
    assert all(issue.severity == "warning" for issue in before.issues)
    path.write_text(new, encoding="utf-8")
    after = read(BaseModel, path, env={})
    assert after.spec == before.spec
    assert upgrade_text(path) == new


@pytest.mark.parametrize("name", EXAMPLES)
def test_upgrade_keeps_a_current_file_unchanged(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(EXAMPLES[name], encoding="utf-8")
    assert upgrade_text(path) == EXAMPLES[name]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluated_entity_type: thing", "'evaluated_entity_type': expected one of 'model', 'dataset'"),
        (
            "evaluated_entity_type: dataset",
            "'evaluated_entity_type' is 'dataset', but the definition has a solver",
        ),
    ],
)
def test_deprecated_form_without_a_replacement_is_an_error(line: str, message: str, tmp_path: Path) -> None:
    text = OLD_TASK.replace("evaluated_entity_type: model", line)
    assert [issue.message for issue in errors_of(text, tmp_path)] == [message]
    with pytest.raises(SpecError):
        upgrade_text(tmp_path / "file.yaml")


def test_contradictory_evaluated_entity_types_are_an_error(tmp_path: Path) -> None:
    text = OLD_TASK.replace("definition:\n", "definition:\n  evaluated_entity_type: dataset\n")
    (issue,) = errors_of(text, tmp_path)
    assert issue.message == "'evaluated_entity_type' is 'model' here and 'dataset' in the definition"


SOLVER = "  solver: {type: single_turn_solver, input_builder: {type: chat_completion, input_messages: []}}\n"
"""Of a task that evaluates a model."""


def entity_task(outer: str, inner: str, solver: str) -> str:
    return f"key: t\ndisplay_name: T\ndescription: ''\n{outer}definition:\n{inner}  dataset: {{key: d}}\n{solver}"


@pytest.mark.parametrize("place", ["outer", "inner"])
@pytest.mark.parametrize(("solver", "wrong"), [("", True), ("  solver: null\n", True), (SOLVER, False)])
def test_task_that_evaluates_a_model_without_solver_is_an_error(
    tmp_path: Path, place: str, solver: str, *, wrong: bool
) -> None:
    """Without a solver, the rows themselves would be scored, which contradicts the task."""
    outer = "evaluated_entity_type: model\n" if place == "outer" else ""
    inner = "  evaluated_entity_type: model\n" if place == "inner" else ""
    errors = errors_of(entity_task(outer, inner, solver), tmp_path)
    message = "'evaluated_entity_type' is 'model', but the definition does not contain a solver to call it"
    assert [issue.message for issue in errors] == ([message] if wrong else [])


def test_evaluated_entity_type_is_ignored_in_the_platform_dialect(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        entity_task("", "  evaluated_entity_type: model\n", "").replace("{key: d}", "{key: << config.d >>}")
    )
    document = read(TaskSpec, path, dialect="aigo-3.17")
    assert "'evaluated_entity_type: model' is ignored: this task evaluates a dataset" in [
        issue.message for issue in document.issues
    ]


def test_deprecated_metric_is_read_and_upgraded(tmp_path: Path) -> None:
    text = """\
key: t
display_name: T
description: ''
definition:
  scorers:
    - type: string_equals
      ground_truth: a
      value: a
      metrics:
        - type: python
          code: |
            def aggregate(scores):
                return {}
"""
    assert [issue.message for issue in issues_of(text, tmp_path)] == [
        "'code' is deprecated",
        "aggregate(scores: list[dict]) is deprecated",
    ]
    path = tmp_path / "new.yaml"
    path.write_text(text)
    assert upgrade_text(path) == text.replace("code: |", "compute_metrics_snippet: |")


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        (
            "  metric: {key: x}\n",
            "deprecated: write a 'python' scorer under 'scorers' with a 'mean' metric over its score",
        ),
    ],
)
def test_removed_form_has_a_hint_with_its_replacement(old: str, hint: str, tmp_path: Path) -> None:
    text = "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n" + old
    (issue,) = errors_of(text, tmp_path)
    assert issue.hint == hint


def test_deprecated_task_specification_has_a_hint_with_its_replacement(tmp_path: Path) -> None:
    text = "key: e\ndisplay_name: E\ntask_specifications:\n  - {task_id: t, entity_key: m}\n"
    hints = [issue.hint for issue in errors_of(text, tmp_path)]
    assert "deprecated: write 'model_key', or 'dataset_key' for tasks that evaluate a dataset" in hints
