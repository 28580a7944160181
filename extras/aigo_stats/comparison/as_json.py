"""JSON form of a comparison, including changed samples."""

from __future__ import annotations

from typing import Any

from aigo_stats.comparison.comparing import Comparison, difference_json
from aigo_stats.comparison.flipped_samples import flipped_samples


def comparison_json(comparison: Comparison, num_flips: int) -> dict[str, Any]:
    """Return a JSON-serializable dictionary.

    Args:
        comparison: comparison of two results with corrected p-values.
        num_flips: maximum number of changed samples to list for each metric.
    """
    return {
        "task": comparison.base.frame.specification.task.key,
        "base": comparison.base.label,
        "new": comparison.new.label,
        "samples": {"base": comparison.base.counts.to_json(), "new": comparison.new.counts.to_json()},
        "differs": [divergence.to_json() for divergence in comparison.divergences],
        "pairs": comparison.pairing.to_json(),
        "metrics": [
            {
                **metric.to_json(),
                "flipped": []
                if metric.flips is None
                else [sample.to_json() for sample in flipped_samples(comparison, metric.flips, num_flips)],
            }
            for metric in comparison.metrics
        ],
        "usage": {name: difference_json(difference) for name, difference in comparison.usage},
    }
