"""Scores over trials: the examples of the AI GO page, rules and mathematical properties."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.metrics.metric import NoAggregate
from aigo_bridge.metrics.registry import compute_metric
from aigo_bridge.metrics.trials import (
    RunSpread,
    TrialScores,
    aggregate_trials,
    agreement,
    metrics_over_runs,
    pass_at_k,
    pass_hat_k,
    score_agreements,
)
from aigo_bridge.spec.metrics import Metric
from aigo_bridge.spec.trials import ScoreOfTrials


def entry(function: str, score: str = "x", name: str | None = None, **fields: Any) -> ScoreOfTrials:
    aggregator = {"function": function, **fields} | ({} if name is None else {"score_name": name})
    return ScoreOfTrials.model_validate({"score_name": score, "aggregator": aggregator})


def over(values: list[Any], *entries: ScoreOfTrials) -> TrialScores:
    return aggregate_trials([{"x": value} for value in values], entries)


PAGE = [True, False, True, False, True]


def test_aggregators_give_the_values_of_the_published_example() -> None:
    result = over(PAGE, entry("pass@k", k=5), entry("pass^k", k=5), entry("mean"), entry("min"), entry("max"))
    assert result.values == {
        "x": 0.6,
        "x.pass@5": pytest.approx(0.98976, abs=1e-12),
        "x.pass^5": pytest.approx(0.07776, abs=1e-12),
        "x.mean": 0.6,
        "x.min": False,
        "x.max": True,
    }
    assert result.problems == ()


def test_aggregated_score_may_have_a_custom_name() -> None:
    assert over(PAGE, entry("pass^k", k=3, name="pass^3")).values == {
        "x": 0.6,
        "pass^3": pytest.approx(0.216),
    }


def test_aggregate_with_the_name_of_the_score_replaces_the_mean() -> None:
    assert over(PAGE, entry("max", name="x")).values == {"x": 1}


def test_zero_and_one_pass_like_booleans() -> None:
    assert over([1.0, 0.0, 1, 0, True], entry("pass@k", k=5)).values["x.pass@5"] == pytest.approx(0.98976)


def test_default_aggregate_is_the_mean_of_numbers_only() -> None:
    trials = [
        {"n": 1, "b": True, "text": "a", "mixed": 1, "some": 2.0, "list": [1]},
        {"n": 4, "b": False, "text": "a", "mixed": "a", "list": [1]},
    ]
    assert aggregate_trials(trials).values == {"n": 2.5, "b": 0.5, "some": 2.0}


def test_failed_trials_are_excluded_from_means_and_pass_rates() -> None:
    trials = [{"x": True}, None, {"x": False}, None]
    result = aggregate_trials(trials, [entry("pass@k", k=2)])
    assert result.values == {"x": 0.5, "x.pass@2": 0.75}


@pytest.mark.parametrize("missing", [None, math.nan])
def test_missing_score_is_excluded_like_a_failed_trial(missing: float | None) -> None:
    assert over([True, missing, False], entry("pass@k", k=2)).values == {"x": 0.5, "x.pass@2": 0.75}


@pytest.mark.parametrize("trials", [[], [None], [None, None]])
def test_a_sample_with_only_failed_trials_has_no_score(trials: list[None]) -> None:
    assert aggregate_trials(trials, [entry("pass@k", k=2)]) == TrialScores({})


def test_a_score_that_is_null_in_every_trial_stays_null() -> None:
    assert over([None, None], entry("mean")) == TrialScores({"x": None})


def test_scores_of_a_single_trial_are_kept_unchanged() -> None:
    trial = {"x": True, "text": "a", "list": [1], "none": None}
    result = aggregate_trials([trial], [entry("pass^k", k=3, name="pass^3")])
    assert result.values == {**trial, "pass^3": 1.0}
    assert result.values["x"] is True


def test_one_successful_trial_of_several_gives_a_mean() -> None:
    assert aggregate_trials([None, {"x": True, "text": "a"}]).values == {"x": 1.0}


def test_aggregators_of_other_scores_are_skipped() -> None:
    assert over([True, True], entry("mean", score="elsewhere")) == TrialScores({"x": 1.0})


@pytest.mark.parametrize(
    ("values", "aggregator", "problem"),
    [
        ([0.7, 1.0], entry("pass@k", k=2), "`pass@k` of 'x' found 0.7, expected true or false"),
        (["yes", "no"], entry("pass^k", k=2), "`pass^k` of 'x' found 'yes', expected true or false"),
        (["a", 1], entry("mean"), "`mean` of 'x' found 'a', expected a finite number"),
        ([math.inf, 1], entry("max"), "`max` of 'x' found inf, expected a finite number"),
        ([10**400, 1], entry("mean"), "`mean` of 'x': the numbers are too large to compute with"),
    ],
)
def test_score_that_cannot_be_aggregated_has_a_reason(
    values: list[Any], aggregator: ScoreOfTrials, problem: str
) -> None:
    result = over(values, aggregator)
    assert problem in result.problems
    assert problem in {each.reason for each in result.missing.values()}
    assert {value for name, value in result.values.items() if name != "x"} == {None}


@pytest.mark.parametrize(
    ("values", "is_number"),
    [([math.inf, 1], True), ([-math.inf, math.inf], True), (["a", 1], True), (["a", "b"], False)],
)
def test_score_without_an_aggregate_is_reported(values: list[Any], is_number: bool) -> None:
    """Only a missing number is a problem of the sample, because labels have no mean."""
    result = over(values)
    assert result.values == {}
    assert result.missing["x"].is_number is is_number
    assert len(result.problems) == is_number


def test_missing_aggregate_with_the_name_of_the_score_is_recorded() -> None:
    assert over(["a", "b"], entry("pass@k", k=2, name="x")).missing["x"].is_number
    assert over([1, math.nan], entry("max", name="x")).missing == {}


@pytest.mark.parametrize("kind", ["mean", "min", "max", "std_dev", "frequency"])
def test_metric_without_the_aggregate_of_a_sample_has_a_problem(kind: str) -> None:
    """A value over only those samples that have an aggregate would be wrong."""
    metric = TypeAdapter(Metric).validate_python({"type": kind, "field": "x"})
    odd = NoAggregate("`mean` of 'x' found inf", is_number=True)
    scores: list[dict[str, Any]] = [{"x": 1.0}, {"x": odd}]
    result = compute_metric(metric, scores)
    assert result.values == {}
    assert (result.num_used, result.num_skipped) == (0, 2)
    assert result.problem == "over the trials of a sample, `mean` of 'x' found inf"
    other = TypeAdapter(Metric).validate_python({"type": kind, "field": "y"})
    assert compute_metric(other, [{"y": 1.0, "x": odd}]).values != {}


@pytest.mark.parametrize("kind", ["binary-classification", "multiclass-classification"])
@pytest.mark.parametrize("missing", ["gt", "pred"])
def test_labels_that_cannot_be_aggregated_are_not_a_class(kind: str, missing: str) -> None:
    answers = {"positive_answer": "a", "negative_answer": "b"} if kind.startswith("binary") else {}
    metric = TypeAdapter(Metric).validate_python(
        {"type": kind, "field_gt": "gt", "field_pred": "pred", **answers}
    )
    label = NoAggregate("'x' is not a number ('a'); labels cannot be aggregated", is_number=False)
    result = compute_metric(metric, [{"gt": "a", "pred": "a"}, {"gt": "a", "pred": "a", missing: label}])
    assert result.values == {}
    assert "labels cannot be aggregated" in str(result.problem)


def test_different_aggregators_with_the_same_name_are_a_problem() -> None:
    result = over(PAGE, entry("min", name="y"), entry("max", name="y"))
    assert result.problems == ("several aggregators give a score 'y'",)
    assert result.values["y"] is None
    assert over(PAGE, entry("max", name="y"), entry("max", name="y")).problems == ()


NUMBERS = st.lists(st.booleans() | st.integers(-100, 100) | st.floats(-1e9, 1e9), min_size=2, max_size=8)


@given(NUMBERS)
def test_the_mean_is_between_minimum_and_maximum(values: list[Any]) -> None:
    result = over(values, entry("mean"), entry("min"), entry("max")).values
    assert result["x.min"] <= result["x.mean"] <= result["x.max"]
    assert result["x"] == result["x.mean"]


@given(st.lists(st.booleans(), min_size=2, max_size=10), st.integers(1, 20))
def test_pass_hat_k_is_at_most_pass_at_k(values: list[bool], k: int) -> None:
    result = over(values, entry("pass@k", k=k), entry("pass^k", k=k)).values
    assert 0.0 <= result[f"x.pass^{k}"] <= result["x"] + 1e-12
    assert result["x"] - 1e-12 <= result[f"x.pass@{k}"] <= 1.0


@given(st.floats(0, 1), st.integers(1, 50))
def test_pass_at_k_is_the_complement_of_all_failures(share: float, k: int) -> None:
    assert pass_at_k(share, k) == pytest.approx(1 - pass_hat_k(1 - share, k))


@given(NUMBERS, st.randoms())
def test_aggregates_do_not_depend_on_the_trial_order(values: list[Any], random: Random) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    entries = (entry("mean"), entry("min"), entry("max"))
    assert over(values, *entries).values == over(shuffled, *entries).values


@given(NUMBERS)
def test_aggregates_ignore_failed_trials(values: list[Any]) -> None:
    trials = [{"x": value} for value in values]
    assert aggregate_trials([None, *trials, None]).values == aggregate_trials(trials).values


def test_spread_equals_the_published_example() -> None:
    runs = [{"accuracy": value} for value in (2 / 3, 1, 2 / 3, 1, 2 / 3)]
    spread = metrics_over_runs(runs)["accuracy"]
    assert spread.mean == pytest.approx(0.8)
    assert spread.std == pytest.approx(0.183, abs=5e-4)
    assert spread.std == pytest.approx(math.sqrt(2 * 3 / 5 / 9 / 4))
    assert spread.num_used == 5


def test_agreement_equals_the_published_example() -> None:
    assert agreement([0, 1, 0, 1, 0]) == 0.6


def test_every_metric_has_a_separate_spread() -> None:
    runs = [{("s", "mean"): 1.0, ("s", "max"): 2}, {("s", "mean"): 3.0}]
    assert metrics_over_runs(runs) == {
        ("s", "mean"): RunSpread(2.0, math.sqrt(2), 2),
        ("s", "max"): RunSpread(2.0, None, 1),
    }


@pytest.mark.parametrize("missing", [None, math.nan])
def test_run_without_the_value_is_excluded_from_the_spread(missing: float | None) -> None:
    runs: list[dict[str, float | None]] = [{"m": 1.0}, {"m": missing}, {}, {"m": 1.0}]
    assert metrics_over_runs(runs) == {"m": RunSpread(1.0, 0.0, 2)}
    assert metrics_over_runs([{"m": missing}]) == {}


def test_spread_without_runs_is_empty() -> None:
    assert metrics_over_runs([]) == {}
    assert score_agreements([]) == {}


def test_a_spread_too_large_for_a_float_is_unknown() -> None:
    assert metrics_over_runs([{"m": 1.7e308}, {"m": -1.7e308}]) == {"m": RunSpread(0.0, None, 2)}


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([True, 1.0, 1, False], 3 / 4),
        (["1", 1], 1 / 2),
        (["a", "a", "b"], 2 / 3),
        ([{"x": 1, "y": [2]}, {"y": [2], "x": 1}, [1]], 2 / 3),
        ([None, math.nan, 1], 1.0),
        ([1], 1.0),
        ([None, None], None),
        ([], None),
    ],
)
def test_agreement_is_the_proportion_of_the_most_frequent_value(
    values: list[Any], share: float | None
) -> None:
    assert agreement(values) == share


def test_agreement_is_computed_for_every_score() -> None:
    runs = [{"a": 1.0, "b": "x"}, None, {"a": 0.0, "c": None}, {"a": 1.0, "b": "x"}]
    assert score_agreements(runs) == {"a": 2 / 3, "b": 1.0}


VALUES = st.lists(st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]), max_size=10)


@given(VALUES, st.randoms())
def test_agreement_is_a_proportion_and_does_not_depend_on_the_order(
    values: list[Any], random: Random
) -> None:
    share = agreement(values)
    assert share is None or 0 < share <= 1
    shuffled = list(values)
    random.shuffle(shuffled)
    assert agreement(shuffled) == share


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=10), st.randoms())
def test_spread_is_not_negative_and_does_not_depend_on_the_order(values: list[float], random: Random) -> None:
    spread = metrics_over_runs([{"m": value} for value in values])["m"]
    assert spread.std is not None
    assert spread.std >= 0
    assert min(values) <= spread.mean <= max(values)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert metrics_over_runs([{"m": value} for value in shuffled])["m"] == spread


@given(st.floats(-1e6, 1e6), st.integers(2, 6))
def test_equal_runs_have_a_spread_of_zero(value: float, count: int) -> None:
    assert metrics_over_runs([{"m": value}] * count) == {"m": RunSpread(value, 0.0, count)}
