"""A metric: what a type of metric consists of, which ones a scorer has, what they are called, which samples
stay out of them, what they read and result in.

The platform computes default metrics for scorers that list none without documenting them (a published policy
reads `accuracy` of a multiple-choice scorer with no metrics); these are ours.

Samples stay out by action rules. Source: AI GO's page on action rules. A sample that a rule's filter selects
stays in the evidence with a record and is left out of every metric of the task, whichever scorer they belong
to (that it is every one is our reading: a rule names no scorer). How filters compare is described in
`aigo_bridge.datasets.filtering`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

from aigo_bridge.datasets.filtering import matches
from aigo_bridge.dtypes import (
    ActionRecord,
    ActionRuleAction,
    SampleScore,
    TaskResultError,
    TaskResultErrorStage,
)
from aigo_bridge.errors import TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.plan.outline import CodeMetric, OutlineMetric, OutlineScorer
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.spec.metrics import MeanMetric
from aigo_bridge.spec.scorer import SCORERS, default_keys
from aigo_bridge.spec.scorers import Scorer
from aigo_bridge.spec.task import ActionRule

Scores = Sequence[Mapping[str, Any]]
"""One mapping of score name to value, or `NoAggregate`, for each sample that was scored."""


@dataclass(frozen=True)
class NoAggregate:
    """Stands for a score that has values in the trials of a sample, but no aggregated one: no metric can
    leave it out silently.
    """

    reason: str
    is_number: bool
    """Whether one of the trials at least gave a number."""


@dataclass(frozen=True)
class MetricResult:
    """What one metric came to."""

    values: Mapping[str, int | float]
    """Value name → number; empty when the metric could not be computed."""
    num_used: int
    """Samples that had a value."""
    num_skipped: int
    """Samples that are in no number: without a value (missing, null or NaN), or all when the metric failed as
    a whole.
    """
    problem: str | None = None
    """Why there is no value, or what is doubtful about it; `None` when all is well."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What stands behind the values and is no number itself, e.g. a confusion matrix; JSON."""


@dataclass(frozen=True)
class MetricContext:
    """What a metric may need beside its specification and the scores."""

    samples: Sequence[SampleScore] | None = None
    """The scores with their metadata; `None`: the values are all there is."""
    host: SnippetHost | None = None
    """Where snippets run; `None`: nowhere."""
    snippet_place: tuple[str, int] | None = None
    """File and first line of the metric's snippet, for errors; `None`: not known."""


M = TypeVar("M", bound=MetricSpec)


@dataclass(frozen=True)
class MetricType(Generic[M]):
    """A type of metric: what may be written (see `MetricSpec`), and what computes it."""

    spec: type[M]
    """Its specification."""
    compute: Callable[[M, Scores, MetricContext], MetricResult]
    """Makes its values of the scores; what is wrong with them is the result's problem.

    Raises:
        OverflowError: the numbers are too large to compute with.
    """


def as_number(value: object) -> float | int | None:
    """Booleans count as 0 and 1; `None` for what cannot be computed with: text, infinity."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None


def mean(numbers: Sequence[float | int]) -> float:
    """Exact sum, rounded once: never outside of what was averaged (the mean of 0.1, 0.1, 0.1 is 0.1).

    Raises `OverflowError` when the result is too large for a float.
    """
    return float(statistics.mean(numbers))


def std_dev(numbers: Sequence[float | int]) -> float:
    """Sample standard deviation (n - 1); 0.0 for a single value.

    Raises `OverflowError` when the result is too large for a float.
    """
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0


def ratio(numerator: float, denominator: float) -> float | None:
    """The quotient; `None` when there is nothing to divide by."""
    return numerator / denominator if denominator else None


def short(value: object) -> str:
    """A value for a message."""
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:79] + "…"


def present_values(field: str, scores: Scores) -> list[Any]:
    """The values of a score, of the samples that have one."""
    return [values[field] for values in scores if field in values and not is_missing(values[field])]


def unknown_score(field: str, scores: Scores) -> str | None:
    """What is wrong with the name of a score that no sample has."""
    if not scores or any(field in values for values in scores):
        return None
    names = sorted({name for values in scores for name in values})
    return f"no sample has a score {field!r}; the scorer gives: {', '.join(names) or 'none'}"


def no_value(field: str, scores: Scores) -> MetricResult:
    """The result where no sample has a value, and why."""
    problem = unknown_score(field, scores) or f"no sample has a value for {field!r}"
    return MetricResult({}, 0, len(scores), problem)


@overload
def metrics_of(scorer: Scorer, scores: Iterable[Mapping[str, Any]]) -> tuple[MetricSpec, ...]: ...


@overload
def metrics_of(scorer: OutlineScorer, scores: Iterable[Mapping[str, Any]]) -> tuple[OutlineMetric, ...]: ...


def metrics_of(
    scorer: Scorer | OutlineScorer, scores: Iterable[Mapping[str, Any]]
) -> tuple[MetricSpec | OutlineMetric, ...]:
    """The scorer's metrics: its own (an empty list means none), else the default ones for what it scored."""
    return scorer.metrics if scorer.metrics is not None else default_metrics(scorer.type, scores)


def default_metrics(scorer_type: str, scores: Iterable[Mapping[str, Any]]) -> tuple[MetricSpec, ...]:
    """Default metrics of a scorer type: fixed ones, or `{name}_mean` of each number and boolean it gave."""
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
    """One key per metric: its own, else its type, with `_2`, `_3` … where that is taken."""
    return default_keys([(metric.key, metric.type) for metric in metrics])


@dataclass(frozen=True)
class Exclusion:
    """What the action rules say about one sample."""

    records: tuple[ActionRecord, ...] = ()
    """The rules that selected the sample, in the task's order; with any, it stays out of the metrics."""
    errors: tuple[TaskResultError, ...] = ()
    """Rules that could not be evaluated, of stage `action`; they select nothing, and the other rules still
    count.
    """

    @property
    def excluded(self) -> bool:
        """Whether the sample stays out of the metrics."""
        return bool(self.records)


def excluded(
    rules: Sequence[ActionRule] | None,
    sample: Mapping[str, Any],
    solver_output: Any,
    scores: Mapping[str, Mapping[str, Any]],
) -> Exclusion:
    """Apply a task's action rules to one scored sample.

    Args:
        rules: the task's rules; `None` for a task without any.
        sample: its columns.
        solver_output: what the solver made; `None` when there is none, and then expressions cannot see the
            name.
        scores: scorer key → values (aggregated over trials); a scorer that failed is not there, and an
            expression that reads it is undefined.
    """
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
