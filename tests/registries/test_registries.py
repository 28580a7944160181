"""Tasks of both registries are converted or refused for the reason counted in the tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from tests.registries import lighteval_registry
from tests.registries.rows import fitting_row
from tests.registries.table import Verdict, markdown, of_error
from tests.support.commands import REPOSITORY
from tests.support.plugins import with_benchmarks

from aigo_bridge.errors import UnsupportedPlanError

LIGHTEVAL = {
    "gsm8k": "python scorer",
    "agieval:aqua-rat": "converted",
    "math:algebra": "python scorer",
    "glue:cola": "refused",
    "winogrande": "converted",
    "mmlu:anatomy": "converted",
    "coqa": "not made",
}

INSPECT = {
    "inspect_evals/boolq": "python scorer",
    "inspect_evals/mmlu_0_shot": "python scorer",  # a custom solver
    "inspect_evals/assistant_bench_closed_book_zero_shot": "python scorer",  # a setup
    "inspect_evals/arc_challenge": "python scorer",
    "inspect_evals/healthbench": "refused",  # a scorer that asks a model
    "inspect_evals/humaneval": "refused",  # a sandbox
    "inspect_evals/abstention_bench": "not made",  # a package that is not installed
}


@pytest.mark.xdist_group("lighteval")
def test_lighteval_tasks_match_the_registry_table() -> None:
    verdicts = list(lighteval_registry.verdicts(frozenset(LIGHTEVAL)))
    assert {verdict.name: verdict.kind for verdict in verdicts} == LIGHTEVAL
    assert all(verdict.reasons for verdict in verdicts if verdict.kind == "refused")


@pytest.mark.xdist_group("inspect_evals")
def test_inspect_evals_tasks_match_the_registry_table() -> None:
    code = (
        "import json; from tests.registries.inspect_registry import verdicts;"
        f"print(json.dumps([(v.name, v.kind, v.reasons) for v in verdicts(frozenset({sorted(INSPECT)}))]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env=with_benchmarks({**os.environ}),
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout.splitlines()[-1])
    assert {name: kind for name, kind, _ in verdicts} == INSPECT
    assert all(reasons for _, kind, reasons in verdicts if kind != "python scorer")


def test_a_row_is_guessed_from_the_cells_that_code_reads() -> None:
    def use(row: Any) -> None:
        right = row["choices"]["text"][row["answer_idx"]]
        if not isinstance(right, str) or row["meta"]["score"] <= 0 or not row["question"].strip():
            raise ValueError(right)

    row = fitting_row(use)
    use(row)
    assert set(row) == {"choices", "answer_idx", "meta", "question"}


def test_an_unmatched_entry_is_reported_with_the_last_failure() -> None:
    def use(row: Any) -> None:
        raise ValueError(f"never {row['q']}")

    with pytest.raises(LookupError, match="ValueError: never"):
        fitting_row(use)


def test_reasons_are_counted_without_names_and_numbers() -> None:
    refused = UnsupportedPlanError(
        "task 't' cannot be converted: 1 gap\n"
        "  - metrics[0] (maj@4): looks at 4 answers of each sample together (run it with `x`)"
    )
    listed = [Verdict("a", "converted"), of_error("b", refused), of_error("c", refused)]
    assert listed[1].reasons == ("metrics: looks at N answers of each sample together",)
    table = markdown(listed, "T")
    assert "**T**: 3 tasks" in table
    assert "| `metrics: looks at N answers of each sample together` | 2 |" in table
