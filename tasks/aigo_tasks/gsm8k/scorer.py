"""The final number of a solution.

Source: openai/grade-school-math (`#### <number>`, commas removed) for the strict score; for the lenient one the last number in the text, as in lm-evaluation-harness'
`flexible-extract`. Numbers are compared by value: 18, 18.0 and $18 are one.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

# A sign belongs to the number unless it stands behind a word or a number: "3-5" holds 3 and 5.
NUMBER = re.compile(r"(?:(?<![\w.)])[-−]\s?)?[$€£]?\d(?:[\d,]*\d)?(?:\.\d+)?|(?:(?<![\w.)])[-−]\s?)?[$€£]?\.\d+", re.ASCII)


def value_of(text: str) -> Decimal:
    return Decimal(re.sub(r"[$€£,\s]", "", text).replace("−", "-"))


def marked(text: str) -> Decimal | None:
    """The first number behind the last `####`; `None`: there is no such mark or no number behind it."""
    if "####" not in text:
        return None
    found = NUMBER.search(text.rpartition("####")[2])
    return value_of(found.group()) if found else None


def last(text: str) -> Decimal | None:
    """The last number of the text; `None`: there is none."""
    found = NUMBER.findall(text)
    return value_of(found[-1]) if found else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    truth = marked(sample["answer"])
    if truth is None:
        raise ValueError(f"the row's answer has no '#### <number>': {sample['answer']!r}")
    answer = solver_output.output.choices[0].message.content
    strict = marked(answer)
    lenient = strict if strict is not None else last(answer)
    return {
        "scores": {"is_correct": lenient == truth, "is_correct_strict": strict == truth},
        "metadata": {"predicted": None if lenient is None else str(lenient), "ground_truth": str(truth)},
    }
