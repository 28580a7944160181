"""Programs are extracted from answers like in inspect-evals, and pass@k is computed like in Inspect; no program runs."""

from __future__ import annotations

import importlib
import itertools
import math
import random
import runpy
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.commands import TASKS
from tests.tasks.published import NUM_FUZZED, differences, fuzzed, varied

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # from modules that the references import

ROW = {"prompt": 'import math\n\ndef area(r: float) -> float:\n    """Of a circle."""\n'}
CODE = "def area(r):\n    return math.pi * r ** 2"
PIECES = (
    *(
        "```",
        "```python",
        "```py ",
        "```Python3",
        "``` python",
        "```java",
        "````",
        "``",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        " ",
    ),
    *(
        CODE,
        "def f():\n    return 1",
        "x = 1",
        "\tpass",
        ":\n    ",
        "Here: ",
        "I cannot.",
        "日本",
        "²",
        "# ```",
    ),
)


def snippet(task: str, file: str = "program.py") -> dict[str, Any]:
    return runpy.run_path(str(TASKS / task / file))


def answers(_: dict[str, Any]) -> list[str]:
    """Return forms of a sentence and code blocks, and random answers."""
    blocks = [
        f"```{label}{end}{CODE}\n```"
        for label in ("python", "py", "PYTHON", "", "js")
        for end in ("\n", "\r\n", " \n")
    ]
    shapes = [
        *blocks,
        *(f"Sure:\n{block}\nDone." for block in blocks),
        *(block[:-4] for block in blocks),
        CODE,
    ]
    two = [f"{left}\n{right}" for left, right in itertools.product(blocks[::3], blocks[1::3])]
    return [*shapes, *two, *varied(CODE, "x = 1"), *fuzzed(CODE, "x = 1", NUM_FUZZED, pieces=PIECES)]


@pytest.mark.engine
def test_humaneval_runs_the_prompt_and_then_the_answer() -> None:
    find_code = importlib.import_module("inspect_evals.humaneval.humaneval").find_code

    assert (
        differences(
            [ROW],
            answers,
            snippet("humaneval")["program"],
            lambda row, answer: row["prompt"] + find_code(answer) + "\n",
        )
        == []
    )


@pytest.mark.engine
def test_mbpp_runs_the_first_block_of_python() -> None:
    find_code = importlib.import_module("inspect_evals.mbpp.mbpp").find_code
    program = snippet("mbpp")["program"]

    assert (
        differences(
            [ROW], answers, lambda row, answer: program(answer), lambda row, answer: find_code(answer)
        )
        == []
    )


def mean_of(trials: list[bool]) -> SimpleNamespace:
    """Return the score of a problem over its trials."""
    metadata = {"num_trials": len(trials)} if len(trials) > 1 else None
    return SimpleNamespace(values={"code_exec": sum(trials) / len(trials)}, metadata=metadata)


@pytest.mark.engine
@pytest.mark.parametrize(("k", "num_trials"), [(2, 2), (2, 3), (2, 5), (2, 17), (5, 5), (5, 6), (5, 40)])
def test_pass_at_k_is_the_unbiased_estimator(k: int, num_trials: int) -> None:
    from inspect_ai.scorer import Score, pass_at

    random_ = random.Random(k)
    trials = [[random_.random() < 0.5 for _ in range(num_trials)] for _ in range(20)]
    expected = [pass_at(k)([Score(value=float(value)) for value in passed]).as_float() for passed in trials]

    values = snippet("mbpp", "passes.py")["compute_metrics"]([mean_of(passed) for passed in trials])

    assert values[f"pass@{k}"] == pytest.approx(sum(expected) / 20, abs=1e-12)


def test_problem_with_fewer_than_k_trials_has_no_estimate() -> None:
    compute_metrics = snippet("mbpp", "passes.py")["compute_metrics"]

    values = compute_metrics([mean_of([True] * 5), mean_of([True, False, False])])
    assert values["pass@2"] == pytest.approx((1 + 2 / 3) / 2)
    assert math.isnan(values["pass@5"])
    assert all(map(math.isnan, compute_metrics([mean_of([True])]).values()))
