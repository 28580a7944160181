"""Information about a task's scorers before they are probed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.errors import UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.spec.scorers import (
    LabelerViaModelScorer,
    ModelAsAJudgeClassifierScorer,
    ModelAsAJudgeScorer,
    RagCheckerScorer,
)
from aigo_trust.probing.readers import readers, unprobed

HEAD = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
"""
SCORERS = """
    - type: python
      key: own
      metrics: [{type: mean, field: is_correct}, {type: mean, field: other}]
      compute_scores_snippet: "def compute_scores(sample, solver_output): return {'is_correct': 1}"
    - {type: python, key: bare, compute_scores_snippet: "def compute_scores(sample, solver_output): return {'x': 1}"}
    - type: labeler_via_model
      key: weighed
      model_key: judge
      user_prompt: ''
      valid_labels: [bad, good]
      metrics:
        - {type: weighted_average, field: label, weights: {bad: 1, good: 1}, name: any}
        - {type: weighted_average, field: label, weights: {bad: 0, good: 1}, name: good}
    - {type: labeler_via_model, key: labels, model_key: judge, user_prompt: '', valid_labels: [bad, good]}
    - {type: model_as_a_judge_scorer, key: rating, model_key: judge, user_prompt: '', score_min: 1, score_max: 10}
    - {type: model_as_a_judge_classifier, key: ja, model_key: judge, user_prompt: '', correct_labels: ["ja"], incorrect_labels: ["nein"]}
    - {type: rag_checker, key: rag, judge_model_key: judge, scores_to_compute: [hallucination]}
    - {type: python_all_samples, key: rows, compute_scores_snippet: "def compute_scores(samples): return []"}
    - {type: function_call_coverage, key: calls, function_calls: [f]}
    - {type: code_exec, key: code, tests: "tests"}
    - {type: string_equals_mcqa, key: likely, ground_truth_choice: A, choices: [A, B], method: loglikelihood}
"""


@pytest.fixture
def own(tmp_path: Path) -> TaskPlan:
    (tmp_path / "d.jsonl").write_text('{"q": "x", "query": "x", "tests": ["1"]}\n')
    (tmp_path / "t.yaml").write_text(HEAD + SCORERS)
    return plan(PlanOrigin(task=str(tmp_path / "t.yaml")))


def test_main_score_is_the_score_of_the_first_metric(own: TaskPlan) -> None:
    found = {reader.key: reader for reader in readers(own, {"bare": "y"})}

    assert (found["own"].main, found["bare"].main, found["rag"].main) == ("is_correct", "y", "hallucination")
    assert readers(own, {})[1].main is None
    assert readers(own, {})[1].main_shown == "its first number"
    assert found["weighed"].weights == {"bad": 0, "good": 1}
    assert found["labels"].weights is None
    assert [reader.key for reader in found.values() if reader.is_judge] == [
        "weighed",
        "labels",
        "rating",
        "ja",
        "rag",
    ]


@pytest.mark.parametrize(
    ("key", "values", "merit"),
    [
        ("own", {"other": 0, "is_correct": True}, 1.0),
        ("own", {"other": 3}, 3.0),
        ("own", {"other": 3, "is_correct": None}, None),
        ("bare", {"label": "x", "n": 2}, 2.0),
        ("bare", {}, None),
        ("rag", {"hallucination": 0.25}, -0.25),
        ("weighed", {"label": "good"}, 1.0),
        ("weighed", {"label": "else"}, None),
        ("labels", {"label": "good"}, None),
    ],
)
def test_answer_merit_is_the_main_score(
    own: TaskPlan, key: str, values: dict[str, Any], merit: float | None
) -> None:
    (reader,) = [reader for reader in readers(own, {}) if reader.key == key]

    assert reader.merit(values) == merit


def test_right_option_declares_the_correct_label(own: TaskPlan) -> None:
    (reader,) = [reader for reader in readers(own, {"labels": "bad"}) if reader.key == "labels"]

    assert reader.merit({"label": "bad"}) == 1.0
    assert reader.best_verdict() == ('{"label": "bad"}', {"label": "bad"})
    with pytest.raises(UsageError, match="scorer 'labels' has no label 'worst'; it has 'bad', 'good'"):
        readers(own, {"labels": "worst"})
    with pytest.raises(UsageError, match="the task does not define scorer 'nobody'"):
        readers(own, {"nobody": "x"})


def test_best_verdict_of_a_judge_is_derived_from_its_type(own: TaskPlan) -> None:
    found = {
        type(reader.spec): reader.best_verdict() for reader in readers(own, {}) if reader.key != "weighed"
    }

    assert found[ModelAsAJudgeScorer] == ('{"score": 10}', {"score": 1.0})
    assert found[ModelAsAJudgeClassifierScorer] == ('{"prediction": "ja"}', {"is_correct": 1.0})
    assert found[LabelerViaModelScorer] is found[RagCheckerScorer] is None


def test_scorers_without_text_input_are_not_probed(own: TaskPlan) -> None:
    reasons = {reader.key: unprobed(own, reader.spec) for reader in readers(own, {})}

    assert {key: reason for key, reason in reasons.items() if reason is not None} == {
        "rows": "it receives the rows of the dataset, not answers",
        "calls": "it reads function calls, not text",
        "code": "it runs code that the evaluated model wrote, for which a run has a sandbox",
        "likely": "it compares likelihoods instead of text",
    }
