"""Run files and plans: consistency of their entities."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bridge.reading.reading_examples import HERE, RUN_FILES, SINGLE_TURN, errors_of, issues_of, write

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.evaluations import RunSpec


def run_issues(folder: Path, old: str = "", new: str = "", file: str = "run.yaml") -> list[Issue]:
    """Return the issues of the example run file with one change in one file."""
    files = dict(RUN_FILES)
    assert old in files[file]
    files[file] = files[file].replace(old, new.replace(HERE, ""), 1) if old else files[file]
    try:
        return list(read(RunSpec, write(folder, files) / "run.yaml", env={}).issues)
    except SpecError as error:
        return list(error.issues)


ROWS = [
    ("task_key: capital-quiz", "task_key: capital-quizz", "no task 'capital-quizz' in this run file", "did you mean 'capital-quiz'?", "error"),
    ("task_config: {judge: judge-model}", "task_config: {juge: judge-model}", "task 'capital-quiz' has no parameter 'juge'; the value is not used", "did you mean 'judge'?", "warning"),
    ("task_config: {judge: judge-model}", "task_config: {}", "parameter 'judge' of task 'capital-quiz' needs a value: it does not have a default", None, "error"),
    ("      model_key: << config.subject >>\n", "", "'model_key' is missing: task 'capital-quiz' evaluates a model", None, "error"),
    ("<< config.subject >>", "<< config.subjekt >>", "unknown parameter 'subjekt'", "did you mean '<< config.subject >>'?", "error"),
    ("config: {subject: openai$gpt-4o}", "config: {subjekt: openai$gpt-4o}", "the evaluation has no parameter 'subjekt'; the value is not used", "did you mean 'subject'?", "warning"),
    ("key: again", "key: quiz", "specification 'quiz' is declared twice; the other is [0]", None, "error"),
    ("- $ref: other.yaml", "- $ref: task.yaml", "task 'capital-quiz' is declared twice; the other is [0]", None, "error"),
    ('$provider: "openai/gpt-4o"', "$provider: gpt-4o", "'$provider': found 'gpt-4o', expected '<provider>/<model>'", "for example 'openai/gpt-4.1-nano'", "error"),
    ('$provider: "openai/gpt-4o"', '$provider: "openai/gpt-4o"\n    key: x', "unknown key 'key'", None, "error"),
    ("num_samples: 5", "num_samples: 0", "'num_samples': found 0, expected 1 or more", None, "error"),
    ("run_config: {num_samples: 10", "run_config: {num_samples: 0", "'num_samples': found the number 0, expected 1 or more", None, "error"),
    ("trials_config: {num_trials: 2}", "trials_config: {num_trials: 1}", "'num_trials': found the number 1, expected 2 or more", None, "error"),
    ("repeatability: {num_runs: 2}", "repeatability: {num_runs: 1}", "'num_runs': found the number 1, expected 2 or more", None, "error"),
    ("cache_policy: no-cache", "cache_policy: never", "'cache_policy': found 'never', expected one of 'reuse', 'update', 'no-cache'", None, "error"),
    ("use_cases: any", "use_cases: all", "'use_cases': found 'all', expected 'any' or a list", None, "error"),
    ("models:\n  - $provider", "models:\n  - openai\n  - $provider", "'models[0]': found 'openai', expected a mapping", None, "error"),
    ("evaluation:\n", "evalation:\n", "unknown key 'evalation'", "did you mean 'evaluation'?", "error"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message", "hint", "severity"), ROWS)
def test_contradiction_between_entities_is_reported(
    old: str, new: str, message: str, hint: str | None, severity: str, tmp_path: Path
) -> None:
    issues = run_issues(tmp_path, old, new)
    found = [issue for issue in issues if issue.message == message]
    assert found, [str(issue) for issue in issues]
    assert (found[0].severity, found[0].line is not None) == (severity, True)
    if hint is not None:
        assert found[0].hint == hint


def test_unchanged_example_has_warnings_only(tmp_path: Path) -> None:
    assert {issue.severity for issue in run_issues(tmp_path)} <= {"warning"}


def test_errors_in_several_files_are_reported_together_with_their_file(tmp_path: Path) -> None:
    files = {**RUN_FILES, "task.yaml": SINGLE_TURN.replace("purpose: qa", "purpose: q")}
    files["dataset.yaml"] = files["dataset.yaml"].replace("type: local", "type: lokal")
    files["run.yaml"] = files["run.yaml"].replace("task_key: capital-quiz", "task_key: nothing")
    with pytest.raises(SpecError) as caught:
        read(RunSpec, write(tmp_path, files) / "run.yaml", env={})
    names = [Path(issue.file or "").name for issue in caught.value.issues if issue.severity == "error"]
    assert {"run.yaml", "task.yaml", "dataset.yaml"} == set(names)
    assert names[0] == "run.yaml"


def test_unknown_dataset_generator_is_reported(tmp_path: Path) -> None:
    text = "datasets: [{key: d, display_name: D, generator_specification: {dataset_generator_key: g, num_samples: 1, dataset_generator_config: {}}}]\n"
    (issue,) = errors_of(text, tmp_path)
    assert issue.message == "no dataset generator 'g' in this run file"


def test_dataset_task_without_dataset_is_reported(tmp_path: Path) -> None:
    text = (
        "tasks: [{key: t, display_name: T, description: '', definition: {scorers: []}}]\n"
        "evaluation: {key: e, display_name: E, task_specifications: [{task_key: t}]}\n"
    )
    (issue,) = errors_of(text, tmp_path)
    assert issue.message == "'dataset_key' is missing: task 't' evaluates a dataset"
    # Without a definition the evaluated entity is unknown, so only the error itself is reported.
    issues = errors_of(text.replace("definition:", "defintion:"), tmp_path)
    assert {issue.message for issue in issues} == {"unknown key 'defintion'"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "key: p\ndisplay_name: P\nevaluations: [{}]\nevaluation_specifications: [{evaluation_key: e}]\n",
            "both",
        ),
        ("key: p\ndisplay_name: P\nevaluations: null\n", "neither"),
    ],
)
def test_plan_must_name_its_evaluations_in_exactly_one_way(text: str, found: str, tmp_path: Path) -> None:
    messages = [issue.message for issue in errors_of(text, tmp_path)]
    assert f"expected one of 'evaluation_specifications' and 'evaluations', found {found}" in messages


def test_tasks_that_can_only_fail_or_mislead_have_warnings(tmp_path: Path) -> None:
    loop = (
        "key: t\ndisplay_name: T\ndescription: ''\nconfig_spec: [{type: int, key: unused, display_name: U}]\n"
        "definition:\n  dataset: {key: d}\n"
        "  solver: {type: multi_turn_solver, message_builders: [{type: loop, message_builders: [{type: generate}]}]}\n"
        "  scorers: [{type: model_as_a_judge_classifier, model_key: m, user_prompt: x, correct_labels: [], incorrect_labels: [b]}]\n"
    )
    messages = [issue.message for issue in issues_of(loop, tmp_path)]
    assert messages == [
        "parameter 'unused' is never used",
        "this loop does not have an end condition, so every sample will fail at its last iteration",
        "'correct_labels' is empty, so every known label counts as 0",
    ]


GROUP = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: grouped_single_turn_solver
    input_builder: {type: generic, template: '[]'}%s
  scorers: [{%s}]
"""
WITH_ROWS = """
    postprocessor: {type: python, postprocess_snippet: "def postprocess(sample, solver_output): return []"}"""


@pytest.mark.parametrize("scorer", ["string_equals", "bleu"])
def test_string_scorer_of_a_group_needs_a_value(scorer: str, tmp_path: Path) -> None:
    (issue,) = errors_of(GROUP % ("", f"type: {scorer}, ground_truth: a"), tmp_path)
    assert issue.message.startswith(f"{scorer!r} needs 'value' here: the solver returns a group of answers")
    assert errors_of(GROUP % (WITH_ROWS, f"type: {scorer}, ground_truth: a"), tmp_path) == []
    assert errors_of(GROUP % ("", f"type: {scorer}, ground_truth: a, value: b"), tmp_path) == []


@pytest.mark.parametrize(
    "scorer",
    [
        "type: string_equals_mcqa, ground_truth_choice: A, choices: [A]",
        "type: function_call_coverage, function_calls: [f]",
    ],
)
def test_single_answer_scorer_is_rejected_for_a_group(scorer: str, tmp_path: Path) -> None:
    (issue,) = errors_of(GROUP % ("", scorer), tmp_path)
    assert "cannot be used here: the solver returns a group of answers" in issue.message


@pytest.mark.parametrize("scorer", ["string_equals", "bleu"])
def test_without_a_solver_a_value_to_compare_is_required(scorer: str, tmp_path: Path) -> None:
    text = f"key: t\ndisplay_name: T\ndescription: ''\ndefinition: {{scorers: [{{type: {scorer}, ground_truth: a}}]}}\n"
    (issue,) = errors_of(text, tmp_path)
    assert issue.message == f"{scorer!r} needs 'value' here: without a solver there is no answer to compare"
