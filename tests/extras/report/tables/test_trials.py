"""Conditions on trials, with the same cases as in the pages."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from tests.support.commands import REPOSITORY

from aigo_bridge.errors import UsageError
from aigo_report.tables.trials import Field, condition_of, field_of

CASES: dict[str, Any] = json.loads((REPOSITORY / "tests" / "support" / "filters.json").read_text("utf-8"))


def value(sample: dict[str, Any], name: str) -> Field:
    plain = sample.get(name)
    return float(plain) if isinstance(plain, int) else plain


def chosen(where: str) -> list[str]:
    test = condition_of(where)
    return [sample["id"] for sample in CASES["samples"] if test(partial(value, sample))]


def test_where_condition_selects_the_same_samples_as_the_page() -> None:
    assert {case["where"]: chosen(case["where"]) for case in CASES["cases"]} == {
        case["where"]: case["ids"] for case in CASES["cases"]
    }


@pytest.mark.parametrize("where", CASES["errors"])
def test_invalid_where_condition_is_rejected_with_its_position(where: str) -> None:
    with pytest.raises(UsageError, match=r"--where: (un)?expected .* \(character \d+\)"):
        condition_of(where)


def test_condition_names_match_the_sample_table() -> None:
    cells = {
        "id": "7",
        "i": 2,
        "q": "?",
        "o": "failed",
        "e": [["solver", "E: 429"]],
        "w": "1.5",
        "s": {"exact\x1fis_correct": "0.0", "judge\x1fgrade": ["C"]},
        "d": {"topic": "law"},
    }
    names = ("id", "trial", "seconds", "status", "stage", "error", "score", "judge.grade", "topic", "truth")

    assert [field_of(cells, name, graded=True) for name in names] == [
        *("7", 2.0, 1.5, "failed", "solver", "E: 429", 0.0, 1.0, "law", None)
    ]
