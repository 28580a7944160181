"""Yes or no, by the first word of the answer."""

from __future__ import annotations

import re
from typing import Any

WORDS = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    answer = solver_output.output.choices[0].message.content
    first = re.search(r"[^\W\d_]+", answer)
    predicted = WORDS.get(first.group().lower()) if first else None
    truth = "yes" if sample["answer"] else "no"
    return {"is_correct": predicted == truth, "label_gt": truth, "label_pred": predicted}
