"""The official script's breakdown: questions with an answer, and without."""

from __future__ import annotations

from typing import Any


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, answerable in (("has_answer", True), ("no_answer", False)):
        group = [score.values for score in scores if bool(score.values["is_answerable"]) is answerable]
        if group:
            values[f"{name}_exact"] = sum(each["exact"] for each in group) / len(group)
            values[f"{name}_f1"] = sum(each["f1"] for each in group) / len(group)
    return values
