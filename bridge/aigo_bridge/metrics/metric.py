"""Metric types: definition, default metrics of a scorer, metric keys, excluded samples, inputs and results.

The platform computes default metrics for scorers that list none, but does not document them. For example, a
published policy reads `accuracy` of a multiple-choice scorer with no metrics. The defaults here are
aigo-bridge's.

Action rules exclude samples (source: AI GO's page on action rules). A sample that a rule's filter selects
stays in the evidence with a record. It is excluded from the metrics of all scorers of the task, because a
rule does not name a scorer; this is our interpretation. `aigo_bridge.datasets.filtering` describes the
comparisons of filters.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from aigo_bridge.dtypes import (
    ActionRecord,
    ActionRuleAction,
    SampleScore,
    TaskResultError,
    TaskResultErrorStage,
)
from aigo_bridge.errors import TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.spec.metrics import MeanMetric
from aigo_bridge.spec.scorer import default_keys
from aigo_bridge.spec.scorers import SCORERS

if TYPE_CHECKING:
    from aigo_bridge.plan.outline import CodeMetric, OutlineMetric, OutlineScorer
    from aigo_bridge.snippets import SnippetHost
    from aigo_bridge.spec.scorers import Scorer
    from aigo_bridge.spec.task import ActionRuleSpec

Scores = Sequence[Mapping[str, Any]]
"""Mapping of score name to value, or `NoAggregate`, for each scored sample."""


@dataclass(frozen=True)
class NoAggregate:
    """Marker of a score that has values in the trials of a sample, but no aggregated value. It prevents
    metrics from silently skipping the score.
    """

    reason: str
    is_number: bool
    """Whether at least one trial gave a number."""


@dataclass(frozen=True)
class MetricResult:
    """Result of one metric."""

    values: Mapping[str, int | float]
    """Value name → number; empty when the metric could not be computed."""
    num_used: int
    """Number of samples with a value."""
    num_skipped: int
    """Number of samples that are not counted: samples without a value (missing, null or NaN), or all samples
    if the metric failed.
    """
    problem: str | None = None
    """Reason for a missing or doubtful value; `None` without problems."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further JSON data that explains the values, e.g. a confusion matrix."""


@dataclass(frozen=True)
class MetricContext:
    """Inputs that a metric may need in addition to its specification and the scores."""

    samples: Sequence[SampleScore] | None = None
    """Scores with their metadata; `None`: only the values are known."""
    host: SnippetHost | None = None
    """Worker host for snippets; `None`: snippets cannot run."""
    snippet_place: tuple[str, int] | None = None
    """File and first line of the metric's snippet, for errors; `None` if unknown."""


M = TypeVar("M", bound=MetricSpec)


@dataclass(frozen=True)
class MetricType(Generic[M]):
    """Metric type: its specification (see `MetricSpec`) and its computation."""

    spec: type[M]
    """Specification of the metric type."""
    compute: Callable[[M, Scores, MetricContext], MetricResult]
    """Function that computes the values from the scores; invalid scores become the problem of the result.

    Raises:
        OverflowError: the numbers are too large to compute with.
    """


def as_number(value: object) -> float | int | None:
    """Return a number; booleans are 0 and 1. Return `None` for other values, for example text or infinity."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def mean(numbers: Sequence[float | int]) -> float:
    """Compute the mean with an exact sum that is rounded once: the mean of 0.1, 0.1, 0.1 is 0.1.

    Raises `OverflowError` if the result is too large for a float.
    """
    return float(statistics.mean(numbers))


def std_dev(numbers: Sequence[float | int]) -> float:
    """Compute the sample standard deviation (n - 1); 0.0 for a single value.

    Raises `OverflowError` if the result is too large for a float.
    """
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0


def ratio(numerator: float, denominator: float) -> float | None:
    """Return the quotient; `None` if the denominator is zero."""
    return numerator / denominator if denominator else None


def present_values(field: str, scores: Scores) -> list[Any]:
    """Return the values of a score, for the samples that have one."""
    return [values[field] for values in scores if field in values and not is_missing(values[field])]


def unknown_score(field: str, scores: Scores) -> str | None:
    """Return an error message if no sample has a score of this name; otherwise `None`."""
    if not scores or any(field in values for values in scores):
        return None
    names = sorted({name for values in scores for name in values})
    return f"no sample has a score {field!r}; the scorer gives: {', '.join(names) or 'none'}"


def no_value(field: str, scores: Scores) -> MetricResult:
    """Return an empty result with the reason why no sample has a value."""
    problem = unknown_score(field, scores) or f"no sample has a value for {field!r}"
    return MetricResult({}, 0, len(scores), problem)


@overload
def metrics_of(scorer: Scorer, scores: Iterable[Mapping[str, Any]]) -> tuple[MetricSpec, ...]: ...


@overload
def metrics_of(scorer: OutlineScorer, scores: Iterable[Mapping[str, Any]]) -> tuple[OutlineMetric, ...]: ...


def metrics_of(
    scorer: Scorer | OutlineScorer, scores: Iterable[Mapping[str, Any]]
) -> tuple[MetricSpec | OutlineMetric, ...]:
    """Return the scorer's own metrics (an empty list means none), otherwise its default metrics."""
    return scorer.metrics if scorer.metrics is not None else default_metrics(scorer.type, scores)


def default_metrics(scorer_type: str, scores: Iterable[Mapping[str, Any]]) -> tuple[MetricSpec, ...]:
    """Return the default metrics of a scorer type: fixed ones, or `{name}_mean` of each numeric and boolean
    score.
    """
    scorer = SCORERS.get(scorer_type)
    if scorer is not None and scorer.usual_metrics is not None:
        return scorer.usual_metrics
    names: dict[str, None] = {}
    for values in scores:
        names |= {name: None for name, value in values.items() if _is_number(value)}
    return tuple(MeanMetric(type="mean", field=name) for name in names)


def _is_number(value: object) -> bool:
    return value.is_number if isinstance(value, NoAggregate) else isinstance(value, bool | int | float)


def metric_keys(metrics: Sequence[MetricSpec | CodeMetric]) -> tuple[str, ...]:
    """Return one key per metric: its own, otherwise its type, with the suffix `_2`, `_3` … if that key is
    taken.
    """
    return default_keys([(metric.key, metric.type) for metric in metrics])


@dataclass(frozen=True)
class Exclusion:
    """Outcome of the action rules for one sample."""

    records: tuple[ActionRecord, ...] = ()
    """Rules that selected the sample, in the task's order; a sample with any record is excluded from the
    metrics.
    """
    errors: tuple[TaskResultError, ...] = ()
    """Errors of rules that could not be evaluated (stage `action`). Such rules select no samples; the other
    rules still apply.
    """

    @property
    def excluded(self) -> bool:
        """Whether the sample is excluded from the metrics."""
        return bool(self.records)


def excluded(
    rules: Sequence[ActionRuleSpec] | None,
    sample: Mapping[str, Any],
    solver_output: Any,
    scores: Mapping[str, Mapping[str, Any]],
) -> Exclusion:
    """Apply a task's action rules to one scored sample.

    Args:
        rules: action rules of the task; `None` for a task without rules.
        sample: column → value.
        solver_output: output of the solver; `None` if it does not exist, and then expressions cannot use the
            name.
        scores: scorer key → values, aggregated over trials. A failed scorer is missing here, and an
            expression that reads it is undefined.
    """
    from aigo_bridge.datasets.filtering import matches

    variables: dict[str, Any] = {"sample": sample, "scores": scores}
    if solver_output is not None:
        variables["solver_output"] = solver_output
    records: list[ActionRecord] = []
    errors: list[TaskResultError] = []
    for rule in rules or ():
        try:
            selected = matches(rule.filter, semantics="action", **variables)
        except TemplateError as error:
            message = f"action rule {rule.key!r}: {error}"
            errors.append(
                TaskResultError(
                    error_type="TemplateError", message=message, stage=TaskResultErrorStage.action
                )
            )
            continue
        if selected:
            records.append(ActionRecord(action=ActionRuleAction(rule.action), rule_key=rule.key))
    return Exclusion(tuple(records), tuple(errors))


def fits_json(value: float) -> bool:
    """Return whether evidence can contain a number: JSON has no infinity, and most parsers limit integers to
    64 bits.
    """
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)
