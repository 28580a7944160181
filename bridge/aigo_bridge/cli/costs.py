"""`aigo-bridge explain --cost`: expected calls, tokens and cost, with lower and upper bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from aigo_bridge.cli.options import pairs
from aigo_bridge.cli.terminal import name_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.evaluation.costs import AnswerLength, PlanCost, asked_models, cost_json, plan_cost, total
from aigo_bridge.evaluation.models import surplus_models
from aigo_bridge.evaluation.prices import PriceTable, names_of, read_prices
from aigo_bridge.evaluation.tokens import Range
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.text.plurals import plural


@dataclass(frozen=True)
class Costs:
    """Costs that the user asked for."""

    plans: Sequence[PlanCost]
    prices: PriceTable | None
    answer: AnswerLength

    def to_json(self, number: int) -> dict[str, Any]:
        """Return the JSON summary of one plan."""
        return cost_json([self.plans[number]], self.prices)


def costs_of(
    wanted: bool,
    plans: Sequence[tuple[TaskPlan, tuple[int, str | None]]],
    prices: Path | None,
    model: str | None,
    model_map: list[str] | None,
    answer_tokens: str | None,
) -> Costs | None:
    """Return the costs of plans, each with its number of runs and the key of the evaluated model; `None` if
    the user did not ask for costs.

    Raises:
        UsageError: an option is invalid.
        SpecError: the price table is invalid.
    """
    options = {
        "--prices": prices,
        "--model": model,
        "--model-map": model_map,
        "--answer-tokens": answer_tokens,
    }
    used = [name for name, value in options.items() if value]
    if not wanted:
        if used:
            raise UsageError(f"{', '.join(used)}: with --cost", code=Code.OPTIONS_APART)
        return None
    named = pairs("--model-map", model_map)
    used_models = [
        key for plan, (_, evaluated) in plans for key in (*plan.model_keys, evaluated) if key is not None
    ]
    surplus = surplus_models(named, used_models, "the task")
    if surplus is not None:
        raise UsageError(surplus, code=Code.SURPLUS_ARGUMENT)
    answer = _answer(answer_tokens)
    table = None if prices is None else read_prices(prices)
    return Costs(
        [
            plan_cost(plan, names_of(named, model or (key and named.get(key, key))), table, answer, runs)
            for plan, (runs, key) in plans
        ],
        table,
        answer,
    )


def _answer(text: str | None) -> AnswerLength:
    if text is None:
        return AnswerLength()
    try:
        mean, *most = [int(part) for part in text.split(",")]
    except ValueError:
        mean, most = -1, []
    if mean < 0 or len(most) > 1 or any(bound < mean for bound in most):
        raise UsageError(
            f"--answer-tokens: found {text!r}, expected MEAN or MEAN,MOST, e.g. 200 or 200,1000",
            code=Code.WRONG_OPTION,
        )
    return AnswerLength(mean, most[0] if most else None)


def show_costs(costs: Costs) -> None:
    """Print a table of models for each plan, and the totals."""
    for cost in costs.plans:
        plan = cost.plan
        trials = f" × {plural(plan.num_trials, 'trial')}" if plan.num_trials > 1 else ""
        runs = f" × {plural(cost.num_runs, 'run')}" if cost.num_runs > 1 else ""
        typer.echo(f"{name_of(plan.name)}: {plural(len(plan.samples), 'sample')}{trials}{runs}")
        for model in asked_models([cost]):
            key = name_of(model.key) if model.key else "evaluated model"
            typer.echo(f"  {key}{'' if model.name is None else f' ({name_of(model.name)})'}")
            typer.echo(f"    calls          {_shown(model.calls)}")
            typer.echo(f"    prompt tokens  {_shown(model.prompt)}, {model.counter.how}")
            typer.echo(f"    answer tokens  {_shown(model.answers)}")
            money = model.cost()
            if money is not None and costs.prices is not None:
                typer.echo(f"    cost           {_shown(money, costs.prices.currency)}")
            elif costs.prices is not None:
                typer.echo("    cost           unknown: the price table does not contain this model")
        if not any(asked_models([cost])):
            typer.echo("  no model is called")
        if cost.problems:
            typer.echo(f"  {plural(cost.problems, 'sample')} will fail before a model is called")
    if costs.prices is not None:
        money = total(costs.plans)
        shown = "unknown: a model lacks a price" if money is None else _shown(money, costs.prices.currency)
        typer.echo(f"total: {shown}")
    if costs.answer.mean is None and any(asked_models(costs.plans)):
        typer.echo("the length of answers is unknown; set it with --answer-tokens MEAN,MOST")


def _shown(amount: Range, currency: str | None = None) -> str:
    """Return a number with its bounds: `about 60 (15 to 180)`, `4`."""
    low, high = _figure(amount.low, currency), _figure(amount.high, currency)
    unit = "" if currency is None else f" {name_of(currency)}"
    if amount.low == amount.high:
        return f"{low}{unit}"
    expected = "unknown" if math.isnan(amount.expected) else f"about {_figure(amount.expected, currency)}"
    most = f"at most {high}" if math.isfinite(amount.high) else "no upper bound"
    return f"{expected} (at least {low}, {most}){unit}"


def _figure(value: float, currency: str | None) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if currency is None else f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
