"""Accuracy among attempted answers, and its harmonic mean with overall accuracy.

Source: Wei et al. (2024), section 2.3: with c, i, n correct, incorrect and not attempted answers, accuracy given attempted = c / (c + i), and
F = 2pr / (p + r) of it and of c / (c + i + n).
"""

from __future__ import annotations

from typing import Any


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    labels = [score.values["label"] for score in scores]
    correct, attempted = labels.count("CORRECT"), len(labels) - labels.count("NOT_ATTEMPTED")
    if not labels:
        return {}
    overall = correct / len(labels)
    among = correct / attempted if attempted else 0.0
    f_score = 2 * overall * among / (overall + among) if correct else 0.0
    return {"accuracy": overall, "accuracy_given_attempted": among, "f_score": f_score}
