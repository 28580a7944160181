"""Comparison of scores with human labels of some samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.metrics.compute import label_text
from aigo_bridge.metrics.grades import graded_number, is_grade, is_missing
from aigo_stats.comparison.columns import ResultColumns
from aigo_stats.comparison.estimates import estimate_json
from aigo_stats.comparison.scales import score_scale
from aigo_stats.comparison.sources import as_floats, present
from aigo_stats.statistics.agreement import cohens_kappa, confusion, krippendorffs_alpha
from aigo_stats.statistics.intervals import FEWEST, Estimate, NoInterval, Numbers
from aigo_stats.statistics.prediction import corrected_interval, corrected_mean
from aigo_stats.statistics.quantiles import LEVEL
from aigo_stats.statistics.ratios import Scale

MOST_CLASSES = 20
"""Maximum number of different labels and scores for a confusion matrix and Cohen's kappa."""

_WORDS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Agreement:
    """Agreement between a score and the labels, on samples that have both."""

    same: float
    """Proportion of samples with equal score and label."""
    kappa: float | None
    """Cohen's kappa; `None` with too many classes or only one."""
    alpha: float | None
    """Krippendorff's alpha, with squared distances between numbers."""
    classes: tuple[str, ...]
    """Classes of scores and labels; empty if there are too many."""
    confusion: tuple[tuple[int, ...], ...]
    """Confusion matrix: a row for each label and a column for each score."""


@dataclass(frozen=True)
class JudgeQuality:
    """Comparison of one score with the labels."""

    scorer: str
    name: str
    num_labelled: int
    """Number of samples with a label and this score."""
    num_unlabelled: int
    """Number of samples with this score but without a label."""
    num_unscored: int
    """Number of samples with a label but without this score, because they failed or were excluded."""
    agreement: Agreement | NoInterval
    judged_mean: float | None
    """Mean score over all samples that have it; `None` for text."""
    labelled_mean: float | None
    """Mean label over the samples with both values."""
    corrected_mean: float | None
    """Mean score, corrected by the error that the labels show; `None` if unknown."""
    estimate: Estimate
    """Interval of the corrected mean."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        agreement = self.agreement
        described: dict[str, Any] = {"agreement": None, "why_no_agreement": None}
        if isinstance(agreement, NoInterval):
            described["why_no_agreement"] = agreement.reason
        else:
            described["agreement"] = {
                "same": agreement.same,
                "cohens_kappa": agreement.kappa,
                "krippendorffs_alpha": agreement.alpha,
                "classes": list(agreement.classes),
                "confusion": [list(row) for row in agreement.confusion],
            }
        return {
            "scorer": self.scorer,
            "name": self.name,
            "samples": {
                "labelled": self.num_labelled,
                "unlabelled": self.num_unlabelled,
                "unscored": self.num_unscored,
            },
            **described,
            "judged_mean": self.judged_mean,
            "labelled_mean": self.labelled_mean,
            "corrected_mean": self.corrected_mean,
            **estimate_json(self.estimate),
        }


def judge_quality(
    columns: ResultColumns, labels: str, *, cluster: str | None = None, level: float = LEVEL
) -> list[JudgeQuality]:
    """Compare every score of a result with the labels.

    Args:
        columns: the result.
        labels: dataset column with the labels, read with the result. A sample with an empty value is
            unlabelled.
        cluster: grouping column, as in `estimates`.
        level: confidence level.
    """
    groups = columns.groups(cluster)
    values = columns.values[labels]
    is_empty = [is_missing(value) or (isinstance(value, str) and not value.strip()) for value in values]
    has_label = ~np.array(is_empty, dtype=bool)
    return [_quality(columns, score, labels, has_label, groups, level) for score in columns.scores]


def _quality(
    columns: ResultColumns,
    score: tuple[str, str],
    labels: str,
    has_label: NDArray[np.bool_],
    groups: NDArray[np.int64] | None,
    level: float,
) -> JudgeQuality:
    positions, scores = present(columns, columns.scores[score])
    labelled = has_label[positions]
    targets = [columns.values[labels][position] for position in positions[labelled].tolist()]
    counts = (int(labelled.sum()), int((~labelled).sum()), int(has_label.sum()) - int(labelled.sum()))
    numbers, marks = _floats(scores, graded=columns.graded), _numbers(targets)
    if isinstance(numbers, NoInterval) or marks is None:
        agreement = _of_texts(targets, list(compress(scores, labelled.tolist())), marks)
        return JudgeQuality(*score, *counts, agreement, None, None, None, _TEXTS)
    of_samples = groups[positions] if groups is not None else None
    scale = score_scale(columns, *score)
    return _of_means(score, counts, labelled, numbers, marks, of_samples, level, scale)


def _of_means(
    score: tuple[str, str],
    counts: tuple[int, int, int],
    labelled: NDArray[np.bool_],
    numbers: Numbers,
    targets: Numbers,
    groups: NDArray[np.int64] | None,
    level: float,
    scale: Scale,
) -> JudgeQuality:
    if not len(targets):
        reason = NoInterval("no sample with this score has a label")
        return JudgeQuality(*score, *counts, reason, float(numbers.mean()), None, None, reason)
    judged, unlabelled = numbers[labelled], numbers[~labelled]
    mean = float(targets.mean())
    estimate: Estimate = NoInterval("every sample has a label: their mean needs no correction")
    corrected: float | None = mean
    if len(unlabelled):
        parts = None if groups is None else _split(groups, labelled)
        estimate = corrected_interval(unlabelled, judged, targets, parts, level, scale)
        corrected = None if len(targets) < FEWEST else corrected_mean(unlabelled, judged, targets, scale)
    return JudgeQuality(
        *score, *counts, _of_numbers(targets, judged), float(numbers.mean()), mean, corrected, estimate
    )


def _floats(scores: list[Any], *, graded: bool) -> Numbers | NoInterval:
    return as_floats([graded_number(score) if graded and is_grade(score) else score for score in scores])


_TEXTS = NoInterval("the mean of text labels or scores is undefined")


def _numbers(values: list[Any]) -> Numbers | None:
    """Return labels as numbers, including numbers stored as text; `None` if a label is not a number."""
    numbers = []
    for value in values:
        text = value.strip().casefold() if isinstance(value, str) else value
        try:
            number = _WORDS[text] if text in _WORDS else float(text)
        except (TypeError, ValueError):
            return None
        if not math.isfinite(number):
            return None
        numbers.append(number)
    return np.array(numbers, dtype=float)


def _split(groups: NDArray[np.int64], labelled: NDArray[np.bool_]) -> Any:
    parts = groups[~labelled], groups[labelled]
    return tuple(np.unique(part, return_inverse=True)[1].astype(np.int64) for part in parts)


def _of_numbers(labels: Numbers, scores: Numbers) -> Agreement:
    classes, numbers = np.unique(np.concatenate([labels, scores]), return_inverse=True)
    table = confusion(numbers[: len(labels)], numbers[len(labels) :], len(classes))
    few = len(classes) <= MOST_CLASSES
    return Agreement(
        float((labels == scores).mean()),
        cohens_kappa(table) if few else None,
        krippendorffs_alpha(table, classes),
        tuple(f"{value:g}" for value in classes.tolist()) if few else (),
        tuple(map(tuple, table.tolist())) if few else (),
    )


def _of_texts(labels: list[Any], scores: list[Any], numbers: Numbers | None) -> Agreement | NoInterval:
    if not labels:
        return NoInterval("no sample with this score has a label")
    for whose, values in (("labels", labels), ("scores", scores)):
        if any(isinstance(value, list | dict) for value in values):
            return NoInterval(f"the {whose} are lists: agreement is only defined for single labels")
    if numbers is not None or not any(isinstance(score, str) for score in scores):
        kinds = ("numbers", "text") if numbers is not None else ("text", "numbers")
        return NoInterval(f"the labels are {kinds[0]}, the scores {kinds[1]}: expected both of one kind")
    texts = [label_text(value).strip() for value in (*labels, *scores)]
    classes, indices = np.unique(np.array(texts), return_inverse=True)
    table = confusion(indices[: len(labels)], indices[len(labels) :], len(classes))
    few = len(classes) <= MOST_CLASSES
    return Agreement(
        float(np.trace(table)) / len(labels),
        cohens_kappa(table) if few else None,
        krippendorffs_alpha(table),
        tuple(classes.tolist()) if few else (),
        tuple(map(tuple, table.tolist())) if few else (),
    )
