"""MATH-500, compared with inspect-evals' `math` and lighteval's `math_500` on the same rows and answers."""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS, Run
from tests.tasks.published import (
    NUM_FUZZED,
    PIECES,
    differences,
    fuzzed,
    judge,
    snippet_names,
    solver_output,
    varied,
)
from tests.tasks.references import (
    exchanges,
    lighteval_request,
    numbered,
    published_task,
    shipped_task,
    within,
)

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from modules that the references import
]

Row = dict[str, Any]

ROWS: list[Row] = [
    json.loads(line) for line in (TASKS / "math-500" / "rows.jsonl").read_text("utf-8").splitlines()
]
SOLUTIONS = (
    r"So $\boxed{x+1}$.", r"$\boxed{\left(3,\frac{\pi}{2}\right)}$", r"\fbox{3}", r"$\boxed 5$",
    r"$\boxed{\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}}$", r"$\boxed{x=5}$", r"$\boxed{1,2,3}$",
    r"$\boxed{\{1,2\}}$", r"$\boxed{[1,2)}$", r"$\boxed{1<x<2}$", r"$\boxed{3+4i}$", r"$\boxed{33\%}$",
    r"$\boxed{x \in [-2,7]}$", "Without a formula", r"$\boxed{0.333333}$", r"$\boxed{y=2x+1}$", r"$\boxed{e}$",
    r"$\boxed{f(x)=x^2}$", r"$\boxed{1 \text{ and } 2}$", r"$\boxed{x\le 3}$", r"$\boxed{\text{Evelyn}}$",
    r"$\boxed{(-\infty,2)\cup(3,\infty)}$", "The answers are $1$ and $2$.", r"$\boxed{\frac{3\sqrt{2}}{2}}$",
)  # fmt: skip
"""Kinds of right answers, beside those of the made-up rows."""
OTHERS: list[Row] = [{"problem": "?", "solution": solution, "answer": solution} for solution in SOLUTIONS]
FORMULAS = (
    r"\frac", r"\frac12", r"\tfrac", r"\sqrt", r"\sqrt3", r"\left(", r"\right)", r"\text{ cm}", r"^\circ", "=", "x=",
    r"\%", "percent", r"\!", r"\ ", "\\\\", " .", "{.", "0.5", "1/2", "5.0", "5", "1+x", "x+1", r"\pi", r"\infty",
    "(-2,2)", "60", "final answer is ", "I hope it is correct", "answer ", r"$\frac{1}{2}$", "$x=5$", "$5$", "$$7$$",
    r"\[3\]", r"\(4\)", " [5] ", "or ", ", ", "$1,000", "1 000", "3,5", "2^3", "3 * 4", "(1+2)", "$x+1$", r"$\pi$",
    "0.333333", "1/3", r"\boxed{5}", "$3+4i$", r"$\{1,2\}$", "$[1,2)$", "$1<x<2$", r"$x \in (1,2)$", "$2x+1$",
    "$y=2x+1$", "$1+2x=y$", r"$\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}$", r"$33\%$", "0.33", r"$3 \ge x$", "$e$",
)  # fmt: skip


def answers(row: Row) -> Iterator[str]:
    """Return every form of a row's right answer, and some random answers."""
    random = fuzzed(row["answer"], "7", NUM_FUZZED // len(ROWS) + 1, pieces=[*PIECES, *FORMULAS, *FORMULAS])
    return chain(varied(row["answer"], "0.25"), *((answer, f"ANSWER: {answer}") for answer in random))


def random_answers(row: Row) -> Iterator[str]:
    """Return fewer random answers, because each row represents its kind."""
    yield from fuzzed(
        row["answer"], "7", NUM_FUZZED // len(OTHERS) + 1, pieces=[*PIECES, *FORMULAS, *FORMULAS]
    )
    yield from (row["answer"], f"ANSWER: {row['answer']}")


def as_text(row: Row, answer: str) -> bool:
    """Return the result of inspect-evals' `expression_exact_match`, which is a coroutine over these."""
    utils = importlib.import_module("inspect_evals.math.utils")
    box = utils.last_boxed_only_string(row["solution"])
    target = row["solution"] if box is None else utils.remove_boxed(box)
    found = utils.extract_answer(answer)
    return bool(found) and asyncio.run(utils.is_equiv(found, target))


def by_algebra(row: Row, answer: str) -> bool:
    """Return lighteval's `math_500` metric of one answer."""
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.tasks.math_500 import math_500_prompt

    metric = copy.copy(Metrics.pass_at_k_math.value.sample_level_fn)
    metric.k = metric.n = 1
    return bool(metric.compute(math_500_prompt(row), ModelResponse(text=[answer])) == 1)


def test_math_text_comparison_equals_inspect_evals() -> None:
    shipped = judge("math-500", "is_correct", definition="inspect-evals")
    others = [row for row in OTHERS if r"\fbox" not in row["solution"]]  # there it is an error

    assert differences(ROWS, answers, shipped, as_text) == []
    assert differences(others, random_answers, shipped, as_text) == []


@pytest.mark.xdist_group("lighteval")
def test_math_symbolic_comparison_equals_lighteval(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("ERROR", "lighteval")
    for module in ("math_comparison", "extractive_match_utils"):
        monkeypatch.setattr(f"lighteval.metrics.utils.{module}.timeout", within)
    shipped = judge("math-500", "is_correct", definition="lighteval")

    assert differences(ROWS, answers, shipped, by_algebra) == []
    assert differences(OTHERS, random_answers, shipped, by_algebra) == []


@pytest.mark.xdist_group("lighteval")
def test_an_expression_over_the_time_limit_is_unequal_with_a_note() -> None:
    names = snippet_names("math-500", definition="lighteval")
    names["SECONDS"] = 0.2
    compute_scores = names["compute_scores"]

    late = compute_scores(OTHERS[0], solver_output("ANSWER: $9^{9^{9^{9}}}$"))
    soon = compute_scores(OTHERS[0], solver_output("ANSWER: $1+x$"))

    assert (late["scores"]["is_correct"], late["metadata"]["not_in_time"]) == (False, ["comparison"])
    assert soon["scores"]["is_correct"] is True
    assert "not_in_time" not in soon["metadata"]


@pytest.mark.xdist_group("lighteval")
def test_math_is_not_scored_without_a_time_limit() -> None:
    """Otherwise every answer that needs parsing would be counted as wrong."""
    shipped = judge("math-500", "is_correct", definition="lighteval")

    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(RuntimeError, match="run without --snippets in-process"),
    ):
        pool.submit(shipped, OTHERS[0], "ANSWER: $x+1$").result()


def test_math_prompt_equals_inspect_evals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = numbered(ROWS, "problem")
    native = [{**row, "level": f"Level {row['level']}", "type": row["subject"]} for row in rows]
    task = published_task(monkeypatch, "math.math", "math", native)
    task.scorer = task.scorer[1:2]  # without the judge; the third needs a parser that excludes lighteval's
    said = [
        "ANSWER: 1/2",
        "ANSWER: $5\\sqrt3$",
        "(3,6)",
        "",
        "ANSWER: (-2,2)",
        "ANSWER: 2500",
        "ANSWER: .5",
        "blue",
    ]

    published = exchanges(task, said, tmp_path / "published")

    assert exchanges(shipped_task("math-500", rows, num_trials=1), said, tmp_path / "shipped") == published
    assert [score for _, score in published] == [1, 1, 0, 0, 1, 0, 1, 0]


@pytest.mark.xdist_group("lighteval")
def test_math_prompt_equals_lighteval(tmp_path: Path) -> None:
    rows = numbered(ROWS[:2], "problem")
    task = shipped_task("math-500", rows, num_trials=1, definition="lighteval")

    requests = [request for (request,), _ in exchanges(task, ["1/2", "$6$"], tmp_path)]

    for row, request in zip(rows, requests, strict=True):
        expected = lighteval_request("math_500", "math_500", row)
        assert request.messages == expected.messages
        assert dict(request.settings) | {"stop_seqs": []} == dict(expected.settings)


def test_lighteval_comparison_runs_in_a_worker(aigo: Run, tmp_path: Path) -> None:
    """Right by algebra: 1, 2, 3, 4 and 5 once each, 6, and 7, whose answer has no mark."""
    model = f"scripted/{TASKS / 'math-500' / 'answers.jsonl'}"
    done = aigo(
        *("run", "aigo_tasks/math-500", "--model", model, "--config", "definition=lighteval"),
        *("--out", tmp_path / "out", "--json"),
    )

    assert done.code == 0, done.err
    assert {each["name"]: each["value"] for each in done.json["metrics"]}["accuracy"] == 6 / 8


def test_missing_library_for_lighteval_comparison_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("latex2sympy2_extended")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "latex2sympy2_extended", None)

    judge("math-500", "is_correct", definition="inspect-evals")
    with pytest.raises(ImportError, match=r"pip install latex2sympy2_extended==1\.0\.6"):
        judge("math-500", "is_correct", definition="lighteval")
