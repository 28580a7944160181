"""A failed document is never imported as a successful one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.lighteval.importing.results import (
    details_path,
    doc,
    imported,
    load,
    response,
    results_json,
    row,
    the_log,
    write_run,
)

from aigo_lighteval.importing.rows import NONE, carried_failures, stored_failure

Json = dict[str, Any]
FAILURE = {"stage": "score", "kind": "ScoreOutOfRange", "message": "gave 7", "hint": "adjust the prompt"}


def hosted(number: int, solved: list[Any], scored: list[Any]) -> Json:
    """Return a row of a task exported by aigo-bridge."""
    return {
        "doc": doc(number),
        "metric": {"aigo": json.dumps(scored)},
        "model_response": response(*("yes" for _ in solved), aigo=json.dumps(solved)),
    }


def scored(**scorers: Any) -> Json:
    return {key: [[None, result, None]] for key, result in scorers.items()}


GOOD: Json = {"values": {"x": 1.0}, "metadata": {}}
BAD: Json = {"failure": FAILURE, "details": {}}


def test_solver_and_scorer_failures_of_hosted_tasks_are_imported(tmp_path: Path) -> None:
    rows = [
        hosted(0, [{"output": {}}], [scored(a=GOOD, b=GOOD)]),
        hosted(1, [{"output": {}}], [scored(a=GOOD, b=BAD)]),
        hosted(2, [{"failure": {**FAILURE, "stage": "solver"}}], [{}]),
    ]
    log = the_log(
        write_run(tmp_path / "in", rows, results_json(metrics={"num_errors": 2.0})), tmp_path / "out"
    )

    assert log.evidence is not None
    assert log.evidence.failures is not None
    assert (log.evidence.failures.num_errors, log.evidence.failures.num_total) == (2, 3)
    errors = [sample.trials[0].errors for sample in log.evidence.samples or []]
    assert [len(found) for found in errors] == [0, 1, 1]
    assert errors[1][0].message == "scorer 'b': gave 7"
    assert errors[1][0].hint == "adjust the prompt"
    assert [error.stage.value for found in errors for error in found if error.stage] == ["score", "solver"]


def test_a_failed_trial_keeps_its_error_if_another_trial_succeeds(tmp_path: Path) -> None:
    solved = [{"output": {}}, {"failure": {**FAILURE, "stage": "solver"}}]
    rows = [hosted(0, solved, [scored(a=GOOD), {}]), hosted(1, solved, [scored(a=BAD), {}])]
    log = the_log(write_run(tmp_path / "in", rows, results_json(metrics={"a": 1.0})), tmp_path / "out")

    assert log.evidence is not None
    one, two = log.evidence.samples or []
    assert [len(trial.errors) for trial in one.trials] == [0, 1]
    assert [len(trial.errors) for trial in two.trials] == [1, 1]
    assert log.evidence.failures is not None
    assert log.evidence.failures.num_errors == 1


def test_document_without_answer_and_score_is_reported_as_failed(tmp_path: Path) -> None:
    silent = {**row(1, metric={"em": None}), "model_response": response()}
    write_run(tmp_path / "in", [row(0), silent, row(2)])

    code, (report,) = imported(tmp_path / "in", tmp_path / "out")

    assert code == 0
    assert report.failed == 1
    assert report.loss.changed["document without an answer or a score: reported as an error"] == 1
    assert report.output is not None
    evidence = load(report.output).evidence
    assert evidence is not None
    assert evidence.failures is not None
    assert evidence.failures.num_errors == 1
    (error,) = (evidence.samples or [])[1].trials[0].errors
    assert error.message.startswith("lighteval stored neither an answer nor a score")


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_metric_without_value_is_unscored_and_the_other_scores_are_kept(
    value: float | None, tmp_path: Path
) -> None:
    metrics: list[Json] = [{"em": 1.0, "f1": 0.5}, {"em": value, "f1": 0.25}]
    write_run(tmp_path / "in", [row(number, metric=metric) for number, metric in enumerate(metrics)])

    code, (report,) = imported(tmp_path / "in", tmp_path / "out")

    assert (code, report.failed) == (0, 0)
    assert report.output is not None
    evidence = load(report.output).evidence
    assert evidence is not None
    (trial,) = (evidence.samples or [])[1].trials
    assert trial.errors == []
    scores = {score.scorer_key: score for score in trial.scores or []}
    assert scores["f1"].values == {"f1": 0.25}
    assert scores["em"].values == {"em": None}
    assert (scores["em"].metadata or {})["unscored"] is True


def test_unreadable_metrics_are_damage_not_failures(tmp_path: Path) -> None:
    rows = [{part: found for part, found in row(n).items() if part != "metric"} for n in range(2)]
    code, (report,) = imported(write_run(tmp_path / "in", rows), tmp_path / "out")

    assert (code, report.summary["failed"]) == (3, 0)


def test_the_first_report_line_contains_the_status(tmp_path: Path) -> None:
    write_run(tmp_path / "in")
    details = details_path(tmp_path / "in")
    details.write_bytes(details.read_bytes()[:-20])

    code, (report,) = imported(tmp_path / "in", tmp_path / "out")

    assert report.output is not None
    assert load(report.output).status == "failure"
    assert (code, report.summary["status"]) == (3, "failure")
    assert report.lines[0].endswith("(demo|0): failure")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["failure", "kind", "message", "stage", "hint", "a"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(_JSON, _JSON)
def test_foreign_text_in_aigo_fields_does_not_raise(solved: Any, scored: Any) -> None:
    found = carried_failures({"aigo": json.dumps(solved)}, {"aigo": json.dumps(scored)})
    stored_failure(json.dumps(solved))
    assert found.errors or not found.failed
    assert carried_failures({"aigo": solved}, {}) is NONE
    assert stored_failure("[" * 100_000) is NONE
