"""The letter of an answer, as inspect-evals reads it.

Source: inspect-ai 0.3, `multiple_choice` and `choice`: the last line "ANSWER: X", else the last "ANSWER: X" in the text, with
a case of its own for letters in bold, in formulas and in parentheses.
"""

from __future__ import annotations

import re
from typing import Any

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


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    choices, labels = sample["mc1_targets"]["choices"], sample["mc1_targets"]["labels"]
    # The order of the prompt: Jinja sorts without regard to case.
    shown = sorted(choices, key=str.lower)
    truth = LETTERS[shown.index(choices[labels.index(1)])]
    letter = letter_of(answer, len(choices))
    return {
        "scores": {"is_correct": letter == truth},
        "metadata": {"predicted_choice": letter, "ground_truth_choice": truth},
    }
