"""Comparison of two results of a task, metric by metric, on their common samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.metrics.names import MetricIdentity, metric_labels
from aigo_bridge.text.json_text import json_text
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.circumstances import Divergence, divergences
from aigo_stats.comparison.columns import USAGE, ResultColumns
from aigo_stats.comparison.estimates import declared_scale, estimate_json
from aigo_stats.comparison.numbers import Quantity, identity_of, quantities
from aigo_stats.comparison.pairing import Pairing, pair
from aigo_stats.statistics.agreement import cohens_kappa, confusion
from aigo_stats.statistics.intervals import NoInterval, Numbers
from aigo_stats.statistics.multiplicity import holm
from aigo_stats.statistics.paired_differences import PairedDifference, linearised, of_scores, right_or_wrong
from aigo_stats.statistics.quantiles import LEVEL
from aigo_stats.statistics.ratios import Ratio, f1_of
from aigo_stats.statistics.smooth import Smooth

MOST_PARTS = 50
"""Maximum number of values in a column used for a breakdown."""


@dataclass(frozen=True)
class Flips:
    """Samples that changed between right and wrong, as pairs of indices."""

    lost: NDArray[np.int64]
    """Rows of two indices: right in the first result, wrong in the second."""
    gained: NDArray[np.int64]
    """Rows of two indices: wrong in the first result, right in the second."""
    agreement: float
    """Proportion of pairs with the same verdict."""
    kappa: float | None
    """Cohen's kappa, the agreement beyond chance; `None` if all verdicts are equal."""
    right: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """Rows of two indices: right in both results."""
    wrong: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """Rows of two indices: wrong in both results."""


@dataclass(frozen=True)
class MetricComparison:
    """One metric in both results."""

    identity: MetricIdentity
    values: tuple[float | None, float | None]
    """Values in the two results over all their samples."""
    paired_values: tuple[float, float] | None
    """Values over the common samples only."""
    difference: PairedDifference | NoInterval
    num_unpaired: int
    """Number of sample pairs with only one sample in its metric."""
    flips: Flips | None = None
    adjusted_p: float | None = None
    """P-value with Holm's correction over all metrics of all compared tasks."""
    parts: tuple[tuple[Any, PairedDifference], ...] = ()
    """Difference on the samples with each value of the breakdown column."""
    part_values: tuple[tuple[float, float], ...] = ()
    """Values of the metric in both results, for each part of the breakdown."""
    label: str = ""
    """Display name, unique in the comparison."""
    scale: tuple[float, float] | None = None
    """Lowest and highest value declared by both results; `None` if not declared or different."""

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.identity.name

    @property
    def scorer(self) -> str | None:
        """Key of the scorer."""
        return self.identity.scorer

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            **self.identity.to_json(),
            "label": self.label,
            "base": self.values[0],
            "new": self.values[1],
            "paired": None if self.paired_values is None else list(self.paired_values),
            **difference_json(self.difference),
            "p_value_holm": self.adjusted_p,
            "unpaired": self.num_unpaired,
            "flips": None
            if self.flips is None
            else {
                "right_to_wrong": len(self.flips.lost),
                "wrong_to_right": len(self.flips.gained),
                "agreement": self.flips.agreement,
                "kappa": self.flips.kappa,
            },
            "breakdown": [
                {"value": value, "base": numbers[0], "new": numbers[1], **difference_json(part)}
                for (value, part), numbers in zip(self.parts, self.part_values, strict=True)
            ],
        }


def difference_json(difference: PairedDifference | NoInterval) -> dict[str, Any]:
    """Return a JSON-serializable dictionary with the difference, or the reason why it is missing."""
    if isinstance(difference, NoInterval):
        return {"difference": None, **estimate_json(difference), "p_value": None, "test": None, "pairs": 0}
    return {
        "difference": difference.value,
        **estimate_json(difference.estimate),
        "p_value": difference.p_value,
        "test": difference.test,
        "effect": difference.effect,
        "effect_name": difference.effect_name,
        "pairs": difference.num_pairs,
    }


@dataclass(frozen=True)
class Comparison:
    """Comparison of two results."""

    base: ResultColumns
    new: ResultColumns
    pairing: Pairing
    divergences: tuple[Divergence, ...]
    metrics: tuple[MetricComparison, ...]
    usage: tuple[tuple[str, PairedDifference], ...]
    """`total_tokens` and `total_time` of each sample, if both results contain them."""
    level: float = LEVEL
    """Confidence level of the intervals."""
    by: str | None = None
    """Column of the breakdown."""


def compare(
    base: ResultColumns,
    new: ResultColumns,
    *,
    by_id: bool = False,
    cluster: str | None = None,
    by: str | None = None,
    level: float = LEVEL,
) -> Comparison:
    """Compare two results. P-values are corrected over the metrics of this comparison.

    Args:
        base: first result.
        new: second result.
        by_id: whether to pair samples by ID only, even if their rows differ.
        cluster: column that groups samples of the first result by value.
        by: column for a breakdown, read with the first result.
        level: confidence level.

    Raises:
        UsageError: the breakdown column has too many values.
    """
    pairing = pair(base, new, by_id=by_id)
    groups = base.groups(cluster)
    comparisons = [
        _metric(*pair_of_numbers, base, new, pairing, groups, by, level)
        for pair_of_numbers in _partners(quantities(base), quantities(new))
    ]
    usage = [
        (name, of_scores(*both, level=level))
        for name in USAGE
        if len((both := _both(base.usage[name], new.usage[name], pairing))[0]) > 1
    ]
    metrics = adjusted([_labelled(comparisons)])[0]
    return Comparison(base, new, pairing, tuple(divergences(base, new)), metrics, tuple(usage), level, by)


def _partners(
    base: Sequence[Quantity], new: Sequence[Quantity]
) -> Iterator[tuple[Quantity | None, Quantity | None]]:
    """Yield the paired metrics of both results. Only metrics with the same score, metric and reducer are
    paired.
    """
    partners = {_identity_key(quantity): quantity for quantity in new}
    for quantity in base:
        yield quantity, partners.pop(_identity_key(quantity), None)
    for quantity in partners.values():
        yield None, quantity


def _identity_key(quantity: Quantity) -> tuple[str | None, ...]:
    identity = identity_of(quantity)
    return (*quantity.key, identity.score, identity.reducer, identity.group)


def _labelled(comparisons: Sequence[MetricComparison]) -> tuple[MetricComparison, ...]:
    labels = metric_labels([comparison.identity for comparison in comparisons])
    return tuple(
        replace(comparison, label=label) for comparison, label in zip(comparisons, labels, strict=True)
    )


def adjusted_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with p-values corrected over all of them."""
    corrected = adjusted([comparison.metrics for comparison in comparisons])
    return [replace(one, metrics=metrics) for one, metrics in zip(comparisons, corrected, strict=True)]


def adjusted(tasks: Sequence[tuple[MetricComparison, ...]]) -> list[tuple[MetricComparison, ...]]:
    """Return the metrics of several tasks with p-values corrected over all of them."""
    p_values = [
        metric.difference.p_value if isinstance(metric.difference, PairedDifference) else None
        for task in tasks
        for metric in task
    ]
    corrected = iter(holm(p_values))
    return [tuple(replace(metric, adjusted_p=next(corrected)) for metric in task) for task in tasks]


def _one_sided(quantity: Quantity, missing: str) -> MetricComparison:
    values = (None, quantity.value) if missing == "base" else (quantity.value, None)
    reason = NoInterval(f"{missing} does not have this metric")
    return MetricComparison(identity_of(quantity), values, None, reason, 0)


def _both(base: Numbers, new: Numbers, pairing: Pairing) -> tuple[Numbers, Numbers]:
    pairs = base[pairing.base], new[pairing.new]
    finite = np.isfinite(pairs[0]) & np.isfinite(pairs[1])
    return pairs[0][finite], pairs[1][finite]


def _metric(
    base: Quantity | None,
    new: Quantity | None,
    base_columns: ResultColumns,
    new_columns: ResultColumns,
    pairing: Pairing,
    groups: NDArray[np.int64] | None,
    by: str | None,
    level: float,
) -> MetricComparison:
    if base is None or new is None:
        return _one_sided(base, "new") if base is not None else _one_sided(_known(new), "base")
    rows = (_rows(base, len(base_columns))[pairing.base], _rows(new, len(new_columns))[pairing.new])
    scored = (rows[0] >= 0) & (rows[1] >= 0)
    known = not any(isinstance(side.content, NoInterval) for side in (base, new))
    unpaired = int(((rows[0] >= 0) != (rows[1] >= 0)).sum()) if known else 0
    pairs = (rows[0][scored], rows[1][scored])
    numbers = None if groups is None else np.unique(groups[pairing.base][scored], return_inverse=True)[1]
    difference, values = _difference(base, new, pairs, numbers, level)
    positions = np.stack([pairing.base[scored], pairing.new[scored]], axis=1)
    parts: list[tuple[tuple[Any, PairedDifference], tuple[float, float]]] = []
    if by is not None and isinstance(difference, PairedDifference):
        labels = [base_columns.values[by][position] for position in positions[:, 0].tolist()]
        parts = _parts(base, new, pairs, labels, level)
    return MetricComparison(
        identity_of(base),
        (base.value, new.value),
        values,
        difference,
        unpaired,
        _flips(base, new, pairs, positions),
        None,
        tuple(part for part, _ in parts),
        tuple(numbers for _, numbers in parts),
        scale=declared_scale(base) if declared_scale(base) == declared_scale(new) else None,
    )


def _known(quantity: Quantity | None) -> Quantity:
    assert quantity is not None
    return quantity


def _rows(quantity: Quantity, count: int) -> NDArray[np.int64]:
    """Return the row of each sample in the metric; -1 for samples that are not in it."""
    rows = np.full(count, -1, dtype=np.int64)
    rows[quantity.positions] = np.arange(len(quantity.positions))
    return rows


_Rows = tuple[NDArray[np.int64], NDArray[np.int64]]


def _difference(
    base: Quantity, new: Quantity, pairs: _Rows, groups: NDArray[np.int64] | None, level: float
) -> tuple[PairedDifference | NoInterval, tuple[float, float] | None]:
    for content in (base.content, new.content):
        if isinstance(content, NoInterval):
            return content, None
    if not len(pairs[0]):
        return NoInterval("no sample is in this metric of both results"), None
    if _is_share(base) and _is_share(new) and groups is None:
        scores = _numerators(base, pairs[0]), _numerators(new, pairs[1])
        return right_or_wrong(*scores, level), (float(scores[0].mean()), float(scores[1].mean()))
    if _is_mean(base) and _is_mean(new):
        scores = _numerators(base, pairs[0]), _numerators(new, pairs[1])
        return of_scores(*scores, groups, level), (float(scores[0].mean()), float(scores[1].mean()))
    base_part, new_part = _influences(base, pairs[0]), _influences(new, pairs[1])
    if isinstance(base_part, NoInterval):
        return base_part, None
    if isinstance(new_part, NoInterval):
        return new_part, None
    values = base_part[0], new_part[0]
    return linearised(values[1] - values[0], new_part[1] - base_part[1], groups, level), values


def _is_mean(quantity: Quantity) -> bool:
    return isinstance(quantity.content, Ratio) and quantity.content.is_mean


def _is_share(quantity: Quantity) -> bool:
    return _is_mean(quantity) and isinstance(quantity.content, Ratio) and quantity.content.is_share


def _numerators(quantity: Quantity, rows: NDArray[np.int64]) -> Numbers:
    assert isinstance(quantity.content, Ratio)
    return quantity.content.numerator[rows]


def _influences(quantity: Quantity, rows: NDArray[np.int64]) -> tuple[float, Numbers] | NoInterval:
    """Return the metric over some samples, and the contribution of each sample."""
    content = quantity.content
    if isinstance(content, Smooth):
        part = replace(content, kinds=content.kinds[rows])
        if len(rows) < content.fewest:
            return NoInterval(f"{len(rows)} pairs are too few for this metric; {content.fewest} are needed")
        return part.value, part.pseudo_values() - part.value
    assert isinstance(content, Ratio)
    if not content.denominator[rows].sum():
        return NoInterval("the denominator is zero on the pairs")
    return influences(content, rows)


def influences(ratio: Ratio, rows: NDArray[np.int64]) -> tuple[float, Numbers]:
    """Return a ratio over some samples, and the contribution of each sample."""
    top, bottom = ratio.numerator[rows], ratio.denominator[rows]
    value = float(top.sum() / bottom.sum())
    parts = (top - value * bottom) / bottom.mean()
    if not ratio.transformed:
        return value, parts
    return f1_of(value), parts * 2 / (1 + value) ** 2


def _flips(base: Quantity, new: Quantity, pairs: _Rows, positions: NDArray[np.int64]) -> Flips | None:
    if not (_is_share(base) and _is_share(new)) or not len(positions):
        return None
    right = _numerators(base, pairs[0]) == 1, _numerators(new, pairs[1]) == 1
    verdicts = confusion(right[0].astype(np.int64), right[1].astype(np.int64), 2)
    lost, gained = positions[right[0] & ~right[1]], positions[~right[0] & right[1]]
    both, neither = positions[right[0] & right[1]], positions[~right[0] & ~right[1]]
    agreement = float((right[0] == right[1]).mean())
    return Flips(lost, gained, agreement, cohens_kappa(verdicts), both, neither)


def _parts(
    base: Quantity, new: Quantity, pairs: _Rows, labels: list[Any], level: float
) -> list[tuple[tuple[Any, PairedDifference], tuple[float, float]]]:
    """Return each value of a column with the difference and both metrics on its samples."""
    texts = np.array([label if isinstance(label, str) else json_text(label) for label in labels])
    different = np.unique(texts).tolist()
    if len(different) > MOST_PARTS:
        raise UsageError(
            f"the column of the breakdown has {plural(len(different), 'value')}, more than the"
            f" {MOST_PARTS} that can "
            "be shown; use --cluster for groups of samples",
            code=Code.INCOMPARABLE_RESULTS,
        )
    parts: list[tuple[tuple[Any, PairedDifference], tuple[float, float]]] = []
    for text in different:
        rows = texts == text
        difference, values = _difference(base, new, (pairs[0][rows], pairs[1][rows]), None, level)
        if isinstance(difference, PairedDifference) and values is not None:
            parts.append(((text, difference), values))
    return parts
