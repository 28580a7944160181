"""Estimate of the model calls, tokens and cost of a run before any model is called, with bounds.

The bounds assume that no sample fails: a sample whose solver fails is not judged, and retries after
transient failures are not counted. Some numbers are unlimited, for example calls made by the author's code
or the length of answers without a limit. They have an infinite upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.evaluation.explain import ANSWER, LIKELIHOODS, SamplePreview, ScorerPreview, explain
from aigo_bridge.evaluation.prices import Price, PriceTable
from aigo_bridge.evaluation.tokens import (
    MESSAGE,
    NOTHING,
    REQUEST,
    UNKNOWN,
    Range,
    TokenCounter,
    token_counter,
)
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.judges import MAX_ATTEMPTS
from aigo_bridge.scoring.registry import scorer_type
from aigo_bridge.solving.solvers import GroupedSingleTurn
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate

ONCE = Range(1, 1, 1)
_ASKED_AGAIN = Range(0, 0, 200)
"""Extra input tokens when a judge is asked again because its answer cannot be parsed."""
_AT_MOST_ONCE = Range(0, math.nan, 1)


@dataclass(frozen=True)
class AnswerLength:
    """Length of an answer in tokens if the request does not limit it."""

    mean: float | None = None
    """Expected number of tokens; `None` if unknown."""
    most: float | None = None
    """Maximum number of tokens; `None` if unlimited."""

    def of(self, options: Mapping[str, Any]) -> Range:
        """Return the answer length for requests with these options."""
        limit = options.get("max_tokens")
        limit = float(limit) if isinstance(limit, int | float) and not isinstance(limit, bool) else math.inf
        high = min(limit, math.inf if self.most is None else self.most)
        return Range(0, math.nan if self.mean is None else min(self.mean, high), high)


@dataclass
class ModelCost:
    """Estimated use of one model."""

    key: str
    """AI GO key; empty for the evaluated model."""
    name: str | None
    """Model name for the engine; `None` if not chosen yet."""
    counter: TokenCounter
    calls: Range = NOTHING
    prompt: Range = NOTHING
    """Input tokens of all requests."""
    answers: Range = NOTHING
    """Output tokens of all answers."""
    price: Price | None = None

    def cost(self) -> Range | None:
        """Return the cost in the currency of the price table; `None` if it has no price of the model."""
        if self.price is None:
            return None
        return self.prompt * (self.price.input / 1e6) + self.answers * (self.price.output / 1e6)


@dataclass
class PlanCost:
    """Estimated use of all models of a plan."""

    plan: TaskPlan
    num_runs: int
    models: list[ModelCost] = field(default_factory=list)
    problems: int = 0
    """Number of samples whose prompts fail. They cost nothing."""


def plan_cost(
    plan: TaskPlan,
    names: Mapping[str, str],
    prices: PriceTable | None,
    answer: AnswerLength,
    num_runs: int = 1,
) -> PlanCost:
    """Estimate the model calls, tokens and cost of a plan.

    Args:
        plan: the plan.
        names: AI GO model key (`""` for the evaluated model) → model name for the engine, for known models.
        prices: price table; `None` if prices are unknown.
        answer: length of answers.
        num_runs: number of times that the whole task runs.
    """
    keys = [*([""] if plan.calls_model else []), *plan.model_keys]
    models = {key: ModelCost(key, names.get(key), token_counter(names.get(key))) for key in keys}
    cost = PlanCost(plan, num_runs)
    if plan.entity != "system":
        walk = _Walk(plan, models, answer)
        for preview, sample in zip(explain(plan, len(plan.samples)), plan.samples, strict=True):
            if preview.problem is None:
                walk.sample(preview, sample)
            elif walk.may_be_asked():
                walk.doubtful_sample()
            else:
                cost.problems += 1
    times = float(plan.num_trials * num_runs)
    for model in models.values():
        model.calls, model.prompt, model.answers = (
            model.calls * times,
            model.prompt * times,
            model.answers * times,
        )
        model.price = None if prices is None else prices.price(model.name, model.key)
    cost.models = list(models.values())
    return cost


class _Walk:
    """Walk through the samples that counts every model call."""

    def __init__(self, plan: TaskPlan, models: Mapping[str, ModelCost], answer: AnswerLength):
        self._plan = plan
        self._models = models
        self._answer = answer
        self._templates: dict[str, SampleTemplate] = {}

    def sample(self, preview: SamplePreview, sample: Sample) -> None:
        """Count all calls of one trial of a sample."""
        solver = self._plan.benchmark.solver
        if solver is not None:
            self._solve(solver, preview, sample)
        rows = UNKNOWN if solver is not None and solver.postprocessor is not None else ONCE
        for scorer, shown in zip(self._plan.benchmark.scorers, preview.scorers, strict=True):
            if scorer.judge_key is not None and shown.problem is None:
                self._judge(scorer, shown, rows)

    def may_be_asked(self) -> bool:
        """Return whether an input that is not a chat may be valid for a model of another kind."""
        builder = getattr(self._plan.benchmark.solver, "input_builder", None)
        return isinstance(builder, solver_spec.GenericInputBuilder)

    def doubtful_sample(self) -> None:
        """Count all calls of one trial of a sample whose input only a model of another kind accepts."""
        self._call("", _AT_MOST_ONCE, UNKNOWN, UNKNOWN)
        for scorer in self._plan.benchmark.scorers:
            if scorer.judge_key is not None:
                self._call(str(scorer.judge_key), UNKNOWN, UNKNOWN, self._answer.of({}))

    def _call(self, key: str, times: Range, prompt: Range, answer: Range) -> None:
        model = self._models.get(key)
        if model is None:
            return
        model.calls = model.calls + times
        model.prompt = model.prompt + times * prompt
        model.answers = model.answers + times * answer

    # Solvers

    def _solve(self, solver: solver_spec.SolverSpec, preview: SamplePreview, sample: Sample) -> None:
        counter = self._counter("")
        match solver:
            case solver_spec.SingleTurnSolver():
                self._single(preview, counter)
            case solver_spec.GroupedSingleTurnSolver():
                for request in GroupedSingleTurn(solver).requests(sample.data).values():
                    texts = [str(message.content) for message in request.input.messages]
                    prompt = counter.messages(texts) + REQUEST
                    self._call("", ONCE, prompt, self._answer.of(request.options))
            case solver_spec.MultiTurnSolver():
                self._turns(solver.message_builders, NOTHING, ONCE, sample)
            case solver_spec.PassThroughSolver():
                pass
            case solver_spec.AgentSolver():
                opening = counter.messages(m.content for m in preview.messages if m.role in _SPOKEN)
                most = float(int(solver.message_limit))
                prompt = Range(opening.low, math.nan, math.inf)
                self._call("", Range(1, math.nan, most), prompt, self._answer.of({}))
            case _:
                # The author's code may call any model any number of times.
                for key in ("", *solver.model_keys()):
                    self._call(key, UNKNOWN, UNKNOWN, self._answer.of({}))

    def _single(self, preview: SamplePreview, counter: TokenCounter) -> None:
        texts = [message.content for message in preview.messages if message.role in _SPOKEN]
        if any(message.content == LIKELIHOODS for message in preview.messages):
            weighs_alone = any(scorer.weighs_unconditioned for scorer in self._plan.benchmark.scorers)
            prompt = counter.messages(texts)
            # The continuations are also input tokens. Their number equals the number of choices.
            self._call(
                "", ONCE * (2.0 if weighs_alone else 1.0), Range(prompt.low, math.nan, math.inf), NOTHING
            )
            return
        if texts and texts[-1] == ANSWER:
            texts.pop()
        self._call("", ONCE, counter.messages(texts) + REQUEST, self._answer.of(preview.options))

    def _turns(
        self, builders: Sequence[solver_spec.MessageBuilder], said: Range, times: Range, sample: Sample
    ) -> tuple[Range, Range]:
        """Return the tokens of the conversation after some steps, and how often it reaches the end of
        them.
        """
        for builder in builders:
            match builder:
                case solver_spec.ChatMessageBuilder():
                    said = said + self._counter("").text(self._rendered(builder.content, sample)) + MESSAGE
                case solver_spec.GenerateBuilder():
                    answer = self._answer.of({})
                    self._call("", times, said + REQUEST, answer)
                    said = said + answer + MESSAGE
                case solver_spec.GenerateMessageBuilder():
                    counter = self._counter(builder.model_key)
                    extra = [self._rendered(m.content, sample) for m in builder.extra_input_messages]
                    history = (said if builder.include_conversation else NOTHING) + counter.messages(extra)
                    answer = self._answer.of({})
                    self._call(builder.model_key, times, history + REQUEST, answer)
                    said = said + answer + MESSAGE
                case solver_spec.LoadTraceBuilder():
                    recorded = self._counter("").text(str(sample.data.get(builder.trace_column, "")))
                    said = said + Range(0, math.nan, recorded.high)
                case solver_spec.LoopBuilder():
                    # The first iteration always runs, so its tokens are the lower bound.
                    said, times = self._loop(builder, said, times, sample)
            if getattr(builder, "terminate_if", None) is not None:
                times = times * _AT_MOST_ONCE
        return said, times

    def _loop(
        self, builder: solver_spec.LoopBuilder, said: Range, times: Range, sample: Sample
    ) -> tuple[Range, Range]:
        inner, start = times, said
        for _ in range(int(builder.max_iterations)):
            said, inner = self._turns(builder.message_builders, said, inner, sample)
        # A met condition ends the loop but not the steps after it. Too many iterations may be an error.
        may_fail = builder.on_max_iterations == "error"
        return Range(start.low, math.nan, said.high), times * _AT_MOST_ONCE if may_fail else times

    def _rendered(self, template: str, sample: Sample) -> str:
        if template not in self._templates:
            self._templates[template] = SampleTemplate(template)
        try:
            return self._templates[template].render(sample=sample.data)
        except (SampleError, TemplateError):
            return template

    # Judges

    def _judge(self, scorer: Any, shown: ScorerPreview, rows: Range) -> None:
        key = str(scorer.judge_key)
        if scorer_type(scorer).first_input is None or any(m.role == "note" for m in shown.messages):
            many = UNKNOWN if scorer_type(scorer).first_input is None else Range(1, 1, MAX_ATTEMPTS)
            self._call(key, rows * many, UNKNOWN, self._answer.of({}))
            return
        if not shown.messages:
            self._call(key, rows * Range(1, 1, MAX_ATTEMPTS), UNKNOWN, self._answer.of({}))
            return
        counter = self._counter(key)
        answer = self._answer.of({})
        prompt = REQUEST
        for message in shown.messages:
            instructions = message.content.replace(ANSWER, "")
            times = float(message.content.count(ANSWER))
            prompt = prompt + counter.text(instructions) + MESSAGE + self._answer.of({}) * times
        again = Range(0, 0, answer.high) + _ASKED_AGAIN
        self._call(key, rows * Range(1, 1, MAX_ATTEMPTS), prompt + again, answer)

    def _counter(self, key: str) -> TokenCounter:
        model = self._models.get(key)
        return token_counter(None) if model is None else model.counter


_SPOKEN = frozenset({"user", "system", "assistant"})


def total(costs: Sequence[PlanCost]) -> Range | None:
    """Return the cost of all plans; `None` if a model that is called is not in the price table."""
    money = NOTHING
    for model in asked_models(costs):
        cost = model.cost()
        if cost is None:
            return None
        money = money + cost
    return money


def asked_models(costs: Sequence[PlanCost]) -> Iterator[ModelCost]:
    """Return the models that may be called."""
    return (model for cost in costs for model in cost.models if model.calls.high > 0)


def cost_json(costs: Sequence[PlanCost], prices: PriceTable | None) -> dict[str, Any]:
    """Return a JSON-serializable dictionary of the costs."""
    money = total(costs) if prices is not None else None
    return {
        "currency": None if prices is None else prices.currency,
        "total": None if money is None else money.to_json(),
        "tasks": [
            {
                "task": cost.plan.name,
                "samples": len(cost.plan.samples),
                "trials": cost.plan.num_trials,
                "runs": cost.num_runs,
                "failing_samples": cost.problems,
                "models": [_model_json(model) for model in cost.models],
            }
            for cost in costs
        ],
    }


def _model_json(model: ModelCost) -> dict[str, Any]:
    money = model.cost()
    return {
        "key": model.key,
        "name": model.name,
        "calls": model.calls.to_json(),
        "prompt_tokens": model.prompt.to_json(),
        "answer_tokens": model.answers.to_json(),
        "tokens": model.counter.how,
        "price": None if model.price is None else model.price.model,
        "cost": None if money is None else money.to_json(),
    }
