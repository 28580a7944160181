"""The six metrics: how well a post-processed generation matches the targets, in [0, 1].

This module stands alone: its source is part of the scorer that converted tasks carry. BLEU and ROUGE come from their reference
implementations, imported when they are used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(r"[^\W_]+")


def metric_score(metric_name: str, prediction: str, targets: Sequence[str]) -> float:
    """The score of a prediction under one metric.

    Raises:
        NotImplementedError: `code_exec`, which needs a sandbox.
        ValueError: there is no such metric, or there are no targets.
    """
    if not targets:
        raise ValueError("the list of targets is empty")
    if metric_name == "exact_match":
        return exact_match(prediction, targets)
    if metric_name == "accuracy":
        return accuracy(prediction, targets)
    if metric_name == "f1":
        return f1(prediction, targets)
    if metric_name == "bleu_4":
        return bleu_4(prediction, targets)
    if metric_name == "rouge_l":
        return rouge_l(prediction, targets)
    if metric_name == "code_exec":
        return code_exec(prediction, targets)
    raise ValueError(f"unknown metric {metric_name!r}")


def exact_match(prediction: str, targets: Sequence[str]) -> float:
    """1.0 if the prediction is one of the targets, character for character, else 0.0."""
    return 1.0 if prediction in targets else 0.0


def accuracy(prediction: str, targets: Sequence[str]) -> float:
    """1.0 for a right label, else 0.0: for one task this is `exact_match`; its mean over tasks is the accuracy."""
    return exact_match(prediction, targets)


def f1(prediction: str, targets: Sequence[str]) -> float:
    """Overlap of tokens with the best target: 2PR / (P + R), tokens counted as often as they occur.

    Tokens are runs of letters and digits of any script, in lower case; articles count. Without any token on either side the texts
    must be the same.
    """
    return max(_token_f1(prediction, target) for target in targets)


def bleu_4(prediction: str, targets: Sequence[str]) -> float:
    """Sentence BLEU with up to 4-grams through sacrebleu, divided by 100; all targets are its references.

    13a tokens, exponential smoothing, and of a text shorter than four tokens only the orders that it has (sacrebleu's defaults for
    sentences). BLEU is defined over a set of references, so the best target is found n-gram by n-gram.
    """
    from sacrebleu import sentence_bleu

    # A perfect match comes as 100.00000000000004.
    return min(1.0, float(sentence_bleu(prediction, list(targets)).score) / 100.0)


def rouge_l(prediction: str, targets: Sequence[str]) -> float:
    """ROUGE-L F-measure with the best target through rouge-score, without stemming.

    Tokens as in `f1`; on English text they are rouge-score's own, which would drop every letter outside of a to z.
    """
    scorer = _rouge_scorer()
    return max(float(scorer.score(target, prediction)["rougeL"].fmeasure) for target in targets)


def code_exec(prediction: str, targets: Sequence[str]) -> float:
    """Never scored here: the code comes from a model, and runs in a sandbox or not at all.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "the metric 'code_exec' runs code that a model wrote; it is scored only in a sandbox, never in this process"
    )


def _token_f1(prediction: str, target: str) -> float:
    said, wanted = Counter(_tokens(prediction)), Counter(_tokens(target))
    if not said and not wanted:
        return exact_match(prediction, [target])
    common = (said & wanted).total()
    return 2 * common / (said.total() + wanted.total())


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


class _Tokenizer:
    """What rouge-score asks for."""

    def tokenize(self, text: str) -> list[str]:
        return _tokens(text)


@lru_cache(maxsize=1)
def _rouge_scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # untyped

    return RougeScorer(["rougeL"], tokenizer=_Tokenizer())
