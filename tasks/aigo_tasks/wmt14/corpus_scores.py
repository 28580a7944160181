"""Corpus BLEU and chrF by sacrebleu: the numbers that translation papers report, from all answers at once.

A mean of sentence scores is another, lower number: corpus BLEU adds up the n-gram counts first.
"""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import BLEU, CHRF


def compute_metrics(scores: list[Any]) -> dict[str, float]:
    answers = [score.metadata["answer_pred"] for score in scores]
    references = [[score.metadata["answer_gt"] for score in scores]]
    if not answers:
        return {}
    return {
        "corpus_bleu": BLEU().corpus_score(answers, references).score,
        "corpus_chrf": CHRF().corpus_score(answers, references).score,
    }
