"""The letter of a chain of thought, extracted as the benchmark's own code does.

Source: TIGER-AI-Lab/MMLU-Pro, `evaluate_from_api.py`: "answer is (X)"; else the last "Answer: X"; else the last letter A-J that stands
alone. Where nothing is found the official code guesses at random; here the answer is wrong.
"""

from __future__ import annotations

import re
from typing import Any

IS = re.compile(r"answer is \(?([A-J])\)?")
LABELLED = re.compile(r".*[aA]nswer:\s*([A-J])", re.DOTALL)
ALONE = re.compile(r"\b[A-J]\b(?!.*\b[A-J]\b)", re.DOTALL)


def extract(answer: str) -> str | None:
    """The letter; `None` when there is none."""
    if found := IS.search(answer):
        return found.group(1)
    if found := LABELLED.search(answer):
        return found.group(1)
    found = ALONE.search(answer)
    return found.group(0) if found else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    letter = extract(solver_output.output.choices[0].message.content)
    return {
        "scores": {"is_correct": letter == sample["answer"], "category": sample["category"]},
        "metadata": {"predicted_choice": letter, "ground_truth_choice": sample["answer"]},
    }
