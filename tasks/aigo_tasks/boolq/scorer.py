"""Yes or no, as the chosen definition reads it.

Sources: inspect-evals 0.26, `boolq`: nothing but yes or no, in any case, between signs that are no letters and no digits. lighteval
0.13, `exact_match`: the answer without blanks around it is "Yes" or "No".
"""

from __future__ import annotations

import re
from typing import Any

LIGHTEVAL = "<< config.definition >>" == "lighteval"
ALONE = re.compile(r"\A[\W_]*(Yes|No)[\W_]*\Z", re.IGNORECASE)


def label_of(answer: str) -> str | None:
    """`yes` or `no`; `None`: neither."""
    if LIGHTEVAL:
        return {"Yes": "yes", "No": "no"}.get(answer.strip())
    match = ALONE.search(answer)
    return match.group(1).lower() if match else None


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    predicted = label_of(solver_output.output.choices[0].message.content)
    truth = "yes" if sample["answer"] else "no"
    return {"is_correct": predicted == truth, "label_gt": truth, "label_pred": predicted}
