"""How complete and valid one row is."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

REQUIRED = ast.literal_eval("""<< config.required_columns >>""")
HIGHEST_AGE = float("<< config.highest_age >>")
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")


def is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or (isinstance(value, str) and not value.strip())


def compute_scores(sample: dict[str, Any]) -> dict[str, Any]:
    missing = [column for column in REQUIRED if is_empty(sample.get(column))]
    age, email = sample.get("age"), sample.get("email")
    problems = [f"{column} is missing" for column in missing]
    if not is_empty(email) and not EMAIL.fullmatch(str(email)):
        problems.append("email is not an address")
    if not is_empty(age) and not 0 <= float(age) <= HIGHEST_AGE:
        problems.append("age is out of range")
    return {
        "scores": {
            "completeness": 1 - len(missing) / len(REQUIRED) if REQUIRED else 1.0,
            "is_valid": not problems,
            "num_problems": len(problems),
        },
        "metadata": {"problems": problems},
    }
