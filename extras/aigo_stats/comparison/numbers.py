"""Metrics of a result as functions of sample scores, for intervals, sample counts and comparisons.

A metric is used only if its sample scores reproduce the stored value to the last few digits. An interval of a
different quantity would be worse than a missing interval.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.dtypes import MetricData
from aigo_bridge.metrics.names import MetricIdentity, metric_identities, standard_errors
from aigo_bridge.spec import metrics as spec
from aigo_bridge.spec.metric import MetricSpec
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.definitions import ForeignMetric, metric_definitions
from aigo_stats.comparison.foreign import foreign_source
from aigo_stats.comparison.labels import UNDEFINED, accuracy, class_ratio, label_pairs, macro_average
from aigo_stats.comparison.scales import score_scale
from aigo_stats.comparison.sources import (
    PointValue,
    Source,
    WrongMetric,
    as_floats,
    not_known,
    present,
    std_dev_of,
)
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.statistics.ratios import FRACTION, RIGHT_OR_WRONG, Ratio, Scale
from aigo_stats.statistics.smooth import Smooth


@dataclass(frozen=True)
class Quantity:
    """One metric value of a result."""

    scorer: str | None
    metric: str
    name: str
    value: float | int
    """Stored value."""
    positions: NDArray[np.int64]
    """Indices of the included samples; empty if unknown."""
    content: Ratio | Smooth | NoInterval
    """Formula over these samples, or the reason why it is unknown."""
    fields: tuple[str, ...] = ()
    """Names of the input scores."""
    identity: MetricIdentity | None = None
    """Identity of the metric, used to match metrics of two results and for unique names."""
    reported_error: tuple[str, float] | None = None
    """Name and value of the standard error that another tool reported."""

    @property
    def key(self) -> tuple[str | None, str, str]:
        """Key that identifies the metric within a result."""
        return (self.scorer, self.metric, self.name)


def identity_of(quantity: Quantity) -> MetricIdentity:
    """Return the identity of a metric. A manually created metric is identified by its key."""
    return quantity.identity or MetricIdentity(*quantity.key)


def quantities(columns: ResultColumns) -> list[Quantity]:
    """Return the metrics of a result in order, each with its reported standard error."""
    numbers = stored_numbers(columns)
    errors = standard_errors([number.identity for number in numbers if number.identity is not None])
    reported = {base: (numbers[error].name, float(numbers[error].value)) for error, base in errors.items()}
    return [
        replace(number, reported_error=reported.get(place))
        for place, number in enumerate(numbers)
        if place not in errors
    ]


def stored_numbers(columns: ResultColumns) -> list[Quantity]:
    """Return every stored value of a result in order, including standard errors."""
    evidence = columns.frame.evidence
    metrics = (evidence.metrics if evidence is not None else None) or []
    identities = metric_identities(columns.definition, metrics)
    return [
        replace(number, identity=identity)
        for number, identity in zip(_numbers(columns), identities, strict=True)
    ]


def _numbers(columns: ResultColumns) -> list[Quantity]:
    evidence = columns.frame.evidence
    stored = (evidence.metrics if evidence is not None else None) or []
    if not len(columns):
        reason = (
            "the result contains runs instead of samples"
            if columns.runs
            else "the result does not contain samples"
        )
        return [_unknown(metric, name, reason) for metric in stored for name in metric.values]
    definitions = metric_definitions(columns)
    numbers: list[Quantity] = []
    for metric in stored:
        definition = definitions.get((metric.scorer_key or "", metric.metric_key))
        numbers += [_quantity(columns, metric, name, definition) for name in metric.values]
    return numbers


def _unknown(metric: MetricData, name: str, reason: str) -> Quantity:
    return Quantity(
        metric.scorer_key,
        metric.metric_key,
        name,
        metric.values[name],
        np.array([], dtype=np.int64),
        NoInterval(reason),
    )


def _quantity(
    columns: ResultColumns, metric: MetricData, name: str, definition: MetricSpec | ForeignMetric | None
) -> Quantity:
    scorer, value = metric.scorer_key, metric.values[name]
    if scorer is None:
        return _unknown(metric, name, "a system task computes its metrics directly, not over samples")
    if isinstance(definition, spec.PythonMetric) or metric.metric_type == "python":
        return _unknown(
            metric, name, "the author's code computes it, and code is not executed when a result is read"
        )
    if definition is None or isinstance(definition, ForeignMetric):
        source = foreign_source(columns, scorer, definition, metric, name)
    else:
        source = _source(columns, scorer, definition, name)
    if isinstance(source, NoInterval):
        return _unknown(metric, name, source.reason)
    positions, content, fields = source
    recomputed = content.value if isinstance(content, Ratio | Smooth | PointValue) else value
    if recomputed is None or not _is_close(recomputed, value):
        number = "no number" if recomputed is None else f"{recomputed:.6g}"
        reason = f"the samples' scores give {number}, which differs from the result"
        return replace(_unknown(metric, name, reason), content=WrongMetric(reason, recomputed))
    return Quantity(scorer, metric.metric_key, name, value, positions, content, fields)


def _is_close(one: float, other: float) -> bool:
    try:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:  # an integer larger than any floating-point number
        return one == other


def _source(columns: ResultColumns, scorer: str, metric: MetricSpec, name: str) -> Source:
    match metric:
        case spec.MeanMetric():
            scale = score_scale(columns, scorer, metric.field)
            return _over_numbers(columns, scorer, metric.field, lambda numbers: Ratio.mean(numbers, scale))
        case spec.StdDevMetric():
            return _over_numbers(columns, scorer, metric.field, std_dev_of)
        case spec.MinMetric() | spec.MaxMetric():
            reason = f"the {metric.type} of these samples does not generalize to other samples"
            return _over_numbers(columns, scorer, metric.field, lambda _: NoInterval(reason))
        case spec.FrequencyMetric():
            return _frequency(columns, scorer, metric, name)
        case spec.WeightedAverageMetric():
            return _weighted(columns, scorer, metric)
        case spec.PrecisionMetric():
            fields = (metric.num_true_positives_field, metric.num_false_positives_field)
            return _of_counts(columns, scorer, fields, transformed=False)
        case spec.RecallMetric():
            fields = (metric.num_true_positives_field, metric.num_false_negatives_field)
            return _of_counts(columns, scorer, fields, transformed=False)
        case spec.F1ScoreMetric():
            all_fields = (
                metric.num_true_positives_field,
                metric.num_false_positives_field,
                metric.num_false_negatives_field,
            )
            return _of_counts(columns, scorer, all_fields, transformed=True)
        case spec.BinaryClassificationMetric() | spec.MulticlassClassificationMetric():
            return _of_labels(columns, scorer, metric, name)
        case _:  # a registered type: only its interval is unknown
            return not_known(metric.type)


def _over_numbers(columns: ResultColumns, scorer: str, field: str, content: Any) -> Source:
    positions, values = present(columns, columns.scores.get((scorer, field)))
    if not values:
        return NoInterval(f"no sample has a value for {field!r}")
    numbers = as_floats(values)
    return numbers if isinstance(numbers, NoInterval) else (positions, content(numbers), (field,))


def _frequency(columns: ResultColumns, scorer: str, metric: spec.FrequencyMetric, name: str) -> Source:
    positions, values = present(columns, columns.scores.get((scorer, metric.field)))
    hits = np.array([f"{metric.field}_{value}" == name for value in values], dtype=float)
    return positions, Ratio.mean(hits, RIGHT_OR_WRONG), (metric.field,)


def _weighted(columns: ResultColumns, scorer: str, metric: spec.WeightedAverageMetric) -> Source:
    positions, values = present(columns, columns.scores.get((scorer, metric.field)))
    weights = metric.weights
    if not isinstance(weights, Mapping) or any(str(value) not in weights for value in values):
        return NoInterval("the weights of its labels are not known")
    numbers = np.array([float(weights[str(value)]) for value in values])
    scale = Scale((min(map(float, weights.values())), max(map(float, weights.values()))))
    return positions, Ratio.mean(numbers, scale), (metric.field,)


def _of_counts(columns: ResultColumns, scorer: str, fields: tuple[str, ...], *, transformed: bool) -> Source:
    """Return the ratio from counts of TP and errors, for samples with all the counts."""
    parts = [present(columns, columns.scores.get((scorer, field))) for field in fields]
    positions = parts[0][0]
    for samples, _ in parts[1:]:
        positions = np.intersect1d(positions, samples)
    counts = []
    for samples, values in parts:
        numbers = as_floats(values)
        if isinstance(numbers, NoInterval):
            return numbers
        counts.append(numbers[np.isin(samples, positions)])
    ratio = Ratio(counts[0], np.sum(counts, axis=0), transformed, FRACTION)
    return UNDEFINED if ratio.value is None else (positions, ratio, fields)


def _of_labels(
    columns: ResultColumns,
    scorer: str,
    metric: spec.BinaryClassificationMetric | spec.MulticlassClassificationMetric,
    name: str,
) -> Source:
    fields = (metric.field_gt, metric.field_pred)
    pairs = label_pairs(metric, *(present(columns, columns.scores.get((scorer, field))) for field in fields))
    if name == "accuracy":
        return pairs.positions, accuracy(pairs), fields
    if name.startswith("macro_") and isinstance(metric, spec.MulticlassClassificationMetric):
        return pairs.positions, macro_average(pairs, name.removeprefix("macro_")), fields
    label, _, kind = (
        (metric.positive_answer, "", name)
        if isinstance(metric, spec.BinaryClassificationMetric)
        else name.rpartition("_f1_score" if name.endswith("_f1_score") else "_")
    )
    if isinstance(metric, spec.MulticlassClassificationMetric) and name.endswith("_f1_score"):
        kind = "f1_score"
    return pairs.positions, class_ratio(pairs, label, kind), fields


def duplicates(columns: ResultColumns) -> dict[Any, int]:
    """Return the IDs that occur more than once, with the number of their samples."""
    counts = Counter((type(sample), sample) for sample in columns.ids)
    return {sample: count for (_, sample), count in counts.items() if count > 1}
