"""Policies: rules that the results of an evaluation must satisfy.

A rule names a metric value by the name that the metric uses (`name: Accuracy`). If several metrics use the
same name, a rule may also use the metric key and name, or the scorer key, metric key and name, joined with
`_`. Every value with that name in the scope of the rule must satisfy the rule, and at least one must
exist. A rule that matches no value fails, so that a misspelt rule does not pass silently.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aigo_bridge.dtypes import MetricData, TaskResultEvidence
from aigo_bridge.results.internal_errors import explained
from aigo_bridge.spec.evaluations import (
    ExistsRule,
    PolicyRule,
    PolicySpec,
    ResultScope,
    Scope,
    ThresholdRule,
)
from aigo_bridge.text.numbers import short_number

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class ResultMetrics:
    """Metrics of one result."""

    evaluation: str
    """Key of the evaluation."""
    specification: str
    """Key of the task specification."""
    metrics: Sequence[MetricData]


@dataclass(frozen=True)
class FoundMetric:
    """Metric value that a rule checks."""

    evaluation: str
    specification: str
    scorer: str | None
    name: str
    value: float | int


@dataclass(frozen=True)
class PolicyResult:
    """Outcome of a rule."""

    policy: str
    """Key of the policy."""
    rule: str
    """Key of the rule."""
    display_name: str
    """Display name of the rule."""
    passed: bool
    reason: str
    """Required and found values; lowercase, without a full stop."""
    values: tuple[FoundMetric, ...] = ()
    """Values that the rule checked."""


def verdicts(policies: Sequence[PolicySpec], results: Sequence[ResultMetrics]) -> list[PolicyResult]:
    """Return one verdict for each rule of every policy, in the order of the file."""
    return [_contained(policy, rule, results) for policy in policies for rule in policy.rules]


def _contained(policy: PolicySpec, rule: PolicyRule, results: Sequence[ResultMetrics]) -> PolicyResult:
    """Return the verdict of a rule. A rule that cannot be evaluated fails, so that a broken rule never
    passes.
    """
    try:
        return _verdict(policy, rule, results)
    except Exception as error:  # noqa: BLE001  # must not affect results or other rules
        reason = f"the policy could not be evaluated: {explained(error)}"
        return PolicyResult(policy.key, rule.key, rule.display_name, passed=False, reason=reason)


def _verdict(policy: PolicySpec, rule: PolicyRule, results: Sequence[ResultMetrics]) -> PolicyResult:
    wanted = rule.definition
    within = [result for result in results if _result_fits(rule.scope, result)]
    values = tuple(_values(wanted.metric, rule.scope, within))
    if not within:
        passed, reason = False, f"no result of this run matches its scope ({_scope(rule.scope)})"
    elif not values:
        names = ", ".join(_names(within, rule.scope)) or "none"
        passed, reason = False, f"no metric {wanted.metric!r} in its scope; available: {names}"
    elif isinstance(wanted, ExistsRule):
        passed, reason = True, f"{wanted.metric} exists"
    else:
        passed, reason = _threshold(wanted, values)
    return PolicyResult(policy.key, rule.key, rule.display_name, passed, reason, values)


def _threshold(rule: ThresholdRule, values: Sequence[FoundMetric]) -> tuple[bool, str]:
    holds = OPERATORS[rule.operator]
    demand = f"{rule.metric} {rule.operator} {rule.threshold:g}"
    broken = [value for value in values if not holds(value.value, rule.threshold)]
    if not broken:
        shown = values if len(values) <= 3 else values[:3]
        more = "" if len(values) == len(shown) else f" and {len(values) - len(shown)} more"
        return True, f"{demand}: {', '.join(_shown(value, rule.threshold) for value in shown)}{more}"
    return False, f"{demand} failed: {', '.join(_shown(value, rule.threshold) for value in broken)}"


def _shown(metric: FoundMetric, threshold: float) -> str:
    text = short_number(metric.value)
    if text == short_number(threshold):
        # A threshold of 0.9 and a value of 0.899999 must look different.
        text = repr(metric.value)
    return f"{metric.specification} has {text}"


def _result_fits(scope: Scope, result: ResultMetrics) -> bool:
    if not isinstance(scope, ResultScope):
        return True
    return _listed(scope.evaluation_keys, result.evaluation) and _listed(
        scope.task_specification_keys, result.specification
    )


def _metric_fits(scope: Scope, metric: MetricData) -> bool:
    if not isinstance(scope, ResultScope):
        return True
    return _listed(scope.scorer_keys, metric.scorer_key) and _listed(scope.metric_keys, metric.metric_key)


def _listed(keys: Sequence[str] | None, key: str | None) -> bool:
    return keys is None or key in keys


def _values(name: str, scope: Scope, results: Sequence[ResultMetrics]) -> Iterator[FoundMetric]:
    plain = list(_named(scope, results))
    chosen = [value for value in plain if value.name == name]
    yield from chosen or (value for value in _flat(scope, results) if value.name == name)


def _named(scope: Scope, results: Sequence[ResultMetrics]) -> Iterator[FoundMetric]:
    for result in results:
        for metric in result.metrics:
            if _metric_fits(scope, metric):
                for name, value in metric.values.items():
                    yield FoundMetric(result.evaluation, result.specification, metric.scorer_key, name, value)


def _flat(scope: Scope, results: Sequence[ResultMetrics]) -> Iterator[FoundMetric]:
    """Yield values with the names that AI GO gives them if several values share a name."""
    for result in results:
        fitting = [metric for metric in result.metrics if _metric_fits(scope, metric)]
        flat = TaskResultEvidence(metrics=fitting).build_flat_metrics_dict()
        for name, value in flat.items():
            yield FoundMetric(result.evaluation, result.specification, None, name, value)


def _names(results: Sequence[ResultMetrics], scope: Scope) -> list[str]:
    return list(dict.fromkeys(value.name for value in _named(scope, results)))


def _scope(scope: Scope) -> str:
    if not isinstance(scope, ResultScope):
        return scope
    return "; ".join(
        f"{name.replace('_', ' ')}: {', '.join(keys)}"
        for name, keys in scope.model_dump(exclude_none=True).items()
    )
