"""Formulas of the metrics. Source: AI GO's metric pages. Docstrings here document decisions on cases that the
pages do not cover.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import (
    MetricResult,
    MetricType,
    Scores,
    as_number,
    mean,
    no_value,
    present_values,
    ratio,
    std_dev,
    unknown_score,
)
from aigo_bridge.spec import metrics as spec
from aigo_bridge.spec.metric import FieldMetric, NamedMetric
from aigo_bridge.text.summaries import short

_SHOWN = 10

Formula = Callable[[Sequence[float | int]], float | int]


def over_field(metric: FieldMetric, scores: Scores, formula: Formula) -> MetricResult:
    """Apply a formula to the numeric values of the metric's score."""
    present = present_values(metric.field, scores)
    if not present:
        return no_value(metric.field, scores)
    numbers = [as_number(value) for value in present]
    skipped = len(scores) - len(present)
    usable = [number for number in numbers if number is not None]
    if len(usable) < len(numbers):
        wrong = next(value for value in present if as_number(value) is None)
        return MetricResult(
            {}, 0, skipped, f"{metric.field!r} has the value {short(wrong)}, expected a finite number"
        )
    return MetricResult({metric.value_name: formula(usable)}, len(usable), skipped)


def frequency(metric: spec.FrequencyMetric, scores: Scores) -> MetricResult:
    """Compute the proportion of each text among the values."""
    present = present_values(metric.field, scores)
    if not present:
        return no_value(metric.field, scores)
    counts = Counter(str(value) for value in present)
    values = {f"{metric.field}_{text}": count / len(present) for text, count in counts.items()}
    return MetricResult(values, len(present), len(scores) - len(present))


def weighted_average(metric: spec.WeightedAverageMetric, scores: Scores) -> MetricResult:
    """Compute the mean weight of the labels."""
    present = present_values(metric.field, scores)
    if not present:
        return no_value(metric.field, scores)
    assert isinstance(metric.weights, Mapping)  # Weights are a template only until the config is bound.
    skipped = len(scores) - len(present)
    unknown = sorted({str(value) for value in present} - set(metric.weights))
    if unknown:
        shown = ", ".join(map(short, unknown[:_SHOWN]))
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        problem = f"{metric.field!r} has labels without a weight: {shown}{more}"
        return MetricResult({}, 0, skipped, problem)
    weights = [metric.weights[str(value)] for value in present]
    if not all(map(math.isfinite, weights)):
        return MetricResult({}, 0, skipped, "a weight is not a finite number")
    return MetricResult({metric.value_name: mean(weights)}, len(present), skipped)


def from_counts(metric: NamedMetric, scores: Scores, formula: Callable[..., float | None]) -> MetricResult:
    """Compute a micro average: sum the counts over the samples that have all of them, then divide.

    The formula takes the sums in the order of the metric's fields.
    """
    fields = metric.scores
    rows = [[values.get(field) for field in fields] for values in scores]
    complete = [row for row in rows if not any(is_missing(value) for value in row)]
    skipped = len(rows) - len(complete)
    if not complete:
        missing = next((field for field in fields if not present_values(field, scores)), fields[0])
        return no_value(missing, scores)
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
        problem = "all counts are zero; 0.0 stands for an undefined ratio"
        return MetricResult({metric.value_name: 0.0}, len(complete), skipped, problem)
    return MetricResult({metric.value_name: value}, len(complete), skipped)


Pairs = Counter[tuple[str, str]]
"""(true label, predicted label) → number of samples."""

_RATIOS = ("precision", "recall", "f1_score")


def binary_classification(metric: spec.BinaryClassificationMetric, scores: Scores) -> MetricResult:
    """Compute `accuracy`, `precision`, `recall` and `f1_score` of the positive answer.

    A sample is skipped and counted if one of its labels is missing or is not one of the two answers. Numbers
    and booleans match every usual spelling: `True` matches `True` and `true`; 1.0 matches `1.0` and `1`.
    """
    answers = (metric.positive_answer, metric.negative_answer)
    pairs: Pairs = Counter()
    for values in scores:
        truth = answer_of(values.get(metric.field_gt), answers)
        predicted = answer_of(values.get(metric.field_pred), answers)
        if truth is not None and predicted is not None:
            pairs[truth, predicted] += 1
    if not pairs:
        reason = f"no sample has {answers[0]!r} or {answers[1]!r} in both fields"
        return MetricResult(
            {},
            0,
            len(scores),
            unknown_score(metric.field_gt, scores) or unknown_score(metric.field_pred, scores) or reason,
        )
    used = pairs.total()
    ((ratios, undefined),) = _ratios(pairs, [metric.positive_answer])
    return MetricResult(
        {"accuracy": _accuracy(pairs), **ratios},
        used,
        len(scores) - used,
        _undefined_note({metric.positive_answer: undefined}),
        {"confusion_matrix": _matrix(pairs, answers)},
    )


def multiclass_classification(metric: spec.MulticlassClassificationMetric, scores: Scores) -> MetricResult:
    """Compute `accuracy`; `{class}_precision`, `{class}_recall`, `{class}_f1_score` per class;
    `macro_precision`, `macro_recall`, `macro_f1_score`.

    Classes are the texts of all labels in either field. Numbers lose a trailing `.0`, so that label 1 from
    one source and 1.0 from another are one class. A sample is skipped if one of its two labels is missing.
    """
    pairs: Pairs = Counter()
    for sample in scores:
        truth, predicted = sample.get(metric.field_gt), sample.get(metric.field_pred)
        if not is_missing(truth) and not is_missing(predicted):
            pairs[label_text(truth), label_text(predicted)] += 1
    if not pairs:
        reason = f"no sample has a value for both {metric.field_gt!r} and {metric.field_pred!r}"
        return MetricResult(
            {},
            0,
            len(scores),
            unknown_score(metric.field_gt, scores) or unknown_score(metric.field_pred, scores) or reason,
        )
    used = pairs.total()
    classes = sorted({label for pair in pairs for label in pair})
    values: dict[str, int | float] = {"accuracy": _accuracy(pairs)}
    undefined: dict[str, list[str]] = {}
    by_ratio: dict[str, list[float]] = {name: [] for name in _RATIOS}
    for label, (ratios, missing) in zip(classes, _ratios(pairs, classes), strict=True):
        undefined[label] = missing
        for name, value in ratios.items():
            values[f"{label}_{name}"] = value
            by_ratio[name].append(value)
    problem = _undefined_note(undefined)
    if "macro" in classes:
        note = "the averages over classes are left out, as a class is called 'macro' like them"
        problem = f"{problem}; {note}" if problem else note
    else:
        values |= {f"macro_{name}": mean(ratios) for name, ratios in by_ratio.items()}
    return MetricResult(
        values, used, len(scores) - used, problem, {"confusion_matrix": _matrix(pairs, classes)}
    )


def label_text(value: object) -> str:
    """Return the text of a label: `1` for 1.0, otherwise Python's text."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def answer_of(value: object, answers: tuple[str, str]) -> str | None:
    """Return the answer that a label matches in any usual spelling; `None` if it matches neither."""
    if is_missing(value):
        return None
    spellings = [str(value), label_text(value)]
    if isinstance(value, bool):
        spellings.append(str(value).lower())
    return next((text for text in spellings if text in answers), None)


def _accuracy(pairs: Pairs) -> float:
    return sum(count for (truth, predicted), count in pairs.items() if truth == predicted) / pairs.total()


def _ratios(pairs: Pairs, classes: Iterable[str]) -> list[tuple[dict[str, float], list[str]]]:
    """Return the ratios of each class, and the names of ratios without a denominator."""
    true: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    for (truth, prediction), count in pairs.items():
        true[truth] += count
        predicted[prediction] += count
    result = []
    for label in classes:
        hits = pairs[label, label]
        ratios = {
            "precision": ratio(hits, predicted[label]),
            "recall": ratio(hits, true[label]),
            "f1_score": ratio(2 * hits, predicted[label] + true[label]),
        }
        undefined = [name for name, value in ratios.items() if value is None]
        result.append(({name: value or 0.0 for name, value in ratios.items()}, undefined))
    return result


def _undefined_note(undefined: dict[str, list[str]]) -> str | None:
    notes = [f"{name} of {short(label)}" for label, names in undefined.items() for name in names]
    if not notes:
        return None
    more = f" and {len(notes) - _SHOWN} more" if len(notes) > _SHOWN else ""
    return f"0.0 replaces values without a denominator: {', '.join(notes[:_SHOWN])}{more}"


def _matrix(pairs: Pairs, classes: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return true label → predicted label → number of samples. Zeros are left out."""
    matrix: dict[str, dict[str, int]] = {label: {} for label in classes}
    for (truth, predicted), count in sorted(pairs.items()):
        matrix[truth][predicted] = count
    return matrix


MEAN = MetricType(spec.MeanMetric, lambda metric, scores, _: over_field(metric, scores, mean))
MIN = MetricType(spec.MinMetric, lambda metric, scores, _: over_field(metric, scores, min))
MAX = MetricType(spec.MaxMetric, lambda metric, scores, _: over_field(metric, scores, max))
STD_DEV = MetricType(spec.StdDevMetric, lambda metric, scores, _: over_field(metric, scores, std_dev))
FREQUENCY = MetricType(spec.FrequencyMetric, lambda metric, scores, _: frequency(metric, scores))
WEIGHTED_AVERAGE = MetricType(
    spec.WeightedAverageMetric, lambda metric, scores, _: weighted_average(metric, scores)
)
PRECISION = MetricType(
    spec.PrecisionMetric,
    lambda metric, scores, _: from_counts(metric, scores, lambda tp, fp: ratio(tp, tp + fp)),
)
RECALL = MetricType(
    spec.RecallMetric,
    lambda metric, scores, _: from_counts(metric, scores, lambda tp, fn: ratio(tp, tp + fn)),
)
F1_SCORE = MetricType(
    spec.F1ScoreMetric,
    lambda metric, scores, _: from_counts(metric, scores, lambda tp, fp, fn: ratio(2 * tp, 2 * tp + fp + fn)),
)
BINARY_CLASSIFICATION = MetricType(
    spec.BinaryClassificationMetric, lambda metric, scores, _: binary_classification(metric, scores)
)
MULTICLASS_CLASSIFICATION = MetricType(
    spec.MulticlassClassificationMetric, lambda metric, scores, _: multiclass_classification(metric, scores)
)
