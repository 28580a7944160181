"""Ratings on the benchmark's scale from 1 to 10: of all answers, and of each turn."""

from __future__ import annotations

from typing import Any


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    ratings = [score.metadata["raw_score"] for score in scores]
    return {"mt_bench_score": sum(ratings) / len(ratings)} if ratings else {}
