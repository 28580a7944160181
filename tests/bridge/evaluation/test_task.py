"""From trial records to a task result: counts, metrics and messages."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.jobs import ready_task

from aigo_bridge.dtypes import TaskResultError, TaskResultErrorStage
from aigo_bridge.engine.protocol import Evidence, Execution, Fidelity, Gap
from aigo_bridge.engine.registry import engine_names, load_engine, require_exact
from aigo_bridge.errors import UnsupportedPlanError, UsageError
from aigo_bridge.evaluation.task import parse_config
from aigo_bridge.evaluation.writing import write_result
from aigo_bridge.execution.progress import tolerated
from aigo_bridge.plan.logged_plan import LoggedPlan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning.planning import plan_origin
from aigo_bridge.results.assembling import (
    RunningTotals,
    count_samples,
    metrics_for,
    sample_stream,
    scores_data,
)
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.results.specification import model_key, slug, specification_of, stored_model

TASK = """\
key: t
display_name: T
description: ""
tags: [Data Quality, "äöü"]
config_spec: [{type: int, key: n, display_name: N, default_value: 1}]
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "{{ sample.question }}"}]
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
    - type: model_as_a_judge_classifier
      model_key: judge
      user_prompt: "x"
      correct_labels: [a]
      incorrect_labels: [b]
"""


@pytest.fixture
def plan(tmp_path: Path) -> TaskPlan:
    (tmp_path / "q.jsonl").write_text('{"question": "one", "answer": "1"}\n' * 4)
    path = tmp_path / "task.yaml"
    path.write_text(TASK, encoding="utf-8")
    return plan_origin(PlanOrigin(task=str(path)))


def record(
    sample_id: str | int, correct: float | None, judged: float | None = 1.0, *errors: str
) -> TrialRecord:
    scores = [
        scores_data(key, "score", None, {"is_correct": value}, {})
        for key, value in (("string_equals", correct), ("model_as_a_judge_classifier", judged))
        if value is not None
    ]
    failed = [
        TaskResultError(error_type="E", message=message, stage=TaskResultErrorStage.score)
        for message in errors
    ]
    return TrialRecord(sample_id, 0, {"question": "one"}, None, tuple(scores), tuple(failed))


def tallied(plan: TaskPlan, trials: Sequence[TrialRecord]) -> tuple[RunningTotals, list[Any]]:
    tally, counted = RunningTotals(plan), RunningTotals(plan)
    samples = [sample for sample, _ in sample_stream(trials, tally)]
    count_samples(trials, counted)
    assert counted == tally, "counting without evidence comes to something else"
    return tally, samples


def written(
    plan: TaskPlan, path: Path, trials: Sequence[TrialRecord], status: str = "success", **fields: Any
) -> dict[str, Any]:
    def opened() -> Iterator[TrialRecord]:
        return iter(trials)

    execution = Execution(status, 100.0, 102.5, **fields)
    evidence = Evidence(LoggedPlan.of(plan), execution, {"": "openai/gpt-4.1-nano"}, opened)
    write_result(evidence, path, engine="inspect", planned=len(plan.samples))
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def test_samples_errors_and_scores_are_counted(plan: TaskPlan) -> None:
    tally, samples = tallied(
        plan,
        [record("a", 1.0), record("b", None, None, "x"), record("c", 0.0, None, "y", "z"), record(1, 1.0)],
    )
    assert [sample.sample_id for sample in samples] == ["a", "b", "c", 1]
    assert (tally.counts.samples, tally.counts.failed) == (4, 2)
    assert tally.failures.model_dump() == {"num_errors": 2, "num_total": 4}
    assert [(first.sample_id, first.error.message) for first in tally.first_errors] == [
        ("b", "x"),
        ("c", "y"),
    ]
    assert tally.scores["string_equals"] == [{"is_correct": 1.0}, {"is_correct": 0.0}, {"is_correct": 1.0}]


def test_text_id_and_equal_number_id_are_different_samples(plan: TaskPlan) -> None:
    assert tallied(plan, [record(1, 1.0), record("1", 0.0)])[0].counts.samples == 2


def test_only_the_first_distinct_errors_are_kept(plan: TaskPlan) -> None:
    """Equal errors are kept once with their count. Request ids are ignored."""
    words = ["slow", "late", "wrong", "gone", "odd", "full", "down"]
    tally, _ = tallied(plan, [record(number, None, None, words[number % 7]) for number in range(100)])
    assert (tally.counts.failed, len(tally.first_errors)) == (100, 5)

    tally, _ = tallied(plan, [record(n, None, None, f"wrong key (req_{n:09})") for n in range(100)])
    (first,) = tally.first_errors
    assert (first.sample_id, first.count, first.more) == (0, 100, " (and 99 more samples)")


def test_failed_samples_are_excluded_from_means(plan: TaskPlan) -> None:
    tally, _ = tallied(
        plan, [record(0, 1.0), record(1, None, None, "x"), record(2, 0.0, None, "y"), record(3, 1.0, 0.0)]
    )
    rows = {row.scorer_key: row for row in metrics_for(tally).rows}
    assert (rows["string_equals"].name, rows["string_equals"].value) == ("accuracy", 2 / 3)
    assert rows["string_equals"].num_scored == 3
    judged = rows["model_as_a_judge_classifier"]
    assert (judged.value, judged.num_scored) == (0.5, 2)


@pytest.mark.parametrize("trials", [[], [record(0, None, None, "x")], [record(0, math.nan, math.nan)]])
def test_metric_without_scores_is_an_error(plan: TaskPlan, trials: list[TrialRecord]) -> None:
    metrics = metrics_for(tallied(plan, trials)[0])
    assert metrics.data == ()
    assert [row.value for row in metrics.rows] == [None, None]
    assert [error.stage for error in metrics.errors] == [TaskResultErrorStage.metric] * 2


def test_a_complete_run_is_a_success(plan: TaskPlan, tmp_path: Path) -> None:
    usage = {"openai/gpt-4.1-nano": {"num_prompt_tokens": 7, "num_completion_tokens": 3}}
    log = written(plan, tmp_path / "r.json", [record(n, n % 2) for n in range(4)], model_usage=usage)
    assert (log["status"], log["format_version"], log["errors"]) == ("success", "v1", [])
    assert [metric["values"] for metric in log["evidence"]["metrics"]] == [
        {"accuracy": 0.5},
        {"accuracy": 1.0},
    ]
    assert log["evidence"]["failures"] == {"num_errors": 0, "num_total": 4}
    execution = log["execution"]
    assert (execution["runtime"], execution["started_at"], execution["ended_at"]) == (2.5, 100, 102)
    assert execution["model_usage"]["num_prompt_tokens"] == 7
    assert log["specification"]["config"] == {"n": 1}
    assert log["specification"]["evaluated_entity"]["key"] == "openai$gpt-4-1-nano"
    assert [tag["id"] for tag in log["specification"]["task"]["tags"]] == ["data-quality", "x"]


@pytest.mark.parametrize(
    ("trials", "status", "fields", "message"),
    [
        (
            2,
            "cancelled",
            {},
            "the run did not finish (status 'cancelled'); the result contains 2 of 4 samples",
        ),
        (4, "error", {"error": "disk full"}, "disk full"),
        (
            3,
            "success",
            {},
            "the run ended without an error, but some samples are missing; the result contains 3 of 4 samples",
        ),
    ],
)
def test_incomplete_run_is_never_a_success(
    plan: TaskPlan, tmp_path: Path, trials: int, status: str, fields: dict[str, Any], message: str
) -> None:
    log = written(plan, tmp_path / "r.json", [record(n, 1.0) for n in range(trials)], status, **fields)
    assert log["status"] == "failure"
    assert [error["message"] for error in log["errors"]] == [message]


def test_run_with_only_failed_samples_is_not_a_success(plan: TaskPlan, tmp_path: Path) -> None:
    log = written(plan, tmp_path / "r.json", [record(n, None, None, "x") for n in range(4)])
    assert log["status"] == "failure"


def test_result_file_is_written_atomically(plan: TaskPlan, tmp_path: Path) -> None:
    def broken() -> Iterator[TrialRecord]:
        yield record(0, 1.0)
        raise OSError("the log ended")

    evidence = Evidence(LoggedPlan.of(plan), Execution("success", 0.0, 1.0), {}, broken)
    path = tmp_path / "out" / "r.json"
    path.parent.mkdir()
    with pytest.raises(OSError, match="the log ended"):
        write_result(evidence, path, engine="inspect")
    assert list(path.parent.iterdir()) == []


def test_evaluated_entity_depends_on_the_task(plan: TaskPlan) -> None:
    assert specification_of(plan, model=None, engine="inspect").evaluated_entity is None
    found = specification_of(plan, model="scripted/a.jsonl", engine="inspect").evaluated_entity
    assert found is not None
    assert found.key == "scripted-a-jsonl"


@pytest.mark.parametrize(
    ("text", "count", "tolerance"),
    [
        (None, 100, 0),
        ("0", 100, 0),
        ("3", 2, 3),
        ("0.29", 100, 29),
        (".07", 100, 7),
        ("0.5", 3, 1),
        ("1.0", 7, 7),
        ("0.0", 7, 0),
        ("0.999", 0, 0),
    ],
)
def test_failure_tolerance_is_a_count_or_a_proportion(text: str | None, count: int, tolerance: int) -> None:
    assert tolerated(text, count) == tolerance


@pytest.mark.parametrize("text", ["", "-1", "1.5", "10%", "many", "1e-1", "0.", "nan", "٣", "1 "])
def test_invalid_failure_tolerance_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--fail-on-error: found"):
        tolerated(text, 10)


@given(st.integers(0, 1000), st.integers(0, 100))
def test_failure_tolerance_in_percent_is_exact(count: int, percent: int) -> None:
    assert tolerated(f"{percent / 100:.2f}", count) == count * percent // 100


def test_missing_and_unused_models_are_refused(plan: TaskPlan, tmp_path: Path) -> None:
    def check(model: str | None = "a/b", **model_map: str) -> None:
        ready_task(load_engine("inspect"), plan, model=model, model_map=model_map)

    check(judge="a/c")
    with pytest.raises(UsageError, match=r"the task uses 'judge'; .*--model-map 'judge=PROVIDER/MODEL'"):
        check()
    with pytest.raises(
        UsageError, match=r"--model-map: the task does not use model 'other' \(it uses 'judge'\)"
    ):
        check(judge="a/c", other="a/d")
    with pytest.raises(UsageError, match="--model PROVIDER/MODEL"):
        check(None, judge="a/c")


def test_config_values_are_converted_to_the_parameter_types(plan: TaskPlan) -> None:
    assert plan.origin is not None
    assert parse_config(plan.origin.task, {"n": "12"}) == {"n": 12}
    assert parse_config(plan.origin.task, {"n": 3, "other": "x"}) == {"n": 3, "other": "x"}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("openai/gpt-4.1-nano", "openai$gpt-4-1-nano"),
        ("scripted//tmp/My Answers.jsonl", "scripted-tmp-my-answers-jsonl"),
        ("mockllm/model", "mockllm-model"),
        ("gpt", "gpt"),
        ("日本", "x"),
    ],
)
def test_model_key_is_derived_from_the_model_name(name: str, key: str) -> None:
    assert model_key(name) == key
    assert stored_model(name, engine="inspect").key == key


@given(st.text())
def test_slug_contains_only_safe_characters(text: str) -> None:
    assert set(slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert 1 <= len(slug(text)) <= 200


def test_all_gaps_are_reported_and_approximations_must_be_allowed() -> None:
    exact = Gap("a", "none", Fidelity.EXACT)
    near = Gap("solver", "no seed", Fidelity.APPROXIMATE, "set none")
    never = Gap("scorers[0]", "not there", Fidelity.UNSUPPORTED)
    assert require_exact([exact], engine="e") == []
    assert require_exact([exact, near], engine="e", allow_approximate=True) == [near]
    with pytest.raises(UnsupportedPlanError) as caught:
        require_exact([near, exact, never], engine="e")
    assert str(caught.value).splitlines() == [
        "engine 'e' cannot run this task as written: 2 gaps",
        "  - solver: no seed [approximate] (set none)",
        "  - scorers[0]: not there [unsupported]",
    ]
    with pytest.raises(UnsupportedPlanError, match="1 gap"):
        require_exact([near, never], engine="e", allow_approximate=True)


def test_engines_are_found_by_name() -> None:
    assert "inspect" in engine_names()
    assert load_engine("inspect").name == "inspect"
    with pytest.raises(UsageError, match=r"unknown engine 'inspct'; known engines: .*inspect"):
        load_engine("inspct")
