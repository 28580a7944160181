"""The letter in an answer that was asked to end with `ANSWER: <letter>`."""

from __future__ import annotations

import re
from typing import Any

# Markdown around the letter is common: `**ANSWER: B**`, `Answer: (B)`, `ANSWER: \\boxed{B}`. A small letter counts at the end of a line
# only: "Answer: a hen" names no choice.
STATED = re.compile(
    r"(?i:answer)[\s*_`]*[:：][\s*_`$(]*(?:\\boxed\{|\\text\{)*([A-Z0-9](?![\w'])|[a-z](?=[\s*_`).}$]*$))", re.MULTILINE
)
ALONE = re.compile(r"[\s*_`(]*([A-Z0-9])[\s*_`).:]*", re.IGNORECASE)


def letter_of(answer: str) -> str | None:
    """The last letter that the text states as its answer, or the only character it consists of; `None`: there is none.

    Nothing else is guessed: "Both A and B look right" names no answer.
    """
    stated = STATED.findall(answer)
    if stated:
        return stated[-1].upper()
    alone = ALONE.fullmatch(answer)
    return alone.group(1).upper() if alone else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    letter = letter_of(solver_output.output.choices[0].message.content)
    return {
        "scores": {"is_correct": letter == sample["answerKey"], "is_answered": letter in sample["choices"]["label"]},
        "metadata": {"predicted_choice": letter, "ground_truth_choice": sample["answerKey"]},
    }
