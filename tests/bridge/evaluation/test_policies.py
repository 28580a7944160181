"""Policies: values in the scope of a rule, passing rules, and rules without a matching value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import MetricData
from aigo_bridge.evaluation.policies import PolicyResult, ResultMetrics, verdicts
from aigo_bridge.spec.evaluations import PolicySpec


def measured(specification: str, evaluation: str = "ev", **values: float) -> ResultMetrics:
    """Return a result with one metric of the scorer `s`."""
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
def test_operator_compares_the_metric_with_the_threshold(
    operator: str, below: bool, equal: bool, above: bool
) -> None:
    found = [
        verdict(threshold(operator, 0.5), [measured("a", Accuracy=value)]).passed for value in (0.4, 0.5, 0.6)
    ]
    assert found == [below, equal, above]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_exactly_one_of_less_equal_and_greater_passes(value: float, number: float) -> None:
    held = [
        verdict(threshold(sign, number, "x"), [measured("a", x=value)]).passed for sign in ("<", "=", ">")
    ]
    assert sum(held) == 1


def test_every_value_in_scope_must_pass_and_failures_are_listed() -> None:
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


def test_results_outside_the_scope_are_ignored() -> None:
    results = [measured("a", Accuracy=0.9), measured("b", Accuracy=0.1), measured("a", "other", Accuracy=0.0)]
    scope = {"task_specification_keys": ["a"], "evaluation_keys": ["ev"]}
    assert verdict(threshold(">=", 0.5), results, scope).passed
    assert (
        verdict(threshold(">=", 0.5), results, {"scorer_keys": ["s"], "metric_keys": ["m"]}).passed is False
    )


def test_rule_without_a_matching_value_fails() -> None:
    """This applies to a misspelled metric and to a scope without results, including rules that check existence."""
    results = [measured("a", Accuracy=0.9)]
    misspelt = verdict(threshold(">=", 0.5, "Acuracy"), results)
    assert not misspelt.passed
    assert misspelt.reason == "no metric 'Acuracy' in its scope; available: Accuracy"
    assert not verdict({"type": "exists", "metric": "Acuracy"}, results).passed
    nowhere = verdict(threshold(">=", 0.5), results, {"evaluation_keys": ["elsewhere"]})
    assert nowhere.reason == "no result of this run matches its scope (evaluation keys: elsewhere)"
    assert not nowhere.passed
    assert not verdict(threshold(">=", 0.5), []).passed


def test_rule_can_check_that_a_metric_exists() -> None:
    assert verdict({"type": "exists", "metric": "Accuracy"}, [measured("a", Accuracy=0.0)]).passed


def test_values_with_the_same_name_need_the_qualified_name() -> None:
    metrics = [
        MetricData(values={"mean": 0.2}, metric_key="x", metric_type="mean", scorer_key="s"),
        MetricData(values={"mean": 0.8}, metric_key="y", metric_type="mean", scorer_key="s"),
    ]
    results = [ResultMetrics("ev", "a", metrics)]
    assert verdict(threshold(">=", 0.5, "y_mean"), results).passed
    assert not verdict(threshold(">=", 0.5, "x_mean"), results).passed
    assert not verdict(threshold(">=", 0.5, "mean"), results).passed
