"""What of a plan lighteval's own backends can carry out exactly; found out from the plan, before anything is loaded.

One question per sample, text only: that is what a document can say. `documents` builds it from the same rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aigo_bridge.dtypes import ChatCompletionResponseFormatJSONSchema
from aigo_bridge.engine import Fidelity, Gap, Job
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models import ModelRequest
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_bridge.solving.grouped import GroupedSingleTurn
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.spec import solvers as solver_spec
from aigo_lighteval.backends import BACKENDS, PREFIX, Backend, BackendModel, backend_model

_Asking = solver_spec.SingleTurnSolver | solver_spec.GroupedSingleTurnSolver

SERVED = "serve the model, and name its address, e.g. vllm/NAME with VLLM_BASE_URL; or run it with --engine inspect"


def refuse_gaps(jobs: Sequence[Job], *, chat_templates: Mapping[str, bool] | None = None) -> None:
    """Make sure that the models which were chosen for plans can be asked what the plans ask.

    Args:
        jobs: plans with their models.
        chat_templates: whether a loaded model has one, by its name; `None` before any is loaded.

    Raises:
        UnsupportedPlanError: some cannot; the message lists all.
        UsageError: a model string cannot be taken apart.
    """
    lines = [
        f"  - {gap.part}: {gap.reason}{f' ({gap.hint})' if gap.hint else ''}"
        for job in jobs
        if chat_templates is None or _has_news(job, chat_templates)
        for gap in model_gaps(job, chat_templates or {})
    ]
    if lines:
        raise UnsupportedPlanError(
            "\n".join(["the task cannot be run as written with these models:", *dict.fromkeys(lines)])
        )


def _has_news(job: Job, chat_templates: Mapping[str, bool]) -> bool:
    """Whether a model of the job has turned out to be other than its folder said; looking at every row again takes its time."""
    models = [backend_model(name) for name in (job.model, *job.model_map.values())]
    return any(
        each is not None and chat_templates.get(each.name) not in (None, each.has_chat_template())
        for each in models
    )


def model_gaps(job: Job, chat_templates: Mapping[str, bool]) -> list[Gap]:
    """What the models of a job cannot be asked."""
    plan = job.plan
    if plan.entity == "system":
        return []
    gaps: list[Gap] = []
    evaluated = backend_model(job.model)
    if evaluated is not None:
        chat = chat_templates.get(evaluated.name, evaluated.has_chat_template())
        gaps += evaluated_gaps(plan, evaluated, chat=chat)
    elif plan.calls_model and job.model is not None and by_likelihood(plan.benchmark.scorers):
        reason = f"model {job.model!r} says texts, and not how likely given texts are"
        backends = " or ".join(
            f"{PREFIX}{name}" if backend.has_server_name else name
            for name, backend in BACKENDS.items()
            if backend.tells_likelihoods
        )
        hint = f"use a model of the backend {backends}, e.g. transformers/PATH"
        gaps.append(Gap("scorers (string_equals_mcqa, loglikelihood)", reason, Fidelity.UNSUPPORTED, hint))
    for key in plan.model_keys:
        other = backend_model(job.model_map.get(key))
        if other is not None:
            chat = chat_templates.get(other.name, other.has_chat_template())
            gaps += other_gaps(plan, key, other, chat=chat)
    return gaps


def evaluated_gaps(plan: TaskPlan, asked: BackendModel, *, chat: bool | None) -> list[Gap]:
    """What a backend cannot do as the evaluated model of a plan.

    Args:
        plan: the plan.
        asked: the model.
        chat: whether it has a template for chats; `None`: nobody knows yet.
    """
    if not plan.calls_model:
        return []
    backend = asked.backend
    solver = plan.benchmark.solver
    match solver:
        case solver_spec.SingleTurnSolver() | solver_spec.GroupedSingleTurnSolver():
            problems = [
                ("solver.input_builder", text) for text in _input_problems(plan, solver, backend, asked, chat)
            ]
        case None:
            problems = []
        case _:
            reason = "a document is one question with one answer; how the conversation goes on, lighteval does not ask"
            problems = [(f"solver ({solver.type})", reason)]
    if not backend.tells_likelihoods:
        problems += [
            (
                f"scorers[{number}] (string_equals_mcqa, loglikelihood)",
                "it tells no likelihoods that can be trusted",
            )
            for number, scorer in enumerate(plan.benchmark.scorers)
            if getattr(scorer, "method", None) == "loglikelihood"
        ]
    return [_gap(part, reason, backend) for part, reason in problems]


def other_gaps(plan: TaskPlan, key: str, asked: BackendModel, *, chat: bool | None) -> list[Gap]:
    """What a backend cannot do as another model of a plan, e.g. its judge.

    Args:
        plan: the plan.
        key: under which the plan names the model.
        asked: the model.
        chat: as in `evaluated_gaps`.
    """
    backend = asked.backend
    gaps: list[Gap] = []
    if key in plan.solver_model_keys:
        gaps.append(_gap("solver", f"it asks {key!r} in the course of a conversation", backend))
    for number, scorer in enumerate(plan.benchmark.scorers):
        part = f"scorers[{number}] ({scorer.type})"
        if getattr(scorer, "model_key", None) == key and getattr(scorer, "use_structured_outputs", False):
            gaps.append(_gap(part, "documents have no word for structured outputs", backend))
        judged = isinstance(scorer, scorer_spec.RagCheckerScorer) and scorer.judge_model_key == key
        if chat is False and (judged or getattr(scorer, "model_key", None) == key):
            gaps.append(
                _gap(
                    part,
                    "the model has no chat template, so it would not see a system message as one",
                    backend,
                )
            )
    return gaps


def message_problem(roles: Sequence[str], *, chat: bool | None) -> str | None:
    """Why a chat of these roles is no document; `None`: it is one.

    Args:
        roles: of the messages.
        chat: whether messages are written in the model's own form.
    """
    spoken = list(roles[1:] if roles[:1] == ["system"] else roles)
    if not spoken or spoken[-1] != "user":
        return "its last message is not the user's"
    if spoken != [("user", "assistant")[number % 2] for number in range(len(spoken))]:
        return "its messages are not a question behind examples, by user and assistant in turn"
    if chat is False and len(roles) > 1:
        return "the model has no chat template, so there is no form for more than one message"
    return None


def option_problem(request: ModelRequest, backend: Backend, generation: Mapping[str, Any]) -> str | None:
    """Why a request's options have no place in a document, or would not reach the model; `None`: they have.

    Args:
        request: what is asked.
        backend: who is asked.
        generation: generation parameters that the backend was given, by lighteval's names.
    """
    options = request.options
    if isinstance(request.input.response_format, ChatCompletionResponseFormatJSONSchema):
        return "documents have no word for structured outputs"
    size, stop = options.get("max_tokens"), options.get("stop")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 1):
        return f"max_tokens: found {size!r}, expected a whole number from 1"
    if stop is not None and not (
        isinstance(stop, str) or (isinstance(stop, list) and all(isinstance(text, str) for text in stop))
    ):
        return f"stop: found {stop!r}, expected a text or a list of texts"
    if size is not None and not backend.takes_length:
        return "a request's max_tokens does not reach the model as it is; write it in the model string, max_new_tokens=N"
    own = {"temperature": 0.0, **generation}
    for name, value in options.items():
        if value is None or name in ("max_tokens", "stop") or (name == "logprobs" and value is False):
            continue
        if name in ("logprobs", "top_logprobs"):
            return f"documents have no word for {name}"
        if own.get(name) != value:
            return f"documents have no word for {name}={value}; the model's own is {own.get(name)}: write it in the model string"
    return None


def _input_problems(
    plan: TaskPlan, solver: _Asking, backend: Backend, asked: BackendModel, chat: bool | None
) -> Iterator[str]:
    builder = solver.input_builder
    if isinstance(builder, solver_spec.ChatInputBuilder):
        # The same roles for every row, and no options.
        problem = message_problem([message.role for message in builder.input_messages], chat=chat)
        if problem is not None:
            yield problem
        return
    generation = _written(asked)
    seen: set[str] = set()
    for request in _requests(plan, solver):
        problem = message_problem([message.role for message in request.input.messages], chat=chat)
        problem = problem or option_problem(request, backend, generation)
        if problem is not None and problem not in seen:
            seen.add(problem)
            yield problem


def _requests(plan: TaskPlan, solver: _Asking) -> Iterator[ModelRequest]:
    """What will be asked; a row that cannot be rendered is an error of its own, whoever is asked."""
    group = GroupedSingleTurn(solver) if isinstance(solver, solver_spec.GroupedSingleTurnSolver) else None
    build = compile_input(solver.input_builder)
    for sample in plan.samples:
        try:
            yield from [build(sample.data)] if group is None else group.requests(sample.data).values()
        except SampleError:
            continue


def _written(asked: BackendModel) -> dict[str, Any]:
    """Settings of a model string as numbers, where they are."""
    found: dict[str, Any] = {}
    for name, text in asked.settings.items():
        try:
            found[name] = float(text)
        except ValueError:
            continue
    return found


def _gap(part: str, reason: str, backend: Backend) -> Gap:
    return Gap(part, f"lighteval's {backend.name} backend: {reason}", Fidelity.UNSUPPORTED, SERVED)
