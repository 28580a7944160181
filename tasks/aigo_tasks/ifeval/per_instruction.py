"""Share of all instructions that were followed: every instruction counts the same, however many its prompt has."""

from __future__ import annotations

from typing import Any


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    total = sum(score.values["num_instructions"] for score in scores)
    if total == 0:
        return {}
    return {
        f"instruction_level_{name}": sum(score.values[f"num_followed_{name}"] for score in scores) / total
        for name in ("strict", "loose")
    }
