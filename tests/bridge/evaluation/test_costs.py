"""Cost estimates of a run: calls and tokens with bounds, for every kind of solver and judge."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import TASKS, Run

from aigo_bridge.evaluation.costs import AnswerLength, ModelCost, PlanCost, plan_cost, total
from aigo_bridge.evaluation.prices import Price as ModelPrice
from aigo_bridge.evaluation.prices import PriceTable
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.tokens import Range
from aigo_bridge.plan.plan import PlanOrigin

ASK = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "generic",
        "template": '{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}], "max_tokens": 7}',
    },
}
JUDGE = {
    "type": "labeler_via_model",
    "model_key": "judge",
    "user_prompt": "{{ solver_output.messages[-1].content }}?",
}


def cost_of(
    folder: Path, definition: dict[str, Any], rows: int = 3, trials: int = 1, **answer: float
) -> PlanCost:
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"q": f"question {n}"}) + "\n" for n in range(rows))
    )
    task = {
        "key": "t",
        "display_name": "T",
        "description": "",
        "definition": {"dataset": {"key": "rows"}, **definition},
    }
    (folder / "task.yaml").write_text(yaml.safe_dump(task))
    return plan_cost(
        plan(PlanOrigin(str(folder / "task.yaml"), num_trials=trials)), {}, None, AnswerLength(**answer)
    )


def bounds(amount: Range) -> tuple[float, float]:
    return amount.low, amount.high


def models(cost: PlanCost) -> dict[str, ModelCost]:
    return {model.key: model for model in cost.models}


def test_calls_of_a_single_turn_task_are_counted_for_each_trial(tmp_path: Path) -> None:
    scorers = [{"type": "string_equals", "ground_truth": "x"}]
    cost = cost_of(tmp_path, {"solver": ASK, "scorers": scorers}, rows=3, trials=4, mean=100)
    (model,) = cost.models
    assert model.calls == Range(12, 12, 12)
    assert model.answers == Range(0, 12 * 7, 12 * 7)  # token limit in the task
    # "question 0": ten characters; a message around each.
    assert model.prompt.low == 12 * (0 + 3)
    assert model.prompt.high == 12 * (8 + 8 + 8)
    assert model.cost() is None


def test_judge_cost_includes_a_retry_and_the_answer_tokens(tmp_path: Path) -> None:
    cost = cost_of(tmp_path, {"solver": ASK, "scorers": [JUDGE]})
    judge = models(cost)["judge"]
    assert bounds(judge.calls) == (3, 6)
    assert judge.calls.expected == 3
    assert math.isinf(judge.prompt.high)  # the judge's first answer has no token limit
    assert math.isnan(judge.answers.expected)
    bounded = models(cost_of(tmp_path, {"solver": ASK, "scorers": [JUDGE]}, mean=5, most=20))["judge"]
    assert math.isfinite(bounded.prompt.high)
    assert bounds(bounded.answers) == (0, 6 * 20)


def test_calls_of_turns_and_loops_have_bounds(tmp_path: Path) -> None:
    generate = {"type": "generate"}
    builders: list[dict[str, Any]] = [
        {"type": "chat_message", "role": "user", "content": "{{ sample.q }}"},
        generate,
        {
            "type": "generate_message",
            "model_key": "user",
            "output_role": "user",
            "extra_input_messages": [{"type": "chat_message", "role": "user", "content": "go on"}],
        },
        {
            "type": "loop",
            "max_iterations": 3,
            "on_max_iterations": "continue",
            "message_builders": [generate, {"type": "generate", "terminate_if": {"includes": "bye"}}],
        },
        generate,
    ]
    solver = {"type": "multi_turn_solver", "message_builders": builders}
    cost = cost_of(
        tmp_path, {"solver": solver, "scorers": [{"type": "string_equals", "ground_truth": "x"}]}, rows=2
    )
    # First turn, two calls of the first iteration, the last turn; at most three iterations.
    assert bounds(models(cost)[""].calls) == (2 * (1 + 2 + 1), 2 * (1 + 6 + 1))
    assert math.isnan(models(cost)[""].calls.expected)
    assert models(cost)["user"].calls == Range(2, 2, 2)
    assert math.isinf(models(cost)[""].prompt.high)


def test_calls_of_solver_code_are_unbounded(tmp_path: Path) -> None:
    snippet = "async def run_solver(sample, model, trace):\n    return await model.predict(trace.items)\n"
    cost = cost_of(tmp_path, {"solver": {"type": "python", "run_solver_snippet": snippet}, "scorers": []})
    (model,) = cost.models
    assert bounds(model.calls) == (0, math.inf)


def test_task_without_models_costs_nothing(tmp_path: Path) -> None:
    cost = cost_of(
        tmp_path,
        {
            "scorers": [
                {"type": "python", "compute_scores_snippet": "def compute_scores(sample): return {'a': 1}"}
            ]
        },
    )
    assert cost.models == []
    assert total([cost]) == Range()


def test_model_cost_is_computed_from_its_tokens() -> None:
    price = ModelPrice("m", 2.0, 10.0)
    from aigo_bridge.evaluation.tokens import token_counter

    model = ModelCost(
        "", "m", token_counter("m"), Range(1, 1, 1), Range(1e6, 2e6, 3e6), Range(0, 1e6, math.inf), price
    )
    assert model.cost() == Range(2.0, 14.0, math.inf)
    assert PriceTable("EUR", (price,)).price(None, "n", "m") is price


def test_cost_is_printed_as_text_and_json(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text("currency: EUR\nmodels:\n  openai*: {input: 1, output: 4}\n")
    words = ("explain", TASKS / "hp-trivia", "--cost", "--prices", "prices.yaml", "--num-trials", "2")
    done = aigo(*words, "--model", "openai/x", "--answer-tokens", "50,500")
    assert done.code == 0, done.err
    assert "hp-trivia: 21 samples × 2 trials" in done.out
    assert "evaluated model (openai/x)" in done.out
    assert "    calls          42\n" in done.out
    assert "about 42 (at least 42, at most 84)" in done.out
    assert "estimated from characters (×0.25 to ×3)" in done.out
    assert " EUR" in done.out.splitlines()[-1]

    unpriced = aigo(*words, "--json")
    assert unpriced.code == 0
    assert unpriced.json["cost"]["total"] is None
    evaluated, judge = unpriced.json["cost"]["tasks"][0]["models"]
    assert evaluated["cost"] is None
    assert judge["cost"]["at_most"] is None
    assert judge["price"] == "openai*"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--prices", "p.yaml"), "--prices: with --cost"),
        (("--cost", "--answer-tokens", "many"), "expected MEAN or MEAN,MOST"),
        (("--cost", "--answer-tokens", "50,10"), "expected MEAN or MEAN,MOST"),
        (("--cost", "--prices", "none.yaml"), "none.yaml"),
    ],
)
def test_invalid_cost_options_are_refused(aigo: Run, words: tuple[str, ...], problem: str) -> None:
    done = aigo("explain", TASKS / "hp-trivia", *words)
    assert done.code == 2
    assert problem in done.err
