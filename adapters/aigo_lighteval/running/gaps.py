"""Gaps between plans and lighteval's own backends, reported before any model is loaded.

A lighteval document contains one question per sample, as text only (see `backends.question`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Fidelity, Gap, Job
from aigo_bridge.engine.recording import PREFIX as CASSETTE
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_bridge.solving.conversation import compile_input
from aigo_bridge.solving.solvers import GroupedSingleTurn
from aigo_bridge.spec import solvers as solver_spec
from aigo_lighteval.models.backends import (
    BACKENDS,
    PREFIX,
    Backend,
    ModelString,
    backend_model,
    message_problem,
    option_problem,
)

_Asking = solver_spec.SingleTurnSolver | solver_spec.GroupedSingleTurnSolver

SERVED = (
    "run the model on a server and set its address, e.g. vllm/NAME with VLLM_BASE_URL;"
    " or use --engine inspect"
)


def refuse_gaps(jobs: Sequence[Job], *, chat_templates: Mapping[str, bool] | None = None) -> None:
    """Check that the chosen models support the requests of the plans.

    Args:
        jobs: plans with their models.
        chat_templates: whether each loaded model has a chat template, by name; `None` before models are
            loaded.

    Raises:
        UnsupportedPlanError: a model does not support a plan. The message lists all gaps.
        UsageError: a model string cannot be parsed.
    """
    lines = [
        f"  - {gap.part}: {gap.reason}{f' ({gap.hint})' if gap.hint else ''}"
        for job in jobs
        if chat_templates is None or _has_news(job, chat_templates)
        for gap in model_gaps(job, chat_templates or {})
    ]
    if lines:
        raise UnsupportedPlanError(
            "\n".join(["the task cannot be run as written with these models:", *dict.fromkeys(lines)]),
            code=Code.ENGINE_GAP,
        )


def _has_news(job: Job, chat_templates: Mapping[str, bool]) -> bool:
    """Return whether a loaded model differs from the information in its folder."""
    models = [backend_model(name) for name in (job.model, *job.model_map.values())]
    return any(
        candidate is not None
        and chat_templates.get(candidate.name) not in (None, candidate.has_chat_template())
        for candidate in models
    )


def model_gaps(job: Job, chat_templates: Mapping[str, bool]) -> list[Gap]:
    """Return the requests of a job that its models do not support."""
    plan = job.plan
    if plan.entity == "system":
        return []
    gaps: list[Gap] = []
    evaluated = backend_model(job.model)
    if evaluated is not None:
        chat = chat_templates.get(evaluated.name, evaluated.has_chat_template())
        gaps += evaluated_gaps(plan, evaluated, chat=chat)
    elif job.model is not None and job.model.startswith(CASSETTE):
        pass  # the recorded calls decide, one by one
    elif plan.calls_model and job.model is not None and by_likelihood(plan.benchmark.scorers):
        reason = f"model {job.model!r} returns texts, but no likelihoods of given texts"
        backends = " or ".join(
            f"{PREFIX}{name}" if backend.has_server_name else name
            for name, backend in BACKENDS.items()
            if backend.tells_likelihoods
        )
        hint = f"use a model of the backend {backends}, e.g. transformers/PATH"
        gaps.append(Gap("scorers (string_equals_mcqa, loglikelihood)", reason, Fidelity.UNSUPPORTED, hint))
    for key in plan.model_keys:
        model = backend_model(job.model_map.get(key))
        if model is not None:
            chat = chat_templates.get(model.name, model.has_chat_template())
            gaps += other_gaps(plan, key, model, chat=chat)
    return gaps


def evaluated_gaps(plan: TaskPlan, model: ModelString, *, chat: bool | None) -> list[Gap]:
    """Return the gaps between a plan and a backend for its evaluated model.

    Args:
        plan: the plan.
        model: the model.
        chat: whether it has a chat template; `None` if unknown.
    """
    if not plan.calls_model:
        return []
    backend = model.backend
    solver = plan.benchmark.solver
    match solver:
        case solver_spec.SingleTurnSolver() | solver_spec.GroupedSingleTurnSolver():
            problems = [
                ("solver.input_builder", text) for text in _input_problems(plan, solver, backend, model, chat)
            ]
        case None:
            problems = []
        case _:
            reason = "a document is one question with one answer; lighteval cannot continue the conversation"
            problems = [(f"solver ({solver.type})", reason)]
    if not backend.tells_likelihoods:
        problems += [
            (
                f"scorers[{number}] (string_equals_mcqa, loglikelihood)",
                "it does not return reliable likelihoods",
            )
            for number, scorer in enumerate(plan.benchmark.scorers)
            if scorer.compares_likelihoods
        ]
    return [_gap(part, reason, backend) for part, reason in problems]


def other_gaps(plan: TaskPlan, key: str, model: ModelString, *, chat: bool | None) -> list[Gap]:
    """Return the gaps between a plan and a backend for another model of the plan, for example its judge.

    Args:
        plan: the plan.
        key: key of the model in the plan.
        model: the model.
        chat: whether it has a chat template; `None` if unknown.
    """
    backend = model.backend
    gaps: list[Gap] = []
    if key in plan.solver_model_keys:
        gaps.append(_gap("solver", f"it calls {key!r} during a conversation", backend))
    for number, scorer in enumerate(plan.benchmark.scorers):
        part = f"scorers[{number}] ({scorer.type})"
        if scorer.judge_key != key:
            continue
        if scorer.asks_for_json:
            gaps.append(_gap(part, "documents do not support structured outputs", backend))
        if chat is False:
            gaps.append(
                _gap(
                    part,
                    "the model does not have a chat template, so it cannot receive a system message",
                    backend,
                )
            )
    return gaps


def _input_problems(
    plan: TaskPlan, solver: _Asking, backend: Backend, model: ModelString, chat: bool | None
) -> Iterator[str]:
    builder = solver.input_builder
    if isinstance(builder, solver_spec.ChatInputBuilder):
        # The roles are the same for every row. Chat input builders do not set options.
        problem = message_problem([message.role for message in builder.input_messages], chat=chat)
        if problem is not None:
            yield problem
        return
    generation = _written(model)
    seen: set[str] = set()
    for request in _requests(plan, solver):
        problem = message_problem([message.role for message in request.input.messages], chat=chat)
        problem = problem or option_problem(request, backend, generation)
        if problem is not None and problem not in seen:
            seen.add(problem)
            yield problem


def _requests(plan: TaskPlan, solver: _Asking) -> Iterator[ModelRequest]:
    """Yield the requests of all samples. Rows that cannot be rendered are skipped because they fail with any
    model.
    """
    group = GroupedSingleTurn(solver) if isinstance(solver, solver_spec.GroupedSingleTurnSolver) else None
    build = compile_input(solver.input_builder)
    for sample in plan.samples:
        try:
            yield from [build(sample.data)] if group is None else group.requests(sample.data).values()
        except SampleError:
            continue


def _written(model: ModelString) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, text in model.settings.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return numbers


def _gap(part: str, reason: str, backend: Backend) -> Gap:
    return Gap(part, f"lighteval's {backend.name} backend: {reason}", Fidelity.UNSUPPORTED, SERVED)
