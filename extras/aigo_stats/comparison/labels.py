"""Metrics over pairs of a true and a predicted label. The formulas are the same as in `metrics.compute`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.metrics.compute import answer_of, label_text
from aigo_bridge.spec.metrics import BinaryClassificationMetric, MulticlassClassificationMetric
from aigo_stats.statistics.intervals import NoInterval, Numbers
from aigo_stats.statistics.ratios import RIGHT_OR_WRONG, Ratio
from aigo_stats.statistics.smooth import Smooth

FEWEST_FOR_AVERAGES = 50
"""Minimum number of samples for the interval of an average over classes."""

MOST_CLASSES = 200
"""Maximum number of classes for the interval of an average over classes."""

UNDEFINED = NoInterval("0.0 replaces an undefined ratio: the denominator is zero")

Present = tuple[NDArray[np.int64], list[Any]]
"""Indices of samples and their values."""


@dataclass(frozen=True)
class LabelPairs:
    """True and predicted label of each sample that has both."""

    positions: NDArray[np.int64]
    truth: NDArray[np.int64]
    """Index of the true label in `classes`."""
    predicted: NDArray[np.int64]
    classes: tuple[str, ...]


def label_pairs(
    metric: BinaryClassificationMetric | MulticlassClassificationMetric, truth: Present, predicted: Present
) -> LabelPairs:
    """Return the samples with both labels. Binary metrics only accept their two labels."""

    def text(value: Any) -> str | None:
        if isinstance(metric, BinaryClassificationMetric):
            return answer_of(value, (metric.positive_answer, metric.negative_answer))
        return label_text(value)

    predictions = dict(zip(predicted[0].tolist(), predicted[1], strict=True))
    rows = [
        (position, text(value), text(predictions[position]))
        for position, value in zip(truth[0].tolist(), truth[1], strict=True)
        if position in predictions
    ]
    rows = [row for row in rows if row[1] is not None and row[2] is not None]
    classes = tuple(sorted({str(label) for row in rows for label in row[1:]}))
    numbers = {label: number for number, label in enumerate(classes)}
    table = np.array([(row[0], numbers[str(row[1])], numbers[str(row[2])]) for row in rows], dtype=np.int64)
    table = table.reshape(-1, 3)
    return LabelPairs(table[:, 0], table[:, 1], table[:, 2], classes)


def accuracy(pairs: LabelPairs) -> Ratio:
    """Return the proportion of samples with equal labels."""
    return Ratio.mean((pairs.truth == pairs.predicted).astype(float), RIGHT_OR_WRONG)


def class_ratio(pairs: LabelPairs, label: str, kind: str) -> Ratio | NoInterval:
    """Return precision, recall or F1 of one class: a ratio over the samples in its denominator."""
    if label not in pairs.classes:
        return NoInterval(f"no sample has the label {label!r}")
    number = pairs.classes.index(label)
    true, predicted = pairs.truth == number, pairs.predicted == number
    hits = (true & predicted).astype(float)
    denominators = {"precision": predicted, "recall": true, "f1_score": true | predicted}
    if kind not in denominators:
        return NoInterval(f"how {kind!r} is computed is unknown")
    if not denominators[kind].any():
        return UNDEFINED
    counted = denominators[kind].astype(float)
    return Ratio(hits, counted, transformed=kind == "f1_score", scale=RIGHT_OR_WRONG)


def macro_average(pairs: LabelPairs, kind: str) -> Smooth | NoInterval:
    """Return the mean of a ratio over the classes. An undefined ratio counts as 0."""
    count = len(pairs.classes)
    if count > MOST_CLASSES:
        return NoInterval(f"{count} classes are too many for the interval of their average")
    kinds, index = np.unique(pairs.truth * count + pairs.predicted, return_inverse=True)
    truth, predicted = kinds // count, kinds % count
    table = np.zeros((len(kinds), 3 * count))
    rows = np.arange(len(kinds))
    table[rows[truth == predicted], truth[truth == predicted]] = 1
    table[rows, count + truth] = 1
    table[rows, 2 * count + predicted] = 1

    def function(sums: Numbers) -> Numbers:
        hits, true, called = sums[:, :count], sums[:, count : 2 * count], sums[:, 2 * count :]
        top, bottom = {
            "precision": (hits, called),
            "recall": (hits, true),
            "f1_score": (2 * hits, true + called),
        }[kind]
        return np.asarray(np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1), 0.0).mean(axis=1))

    return Smooth(table, index.astype(np.int64), function, (0.0, 1.0), FEWEST_FOR_AVERAGES)
