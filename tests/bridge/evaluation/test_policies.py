"""Policies: what a rule looks at, when it holds, and that a gate which finds nothing is shut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import MetricData
from aigo_bridge.evaluation.policies import PolicyResult, ResultMetrics, verdicts
from aigo_bridge.spec.evaluations import PolicySpec


def measured(specification: str, evaluation: str = "ev", **values: float) -> ResultMetrics:
    """A result with one metric of the scorer `s`."""
    metric = MetricData(values=values, metric_key="m", metric_type="mean", scorer_key="s")
    return ResultMetrics(evaluation, specification, [metric])


def verdict(
    definition: dict[str, Any], results: list[ResultMetrics], scope: Any = "all_latest"
) -> PolicyResult:
    rule = {"key": "r", "display_name": "R", "definition": definition, "scope": scope}
    policy = PolicySpec.model_validate({"key": "p", "display_name": "P", "rules": [rule]})
    (found,) = verdicts([policy], results)
    return found


def threshold(operator: str, number: float, metric: str = "Accuracy") -> dict[str, Any]:
    return {"type": "threshold", "metric": metric, "operator": operator, "threshold": number}


@pytest.mark.parametrize(
    ("operator", "below", "equal", "above"),
    [
        (">", False, False, True),
        (">=", False, True, True),
        ("=", False, True, False),
        ("<", True, False, False),
        ("<=", True, True, False),
    ],
)
def test_operators_are_read_from_the_metric_to_the_threshold(
    operator: str, below: bool, equal: bool, above: bool
) -> None:
    found = [
        verdict(threshold(operator, 0.5), [measured("a", Accuracy=value)]).passed for value in (0.4, 0.5, 0.6)
    ]
    assert found == [below, equal, above]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_exactly_one_of_less_equal_and_greater_holds(value: float, number: float) -> None:
    held = [
        verdict(threshold(sign, number, "x"), [measured("a", x=value)]).passed for sign in ("<", "=", ">")
    ]
    assert sum(held) == 1


def test_every_value_in_scope_has_to_hold_and_broken_ones_are_named() -> None:
    results = [measured("a", Accuracy=0.9), measured("b", Accuracy=0.1)]
    found = verdict(threshold(">=", 0.5), results)
    assert not found.passed
    assert found.reason == "Accuracy >= 0.5 failed: b has 0.1"
    assert [value.value for value in found.values] == [0.9, 0.1]


@pytest.mark.parametrize(
    ("value", "shown"), [(2 / 3, "0.6667"), (0.89999999, "0.89999999"), (0.9, "0.9"), (1234.0, "1,234")]
)
def test_value_is_rounded_unless_it_would_look_like_the_threshold(value: float, shown: str) -> None:
    assert verdict(threshold("<", 0.9), [measured("a", Accuracy=value)]).reason.endswith(f": a has {shown}")


def test_a_scope_leaves_other_results_out() -> None:
    results = [measured("a", Accuracy=0.9), measured("b", Accuracy=0.1), measured("a", "other", Accuracy=0.0)]
    scope = {"task_specification_keys": ["a"], "evaluation_keys": ["ev"]}
    assert verdict(threshold(">=", 0.5), results, scope).passed
    assert (
        verdict(threshold(">=", 0.5), results, {"scorer_keys": ["s"], "metric_keys": ["m"]}).passed is False
    )


def test_a_rule_that_finds_nothing_has_failed() -> None:
    """A misspelt metric, and a scope without a result, also for rules that only ask whether a metric exists."""
    results = [measured("a", Accuracy=0.9)]
    misspelt = verdict(threshold(">=", 0.5, "Acuracy"), results)
    assert not misspelt.passed
    assert misspelt.reason == "no metric 'Acuracy' in its scope; available: Accuracy"
    assert not verdict({"type": "exists", "metric": "Acuracy"}, results).passed
    nowhere = verdict(threshold(">=", 0.5), results, {"evaluation_keys": ["elsewhere"]})
    assert nowhere.reason == "no result of this run matches its scope (evaluation keys: elsewhere)"
    assert not nowhere.passed
    assert not verdict(threshold(">=", 0.5), []).passed


def test_a_metric_exists() -> None:
    assert verdict({"type": "exists", "metric": "Accuracy"}, [measured("a", Accuracy=0.0)]).passed


def test_values_that_share_a_name_are_found_by_their_longer_one() -> None:
    metrics = [
        MetricData(values={"mean": 0.2}, metric_key="x", metric_type="mean", scorer_key="s"),
        MetricData(values={"mean": 0.8}, metric_key="y", metric_type="mean", scorer_key="s"),
    ]
    results = [ResultMetrics("ev", "a", metrics)]
    assert verdict(threshold(">=", 0.5, "y_mean"), results).passed
    assert not verdict(threshold(">=", 0.5, "x_mean"), results).passed
    assert not verdict(threshold(">=", 0.5, "mean"), results).passed
