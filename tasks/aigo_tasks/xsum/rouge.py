"""ROUGE-1, ROUGE-2 and ROUGE-L as F-measures, by Google's rouge-score with stemming, which is what summarisation papers use.

Source: Lin (2004); package rouge-score. Its words are ASCII letters and digits: for other scripts set `stemmed` to false.
"""

from __future__ import annotations

import re
from typing import Any

from rouge_score.rouge_scorer import RougeScorer


class AnyScript:
    """Words of letters and digits of every script."""

    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"[^\W_]+", text.lower())


NAMES = ["rouge1", "rouge2", "rougeL"]
STEMMED = "<< config.stemmed >>" == "True"
SCORER = RougeScorer(NAMES, use_stemmer=True) if STEMMED else RougeScorer(NAMES, tokenizer=AnyScript())


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    found = SCORER.score(sample["summary"], answer)
    return {
        "scores": {
            "rouge_1": found["rouge1"].fmeasure,
            "rouge_2": found["rouge2"].fmeasure,
            "rouge_l": found["rougeL"].fmeasure,
            "num_words": len(answer.split()),
        },
        "metadata": {"predicted": answer, "ground_truth": sample["summary"]},
    }
