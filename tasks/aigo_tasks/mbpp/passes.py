"""The unbiased pass@k of Chen et al. (2021): of n trials c passed, 1 - C(n - c, k) / C(n, k); the mean over the problems.

Of each problem those of its trials count that were scored, however many the run had. With fewer than k of one problem there is no value.
"""

from __future__ import annotations

from math import comb
from typing import Any


def pass_at(k: int, score: Any) -> float:
    """Of one problem: the mean of its trials' scores is the share that passed."""
    num_trials = (score.metadata or {}).get("num_trials", 1)
    num_passed = round(score.values["code_exec"] * num_trials)
    return 1 - comb(num_trials - num_passed, k) / comb(num_trials, k) if num_trials >= k else float("nan")


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    return {f"pass@{k}": sum(pass_at(k, score) for score in scores) / len(scores) for k in (2, 5) if scores}
