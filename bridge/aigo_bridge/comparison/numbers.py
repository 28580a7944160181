"""Every number of a result as a function of its samples' scores: what its interval, its denominator and a
comparison are computed from.

A number that the samples' scores do not give again, to the last few digits, is not used: an interval of
something else would be worse than none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.comparison.columns import Column, Columns
from aigo_bridge.comparison.definitions import ForeignMetric, metric_definitions
from aigo_bridge.comparison.labels import UNDEFINED, accuracy, class_ratio, label_pairs, macro_average
from aigo_bridge.dtypes import MetricData
from aigo_bridge.metrics.metric import is_missing, short
from aigo_bridge.spec import metrics as spec
from aigo_bridge.spec.metric import MetricSpec
from aigo_bridge.statistics.intervals import NoInterval, Numbers
from aigo_bridge.statistics.ratios import Ratio
from aigo_bridge.statistics.smooth import Smooth

FEWEST_FOR_STD_DEV = 100
"""Samples that a standard deviation needs for an interval."""


_MARKS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's marks (correct, partial, incorrect, no answer) as the numbers that its `accuracy` is the mean of.
"""


@dataclass(frozen=True)
class Quantity:
    """A number of a result."""

    scorer: str | None
    metric: str
    name: str
    value: float | int
    """As it stands in the result."""
    positions: NDArray[np.int64]
    """Samples that are in it; empty where it is not known which."""
    content: Ratio | Smooth | NoInterval
    """The number as a function of these samples, or why that is not known."""
    fields: tuple[str, ...] = ()
    """Scores that are read."""

    @property
    def key(self) -> tuple[str | None, str, str]:
        """What tells the numbers of a result apart."""
        return (self.scorer, self.metric, self.name)


def quantities(columns: Columns) -> list[Quantity]:
    """The numbers of a result, in its order."""
    evidence = columns.frame.evidence
    stored = (evidence.metrics if evidence is not None else None) or []
    if not len(columns):
        reason = (
            "the result has runs, and no samples of its own" if columns.runs else "the result has no samples"
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
    columns: Columns, metric: MetricData, name: str, definition: MetricSpec | ForeignMetric | None
) -> Quantity:
    scorer, value = metric.scorer_key, metric.values[name]
    if scorer is None:
        return _unknown(metric, name, "a system task computes its numbers as a whole, not over samples")
    if isinstance(definition, spec.PythonMetric) or metric.metric_type == "python":
        return _unknown(
            metric, name, "the author's code computes it, and reading a result runs no code of it"
        )
    if definition is None or isinstance(definition, ForeignMetric):
        source: _Source = _mean_of_that_value(columns, scorer, value, metric.metric_type or metric.metric_key)
    else:
        source = _source(columns, scorer, definition, name)
    if isinstance(source, NoInterval):
        return _unknown(metric, name, source.reason)
    positions, content, fields = source
    recomputed = content.value if isinstance(content, Ratio | Smooth) else value
    if recomputed is None or not _is_close(recomputed, value):
        number = "no number" if recomputed is None else f"{recomputed:.6g}"
        return _unknown(metric, name, f"the samples' scores give {number}, not the number in the result")
    return Quantity(scorer, metric.metric_key, name, value, positions, content, fields)


def _is_close(one: float, other: float) -> bool:
    try:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:  # a whole number larger than any floating-point number
        return one == other


_Source = tuple[NDArray[np.int64], Ratio | Smooth | NoInterval, tuple[str, ...]] | NoInterval
"""Samples, the number as a function of them, and the scores that are read; or why it is not known."""


def _source(columns: Columns, scorer: str, metric: MetricSpec, name: str) -> _Source:
    match metric:
        case spec.MeanMetric():
            return _over_numbers(columns, scorer, metric.field, Ratio.mean)
        case spec.StdDevMetric():
            return _over_numbers(columns, scorer, metric.field, std_dev_of)
        case spec.MinMetric() | spec.MaxMetric():
            reason = f"the {metric.type} of the samples says nothing about that of other samples"
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
        case _:  # types can be registered; what is not known of one is its interval alone
            return _not_known(metric.type)


def _not_known(kind: str) -> NoInterval:
    return NoInterval(f"how {kind!r} is computed is not known here")


def present(columns: Columns, column: Column | None) -> tuple[NDArray[np.int64], list[Any]]:
    """Positions and values of the samples that count and have a value."""
    if column is None:
        return np.array([], dtype=np.int64), []
    counted = columns.counted
    positions = np.array(column.positions, dtype=np.int64)
    takes_part = counted[positions] & np.array([not is_missing(value) for value in column.values], dtype=bool)
    if takes_part.all():
        return positions, column.values
    return positions[takes_part], list(compress(column.values, takes_part.tolist()))


def as_floats(values: list[Any]) -> Numbers | NoInterval:
    """Scores as numbers; text among them is a reason."""
    kinds = set(map(type, values))
    if not kinds <= {bool, int, float}:
        wrong = next(value for value in values if type(value) not in (bool, int, float))
        return NoInterval(f"the score {short(wrong)} is no number")
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        return NoInterval("a score is larger than any floating-point number")
    return numbers if np.isfinite(numbers).all() else NoInterval("a score is not finite")


def _over_numbers(columns: Columns, scorer: str, field: str, content: Any) -> _Source:
    positions, values = present(columns, columns.scores.get((scorer, field)))
    if not values:
        return NoInterval(f"no sample has a value for {field!r}")
    numbers = as_floats(values)
    return numbers if isinstance(numbers, NoInterval) else (positions, content(numbers), (field,))


def std_dev_of(values: Numbers) -> Smooth | NoInterval:
    """The standard deviation (n - 1) as a function of sums."""
    if len(values) < 2:
        return NoInterval("one sample has no spread")
    # Around the mean, so that squares do not lose digits.
    centred = values - values.mean()
    table = np.stack([centred, centred**2, np.ones(len(values))], axis=1)

    def function(sums: Numbers) -> Numbers:
        squares = sums[:, 1] - sums[:, 0] ** 2 / sums[:, 2]
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / (sums[:, 2] - 1)))

    return Smooth(table, np.arange(len(values)), function, None, FEWEST_FOR_STD_DEV)


def _frequency(columns: Columns, scorer: str, metric: spec.FrequencyMetric, name: str) -> _Source:
    positions, values = present(columns, columns.scores.get((scorer, metric.field)))
    hits = np.array([f"{metric.field}_{value}" == name for value in values], dtype=float)
    return positions, Ratio.mean(hits), (metric.field,)


def _weighted(columns: Columns, scorer: str, metric: spec.WeightedAverageMetric) -> _Source:
    positions, values = present(columns, columns.scores.get((scorer, metric.field)))
    weights = metric.weights
    if not isinstance(weights, Mapping) or any(str(value) not in weights for value in values):
        return NoInterval("the weights of its labels are not known")
    return positions, Ratio.mean(np.array([float(weights[str(value)]) for value in values])), (metric.field,)


def _of_counts(columns: Columns, scorer: str, fields: tuple[str, ...], *, transformed: bool) -> _Source:
    """TP over TP and the others, of samples that have all the counts."""
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
    ratio = Ratio(counts[0], np.sum(counts, axis=0), transformed)
    return UNDEFINED if ratio.value is None else (positions, ratio, fields)


def _of_labels(
    columns: Columns,
    scorer: str,
    metric: spec.BinaryClassificationMetric | spec.MulticlassClassificationMetric,
    name: str,
) -> _Source:
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


def _mean_of_that_value(columns: Columns, scorer: str, value: float, kind: str) -> _Source:
    """A metric of another tool: the mean of the only score whose mean it is, or not known."""
    candidates = list(_means(columns, scorer, value))
    if kind.rpartition("/")[2] not in ("accuracy", "mean") or len(candidates) != 1:
        return _not_known(kind)
    return candidates[0]


def _means(
    columns: Columns, scorer: str, value: float
) -> Iterator[tuple[NDArray[np.int64], Ratio, tuple[str, ...]]]:
    for owner, field in columns.scores:
        if owner != scorer:
            continue
        positions, values = present(columns, columns.scores[owner, field])
        numbers = as_floats(
            [_MARKS.get(value, value) if isinstance(value, str) else value for value in values]
        )
        if isinstance(numbers, NoInterval) or not len(numbers):
            continue
        if _is_close(float(numbers.mean()), value):
            yield positions, Ratio.mean(numbers), (field,)


def duplicates(columns: Columns) -> dict[Any, int]:
    """Ids that more than one sample has, and how many have them."""
    counts = Counter((type(sample), sample) for sample in columns.ids)
    return {sample: count for (_, sample), count in counts.items() if count > 1}
