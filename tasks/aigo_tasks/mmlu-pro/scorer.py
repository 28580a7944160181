"""The letter of a chain of thought, as the chosen definition reads it.

Sources: TIGER-AI-Lab/MMLU-Pro, `evaluate_from_api.py`: the first "answer is (X)"; else "Answer: X" on the first line that has one, the last of
that line; else the last letter A to J that stands alone; else a choice drawn with the seed 12345. inspect-ai 0.3, `multiple_choice` and `choice`: the last
line "ANSWER: X", else the last "ANSWER: X" in the text, with a case of its own for letters in bold, in formulas and in parentheses.
"""

from __future__ import annotations

import random
import re
from typing import Any

INSPECT = "<< config.definition >>" == "inspect-evals"
IS = re.compile(r"answer is \(?([A-J])\)?")
LABELLED = re.compile(r".*[aA]nswer:\s*([A-J])")
ALONE = re.compile(r"\b[A-J]\b(?!.*\b[A-J]\b)", re.DOTALL)
UNWRAPPED = (
    (re.compile(r"\$\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\$"), r"\1"),
    (re.compile(r"\*\*\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\*\*"), r"\1"),
    (re.compile(r"(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))", re.IGNORECASE), r"\1\2\3"),
)
ON_A_LINE = re.compile(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
ANYWHERE = re.compile(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", re.IGNORECASE)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letter_of(answer: str, num_choices: int) -> str | None:
    """The one letter that the answer states; `None`: none, several, or one beyond the choices."""
    for wrapper, content in UNWRAPPED:
        answer = wrapper.sub(content, answer)
    stated = ON_A_LINE.findall(answer) or ANYWHERE.findall(answer)
    if not stated:
        return None
    tokens = [token for token in stated[-1].strip().rstrip(".").upper().split(",") if token]
    return tokens[0] if len(tokens) == 1 and tokens[0] in list(LETTERS[:num_choices]) else None


def extract(answer: str) -> str | None:
    """The letter by the official chain of patterns; `None` when there is none."""
    if match := IS.search(answer) or LABELLED.search(answer):
        return match.group(1)
    match = ALONE.search(answer)
    return match.group(0) if match else None


def is_correct(letter: str | None, sample: dict[str, Any]) -> bool:
    """Whether the letter is right; the official code counts an answer without one as right where a drawn choice is."""
    if letter is None and not INSPECT:
        num_options = sum(option != "N/A" for option in sample["options"])
        return random.Random(12345).randint(0, num_options - 1) == sample["answer_index"]
    return letter == sample["answer"]


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    letter = letter_of(answer, len(sample["options"])) if INSPECT else extract(answer)
    return {
        "scores": {"is_correct": is_correct(letter, sample), "category": sample["category"]},
        "metadata": {"predicted_choice": letter, "ground_truth_choice": sample["answer"]},
    }
