"""Ranking of several results of a task: all pairwise comparisons, and the possible ranks of each result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from aigo_bridge.metrics.names import MetricIdentity, metric_labels
from aigo_bridge.text.numbers import Scale
from aigo_stats.comparison.comparing import Comparison, MetricComparison, adjusted
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.statistics.multiplicity import rank_bounds
from aigo_stats.statistics.paired_differences import PairedDifference

ALPHA = 0.05
"""Maximum corrected p-value at which one result counts as better than another."""


@dataclass(frozen=True)
class Ranking:
    """One metric of all results. Higher values are assumed to be better."""

    identity: MetricIdentity
    label: str
    """Display name, unique among the rankings."""
    values: Mapping[str, float | None]
    """Metric of each result over all its samples."""
    ranks: Mapping[str, tuple[int, int]]
    """Best and worst possible rank of each result, with 95 % joint confidence."""
    cells: Mapping[tuple[str, str], MetricComparison]
    """Second minus first for each pair of results. P-values are corrected over all pairs of this metric."""
    reason: str | None = None
    """Reason for missing ranks; `None` if the results are ranked."""

    @property
    def scale(self) -> Scale:
        """Declared scale of the metric; `None`: not declared, or not the same in every result."""
        scales = {cell.scale for cell in self.cells.values()}
        return scales.pop() if len(scales) == 1 else None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            **self.identity.to_json(),
            "label": self.label,
            "reason": self.reason,
            "values": dict(self.values),
            "ranks": {name: list(bounds) for name, bounds in self.ranks.items()},
            "pairs": [
                {"base_result": pair[0], "new_result": pair[1], **cell.to_json()}
                for pair, cell in self.cells.items()
            ],
        }


def rankings(names: Sequence[str], comparisons: Mapping[tuple[str, str], Comparison]) -> list[Ranking]:
    """Return the rankings of several results. A metric that is not compared in every pair has a reason
    instead of ranks.

    Args:
        names: names of the results.
        comparisons: comparison of every pair of names, in order.
    """
    by_identity: dict[MetricIdentity, dict[tuple[str, str], MetricComparison]] = {}
    for pair in combinations(names, 2):
        for metric in comparisons[pair].metrics:
            by_identity.setdefault(metric.identity, {})[pair] = metric
    labels = metric_labels(list(by_identity))
    return [
        _ranking(names, identity, label, cells)
        for (identity, cells), label in zip(by_identity.items(), labels, strict=True)
    ]


def _ranking(
    names: Sequence[str],
    identity: MetricIdentity,
    label: str,
    cells: Mapping[tuple[str, str], MetricComparison],
) -> Ranking:
    values: dict[str, float | None] = dict.fromkeys(names)
    for (base, new), cell in cells.items():
        values |= {
            name: value
            for name, value in ((base, cell.values[0]), (new, cell.values[1]))
            if value is not None
        }
    reason = _reason(names, cells)
    if reason is not None:
        return Ranking(identity, label, values, {}, {}, reason)
    cells = dict(zip(cells, adjusted([tuple(cells.values())])[0], strict=True))
    better: dict[tuple[str, str], bool] = {}
    for (base, new), cell in cells.items():
        assert isinstance(cell.difference, PairedDifference)
        sure = cell.adjusted_p is not None and cell.adjusted_p <= ALPHA
        better[new, base] = sure and cell.difference.value > 0
        better[base, new] = sure and cell.difference.value < 0
    return Ranking(identity, label, values, rank_bounds(names, better), cells)


def _reason(names: Sequence[str], cells: Mapping[tuple[str, str], MetricComparison]) -> str | None:
    """Return the reason for missing ranks: a pair of results that is not compared."""
    for base, new in combinations(names, 2):
        cell = cells.get((base, new))
        if cell is None:
            return f"{base} and {new} do not have this metric"
        if isinstance(cell.difference, NoInterval):
            return f"{base} and {new}: {cell.difference.reason}"
    return None
