"""The formulas. Source: AI GO's metric pages; where they are silent, what is decided here stands in the docstrings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from aigo_bridge.dtypes import SampleScore
from aigo_bridge.metrics.classification import binary_classification, multiclass_classification
from aigo_bridge.metrics.numbers import as_number, is_missing, mean, ratio, short, std_dev
from aigo_bridge.metrics.python import python_metric
from aigo_bridge.metrics.result import MetricResult, NoAggregate, Scores
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec import metrics as spec

_SHOWN_LABELS = 10


def compute_metric(
    metric: spec.Metric,
    scores: Scores,
    *,
    host: SnippetHost | None = None,
    samples: Sequence[SampleScore] | None = None,
    snippet_place: tuple[str, int] | None = None,
) -> MetricResult:
    """Compute one metric over the scores of its scorer.

    A value that is missing, null or NaN is skipped and counted, never taken for zero. A value of the wrong kind (text under `mean`, a
    label without a weight) leaves the metric without a value and says so: a number over the rest would be a wrong one.

    Args:
        metric: as specified, config bound.
        scores: the values of each sample that was scored.
        host: where `python` metrics run; without one they have no value. The call blocks while they do.
        samples: what `python` metrics see, values with their metadata; `None`: the values alone.
        snippet_place: file and first line of the code of a `python` metric, told in errors; `None`: not known.
    """
    reason = next(_unaggregated(metric, scores), None)
    if reason is not None:
        return MetricResult({}, 0, len(scores), f"over the trials of a sample, {reason}")
    try:
        result = _compute(metric, scores, samples, host, snippet_place)
    except OverflowError:
        return _too_large(scores)
    return result if all(map(_fits_json, result.values.values())) else _too_large(scores)


def _unaggregated(metric: spec.Metric, scores: Scores) -> Iterator[str]:
    """Why samples have no aggregated value of a score that the metric reads. A number over the rest would be a wrong one."""
    fields = [value for name, value in metric if name.endswith("field") and isinstance(value, str)]
    for values in scores:
        for each in fields:
            if isinstance(value := values.get(each), NoAggregate):
                yield value.reason


def _python(
    metric: spec.PythonMetric,
    scores: Scores,
    samples: Sequence[SampleScore] | None,
    host: SnippetHost | None,
    place: tuple[str, int] | None,
) -> MetricResult:
    if host is None:
        return MetricResult({}, 0, len(scores), "there is no worker process to run its snippet in")
    if samples is None:
        samples = [SampleScore(values=dict(values)) for values in scores]
    return python_metric(metric, samples, host, place)


def _fits_json(value: float) -> bool:
    """Whether evidence can hold a number: JSON knows no infinity, and its readers take whole numbers for 64-bit ones."""
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)


def _too_large(scores: Scores) -> MetricResult:
    return MetricResult({}, 0, len(scores), "the numbers are too large to compute with")


def _compute(
    metric: spec.Metric,
    scores: Scores,
    samples: Sequence[SampleScore] | None,
    host: SnippetHost | None,
    place: tuple[str, int] | None,
) -> MetricResult:
    match metric:
        case spec.MeanMetric():
            return _over_field(metric, scores, "mean", mean)
        case spec.MinMetric():
            return _over_field(metric, scores, "min", min)
        case spec.MaxMetric():
            return _over_field(metric, scores, "max", max)
        case spec.StdDevMetric():
            return _over_field(metric, scores, "std_dev", std_dev)
        case spec.FrequencyMetric():
            return _frequency(metric, scores)
        case spec.WeightedAverageMetric():
            return _weighted_average(metric, scores)
        case spec.PrecisionMetric():
            counts = (metric.num_true_positives_field, metric.num_false_positives_field)
            return _from_counts(metric.name or "precision", counts, scores, lambda tp, fp: ratio(tp, tp + fp))
        case spec.RecallMetric():
            counts = (metric.num_true_positives_field, metric.num_false_negatives_field)
            return _from_counts(metric.name or "recall", counts, scores, lambda tp, fn: ratio(tp, tp + fn))
        case spec.F1ScoreMetric():
            return _from_counts(
                metric.name or "f1_score",
                (
                    metric.num_true_positives_field,
                    metric.num_false_positives_field,
                    metric.num_false_negatives_field,
                ),
                scores,
                lambda tp, fp, fn: ratio(2 * tp, 2 * tp + fp + fn),
            )
        case spec.BinaryClassificationMetric():
            return binary_classification(metric, scores)
        case spec.MulticlassClassificationMetric():
            return multiclass_classification(metric, scores)
        case spec.PythonMetric():
            return _python(metric, scores, samples, host, place)


def _present(field: str, scores: Scores) -> list[Any]:
    return [values[field] for values in scores if field in values and not is_missing(values[field])]


def _none(field: str, scores: Scores) -> MetricResult:
    if scores and not any(field in values for values in scores):
        known = sorted({name for values in scores for name in values})
        problem = f"no sample has a score {field!r}; the scorer gives: {', '.join(known) or 'none'}"
    else:
        problem = f"no sample has a value for {field!r}"
    return MetricResult({}, 0, len(scores), problem)


def _over_field(
    metric: spec.MeanMetric | spec.MinMetric | spec.MaxMetric | spec.StdDevMetric,
    scores: Scores,
    suffix: str,
    formula: Callable[[list[float | int]], float | int],
) -> MetricResult:
    present = _present(metric.field, scores)
    if not present:
        return _none(metric.field, scores)
    numbers = [as_number(value) for value in present]
    skipped = len(scores) - len(present)
    usable = [number for number in numbers if number is not None]
    if len(usable) < len(numbers):
        wrong = next(value for value in present if as_number(value) is None)
        return MetricResult(
            {}, 0, skipped, f"{metric.field!r} has the value {short(wrong)}, expected a finite number"
        )
    return MetricResult({metric.name or f"{metric.field}_{suffix}": formula(usable)}, len(usable), skipped)


def _frequency(metric: spec.FrequencyMetric, scores: Scores) -> MetricResult:
    present = _present(metric.field, scores)
    if not present:
        return _none(metric.field, scores)
    counts = Counter(str(value) for value in present)
    values = {f"{metric.field}_{text}": count / len(present) for text, count in counts.items()}
    return MetricResult(values, len(present), len(scores) - len(present))


def _weighted_average(metric: spec.WeightedAverageMetric, scores: Scores) -> MetricResult:
    present = _present(metric.field, scores)
    if not present:
        return _none(metric.field, scores)
    assert isinstance(metric.weights, Mapping)  # a template only until the config is bound
    skipped = len(scores) - len(present)
    unknown = sorted({str(value) for value in present} - set(metric.weights))
    if unknown:
        shown = ", ".join(map(short, unknown[:_SHOWN_LABELS]))
        more = f" and {len(unknown) - _SHOWN_LABELS} more" if len(unknown) > _SHOWN_LABELS else ""
        problem = f"{metric.field!r} has labels without a weight: {shown}{more}"
        return MetricResult({}, 0, skipped, problem)
    weights = [metric.weights[str(value)] for value in present]
    if not all(map(math.isfinite, weights)):
        return MetricResult({}, 0, skipped, "a weight is not a finite number")
    name = metric.name or f"{metric.field}_weighted_average"
    return MetricResult({name: mean(weights)}, len(present), skipped)


def _from_counts(
    name: str, fields: Sequence[str], scores: Scores, formula: Callable[..., float | None]
) -> MetricResult:
    """Micro average: counts are summed over the samples that have all of them, then divided."""
    rows = [[values.get(field) for field in fields] for values in scores]
    complete = [row for row in rows if not any(is_missing(value) for value in row)]
    skipped = len(rows) - len(complete)
    if not complete:
        missing = next((field for field in fields if not _present(field, scores)), fields[0])
        return _none(missing, scores)
    for row in complete:
        for field, value in zip(fields, row, strict=True):
            number = as_number(value)
            if number is None or number < 0:
                problem = f"{field!r} has the value {short(value)}, expected a count"
                return MetricResult({}, 0, skipped, problem)
    totals = [
        math.fsum(float(as_number(value) or 0) for value in column) for column in zip(*complete, strict=True)
    ]
    value = formula(*totals)
    if value is None:
        return MetricResult(
            {name: 0.0}, len(complete), skipped, "all counts are zero; 0.0 stands for an undefined ratio"
        )
    return MetricResult({name: value}, len(complete), skipped)
