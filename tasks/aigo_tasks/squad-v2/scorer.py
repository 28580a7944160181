"""Exact match and F1 of SQuAD 2.0, and counts for how well unanswerable questions are recognised.

Source: the official evaluation script of SQuAD 2.0 (Rajpurkar et al., 2018): lower case, no punctuation, no articles; F1 over words; a question without an
answer is right when nothing is answered.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Any

ARTICLES = re.compile(r"\b(a|an|the)\b")
NO_ANSWER = "unanswerable"


def normalised(text: str) -> str:
    kept = "".join(character for character in text.lower() if character not in set(string.punctuation))
    return " ".join(ARTICLES.sub(" ", kept).split())


def f1(said: str, wanted: str) -> float:
    left, right = normalised(said).split(), normalised(wanted).split()
    if not left or not right:
        return float(left == right)
    common = (Counter(left) & Counter(right)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(left), common / len(right)
    return 2 * precision * recall / (precision + recall)


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    said = "" if normalised(answer) == NO_ANSWER else answer
    # As in the official script: gold answers that are nothing but articles and punctuation do not count.
    wanted = [text for text in sample["answers"]["text"] if normalised(text)] or [""]
    says_none, has_none = normalised(said) == "", wanted == [""]
    return {
        "scores": {
            "exact": float(any(normalised(said) == normalised(text) for text in wanted)),
            "f1": max(f1(said, text) for text in wanted),
            "is_answerable": not has_none,
            "no_answer_tp": int(says_none and has_none),
            "no_answer_fp": int(says_none and not has_none),
            "no_answer_fn": int(not says_none and has_none),
        },
        "metadata": {"predicted": said, "ground_truths": wanted},
    }
