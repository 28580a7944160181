"""Accuracy of each category, and their unweighted mean."""

from __future__ import annotations

from typing import Any


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for score in scores:
        groups.setdefault(score.values["category"], []).append(float(score.values["is_correct"]))
    means = {name: sum(values) / len(values) for name, values in sorted(groups.items())}
    if not means:
        return {}
    return {**{f"accuracy_{name}": mean for name, mean in means.items()}, "macro_accuracy": sum(means.values()) / len(means)}
