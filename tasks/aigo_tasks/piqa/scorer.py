"""The chosen solution in both orders of the two solutions."""

from __future__ import annotations

import re
from typing import Any


def chosen(answer: str) -> str | None:
    """A or B at the beginning of the answer; `None`: neither."""
    found = re.match(r"[\s*_`(]*([AB])(?!\w)", answer, re.IGNORECASE)
    return found.group(1).upper() if found else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    said = {
        name: chosen(output.output.choices[0].message.content)
        for name, output in solver_output.solver_outputs.items()
    }
    as_given = said["as_given"] == "AB"[sample["label"]]
    swapped = said["swapped"] == "BA"[sample["label"]]
    return {
        "scores": {
            "is_correct": as_given,
            "is_correct_swapped": swapped,
            "is_correct_in_both": as_given and swapped,
            "took_same_position": said["as_given"] is not None and said["as_given"] == said["swapped"],
        },
        "metadata": {"predicted": said, "ground_truth": "AB"[sample["label"]]},
    }
