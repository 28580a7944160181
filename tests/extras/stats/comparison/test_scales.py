"""Declared score scales: by scorer type, value type or the metric of another tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.extras.stats.comparison.logs import log, repeated, sample

from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.comparing import compare
from aigo_stats.comparison.estimates import MetricEstimate, estimates
from aigo_stats.comparison.scales import score_scale
from aigo_stats.statistics.intervals import Interval
from aigo_stats.statistics.ratios import FRACTION, RIGHT_OR_WRONG, UNDECLARED, Scale


def mean_of(field: str) -> dict[str, Any]:
    return {"type": "mean", "field": field, "name": "number"}


def scale_of(path: Path, scorer: dict[str, Any], values: list[Any], field: str, **config: Any) -> Scale:
    samples = [sample(number, {field: value}) for number, value in enumerate(values)]
    task = {"scorers": [{"key": "judge", **scorer}]}
    specification = {"config": config} if config else {}
    columns = read_columns(log(path, samples, [], task=task, specification=specification))
    return score_scale(columns, "judge", field)


@pytest.mark.parametrize(
    ("scorer", "field", "scale"),
    [
        ("string_equals", "is_correct", RIGHT_OR_WRONG),
        ("string_equals_mcqa", "is_correct", RIGHT_OR_WRONG),
        ("model_as_a_judge_classifier", "is_correct", RIGHT_OR_WRONG),
        ("code_exec", "code_exec", RIGHT_OR_WRONG),
        ("function_call_coverage", "all_required_calls_made", RIGHT_OR_WRONG),
        ("function_call_coverage", "required_calls_coverage", FRACTION),
        ("function_call_coverage", "num_unrequired_calls", UNDECLARED),
        ("bleu", "bleu_score", FRACTION),
        ("model_as_a_judge_scorer", "score", FRACTION),
        ("rag_checker", "faithfulness", FRACTION),
        ("python", "commands", UNDECLARED),
    ],
)
def test_scorer_type_declares_the_score_scale(tmp_path: Path, scorer: str, field: str, scale: Scale) -> None:
    assert scale_of(tmp_path / "a.json", {"type": scorer}, [0.0, 1.0, 1.0], field) == scale


def test_boolean_scores_of_a_python_scorer_are_a_proportion(tmp_path: Path) -> None:
    path, python = tmp_path / "a.json", {"type": "python"}

    assert scale_of(path, python, [True, False, None], "ok") == RIGHT_OR_WRONG
    assert scale_of(path, python, [1, 0, 1], "ok") == UNDECLARED
    assert scale_of(path, python, [True, 2, False], "ok") == UNDECLARED


def test_metric_names_of_other_tools_declare_right_wrong_scores(tmp_path: Path) -> None:
    path, values = tmp_path / "a.json", [1.0, 0.0]

    assert scale_of(path, {"type": "acc"}, values, "acc,none", lm_eval={}) == RIGHT_OR_WRONG
    assert scale_of(path, {"type": "em"}, values, "em", lighteval={}) == RIGHT_OR_WRONG
    assert scale_of(path, {"type": "acc"}, values, "acc", unrelated={}) == UNDECLARED
    assert (
        scale_of(path, {"type": "word_perplexity"}, values, "word_perplexity,none", lm_eval={}) == UNDECLARED
    )


def number_of(path: Path) -> MetricEstimate:
    (number,) = estimates(read_columns(path))
    return number


@pytest.mark.parametrize("ones", [30, 27, 3])
def test_counts_of_0_and_1_are_not_a_proportion(tmp_path: Path, ones: int) -> None:
    samples = [sample(number, {"words": float(number < ones)}) for number in range(30)]
    base = log(tmp_path / "a.json", samples, [(mean_of("words"), {"number": ones / 30})])
    new = log(tmp_path / "b.json", samples, [(mean_of("words"), {"number": ones / 30})])

    number = number_of(base)
    (metric,) = compare(read_columns(base), read_columns(new)).metrics

    assert not isinstance(number.estimate, Interval) or number.estimate.method == "t, corrected for skewness"
    assert metric.flips is None


def test_bounds_require_a_declared_scale(tmp_path: Path) -> None:
    """Only marks 1 to 3 are observed, so the upper end of the scale is unknown."""
    samples = [*(sample(number, {"mark": 1 + number % 3}) for number in range(12)), sample(12, None)]

    assert number_of(log(tmp_path / "a.json", samples, [(mean_of("mark"), {"number": 2.0})])).bounds is None


def test_trial_means_of_a_proportion_have_a_wilson_interval(tmp_path: Path) -> None:
    samples = [repeated(number, [1.0, float(number % 2), 0.0]) for number in range(12)]
    number = number_of(log(tmp_path / "a.json", samples, [(mean_of("right"), {"number": 0.5})]))

    assert isinstance(number.estimate, Interval)
    assert number.estimate.method == "Wilson, effective n"


def test_values_outside_the_declared_scale_override_it(tmp_path: Path) -> None:
    samples = [sample(number, {"is_correct": float(number)}) for number in range(12)]
    task = {"scorers": [{"key": "judge", "type": "string_equals", "metrics": [mean_of("is_correct")]}]}
    path = log(tmp_path / "a.json", samples, [(mean_of("is_correct"), {"number": 5.5})], task=task)

    number = number_of(path)

    assert isinstance(number.estimate, Interval)
    assert number.estimate.method == "t, corrected for skewness"
