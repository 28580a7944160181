"""Specifications of AI GO's metrics: numbers computed from all scores of a scorer."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import OneOf, Path, Templated, has_marker, not_finite
from aigo_bridge.spec.metric import METRICS, FieldMetric, MetricSpec, NamedMetric


class MeanMetric(FieldMetric):
    """Arithmetic mean; booleans count as 0 and 1."""

    type: Literal["mean"]


class MinMetric(FieldMetric):
    """Smallest value."""

    type: Literal["min"]


class MaxMetric(FieldMetric):
    """Largest value."""

    type: Literal["max"]


class StdDevMetric(FieldMetric):
    """Standard deviation over samples."""

    type: Literal["std_dev"]


class FrequencyMetric(MetricSpec):
    """Proportion of each distinct value; one result `{field}_{value}` per value, adding up to 1."""

    score_fields = ("field",)

    type: Literal["frequency"]
    field: str
    """Score to read."""


class WeightedAverageMetric(FieldMetric):
    """Mean of the weights of the assigned labels."""

    type: Literal["weighted_average"]
    weights: Templated[Annotated[dict[str, float], Field(min_length=1)]]
    """Weight of each label; a label without one is an error."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Yield weights that are not finite numbers."""
        weights = document.get("weights")
        for label, weight in weights.items() if isinstance(weights, dict) else ():
            yield from not_finite(weight, (*path, "weights", label))


class PrecisionMetric(NamedMetric):
    """TP / (TP + FP), from counts per sample."""

    score_fields = ("num_true_positives_field", "num_false_positives_field")

    type: Literal["precision"]
    num_true_positives_field: str
    """Score that counts true positives."""
    num_false_positives_field: str
    """Score that counts false positives."""


class RecallMetric(NamedMetric):
    """TP / (TP + FN), from counts per sample."""

    score_fields = ("num_true_positives_field", "num_false_negatives_field")

    type: Literal["recall"]
    num_true_positives_field: str
    """Score that counts true positives."""
    num_false_negatives_field: str
    """Score that counts false negatives."""


class F1ScoreMetric(NamedMetric):
    """2 TP / (2 TP + FP + FN), from counts per sample."""

    score_fields = ("num_true_positives_field", "num_false_positives_field", "num_false_negatives_field")

    type: Literal["f1_score"]
    num_true_positives_field: str
    """Score that counts true positives."""
    num_false_positives_field: str
    """Score that counts false positives."""
    num_false_negatives_field: str
    """Score that counts false negatives."""


class BinaryClassificationMetric(MetricSpec):
    """Accuracy, precision, recall and F1 over two labels."""

    score_fields = ("field_gt", "field_pred")

    type: Literal["binary-classification"]
    field_gt: str
    """Score that contains the true label."""
    field_pred: str
    """Score that contains the predicted label."""
    positive_answer: str
    """Positive label."""
    negative_answer: str
    """Negative label; samples with another label are ignored."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Yield an issue if both answers are equal."""
        positive, negative = document.get("positive_answer"), document.get("negative_answer")
        if isinstance(positive, str) and positive == negative and not has_marker(positive):
            message = "'positive_answer' and 'negative_answer' are the same"
            yield Issue(message, path=(*path, "negative_answer"), code=Code.CONTRADICTION)


class MulticlassClassificationMetric(MetricSpec):
    """Accuracy, and precision and recall per class."""

    score_fields = ("field_gt", "field_pred")

    type: Literal["multiclass-classification"]
    field_gt: str
    """Score that contains the true label."""
    field_pred: str
    """Score that contains the predicted label."""


class PythonMetric(MetricSpec):
    """Metrics computed by task code."""

    snippet = "compute_metrics_snippet"

    type: Literal["python"]
    compute_metrics_snippet: str
    """Defines `compute_metrics(scores: list[SampleScore]) -> dict[str, float]`, sync or async."""


METRICS |= {
    spec.type_name(): spec
    for spec in (
        MeanMetric,
        MinMetric,
        MaxMetric,
        StdDevMetric,
        FrequencyMetric,
        WeightedAverageMetric,
        PrecisionMetric,
        RecallMetric,
        F1ScoreMetric,
        BinaryClassificationMetric,
        MulticlassClassificationMetric,
        PythonMetric,
    )
}

Metric = Annotated[MetricSpec, OneOf(METRICS)]
