"""Preview of a plan: every prompt exactly as it will be sent, without calling a model or running a snippet.

Model answers are unknown, so later prompts that use an answer contain a placeholder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    GroupedSolverTrace,
    SolverOutput,
    SolverTrace,
    Trace,
)
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.metrics.metric import default_metrics, metric_keys
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.planning.checks import OUTPUT_NAMES
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_bridge.scoring.registry import scorer_keys, scorer_type
from aigo_bridge.scoring.variables import variables
from aigo_bridge.solving.conversation import assistant_item, compile_input, input_item
from aigo_bridge.solving.registry import solver_type
from aigo_bridge.solving.solvers import GroupedSingleTurn, PassThrough
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.templates import SampleTemplate

ANSWER = "⟨the model's answer⟩"
"""Placeholder for the answer of the evaluated model."""

LIKELIHOODS = "the likelihoods of the continuations are compared; no text is generated"


@dataclass(frozen=True)
class PromptMessage:
    """Message as it will be sent, or a note in its place."""

    role: str
    """`user`, `system` or `assistant`; `note` for a note."""
    content: str


@dataclass(frozen=True)
class ScorerPreview:
    """Preview of one scorer on one sample."""

    key: str
    type: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Rendered fields, for example the ground truth."""
    messages: tuple[PromptMessage, ...] = ()
    """Messages to a judge."""
    response_format: Mapping[str, Any] | None = None
    """JSON schema for the answer of a judge."""
    problem: str | None = None
    """Reason why the scorer cannot be previewed or will fail."""


@dataclass(frozen=True)
class SamplePreview:
    """Preview of one sample."""

    id: str | int
    data: Mapping[str, Any]
    messages: tuple[PromptMessage, ...]
    """Conversation, with placeholders for answers."""
    options: Mapping[str, Any]
    """Generation options that the input requests."""
    scorers: tuple[ScorerPreview, ...]
    problem: str | None = None
    """Reason why the input will fail."""


def explain(plan: TaskPlan, num_samples: int) -> Iterator[SamplePreview]:
    """Yield previews of the first samples of a plan."""
    solver = plan.benchmark.solver
    ask = _steps(solver) if solver is not None else None
    for sample in plan.samples[:num_samples]:
        conversation = KnownConversation()
        problem = None
        try:
            if ask is not None:
                conversation = ask(sample)
        except (SampleError, TemplateError) as error:
            problem = str(error)
        messages = conversation.messages
        compared = by_likelihood(plan.benchmark.scorers)
        if messages and compared and len(compared) == len(plan.benchmark.scorers):
            # Other scorers that read the answer are missing, so no answer is requested.
            messages = (*messages[:-1], PromptMessage("note", LIKELIHOODS))
        output = None if solver is None else conversation.output or _placeholder(messages)
        if solver is not None and solver.postprocessor is not None:
            messages = (
                *messages,
                PromptMessage("note", "the `postprocess` code of the task creates the scored rows"),
            )
            scorers = tuple(_of_unknown_rows(plan))
        else:
            recorded = isinstance(solver, solver_spec.PassThroughSolver)
            against = getattr(getattr(solver, "input_builder", None), "unconditioned_query", None)
            seen = _Seen(sample, output, conversation.known, recorded, unconditioned_query=against)
            scorers = tuple(_scorers(plan, seen))
        yield SamplePreview(sample.id, sample.data, messages, conversation.options, scorers, problem)


def metric_names(plan: TaskPlan) -> list[tuple[str, str, str]]:
    """Return (scorer key, metric key, description) of every metric, including default metrics if known."""
    rows: list[tuple[str, str, str]] = []
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        metrics = scorer.metrics if scorer.metrics is not None else default_metrics(scorer.type, [])
        for metric, name in zip(metrics, metric_keys(metrics), strict=True):
            described = metric.model_dump(mode="json", exclude_unset=True, exclude={"key", "type"})
            rows.append((key, name, ", ".join(f"{k}: {v}" for k, v in described.items())))
        if not metrics and scorer.metrics is None:
            rows.append((key, "mean", "of every number and boolean that it returns"))
    return rows


@dataclass(frozen=True)
class KnownConversation:
    """Known part of a solver's conversation before a model is called."""

    messages: tuple[PromptMessage, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    output: SolverOutput | None = None
    """Output for the scorers, if it contains more than the messages with a placeholder for the answer."""
    known: bool = True
    """Whether the messages match the run except for model answers. If not, even their number is unknown."""


@dataclass(frozen=True)
class _Seen:
    """Known part of the input of scorers."""

    sample: Sample
    output: SolverOutput | None
    messages_known: bool
    answers_known: bool
    """Whether the conversation is free of placeholders, so that a template that fails here also fails in the
    run.
    """
    unconditioned_query: str | None = None
    """Template of the query without context for comparing choices; `None` if unused."""

    def shown(self, text: str) -> str:
        """Return a rendered template, or the template text if the values it needs are not known yet.

        Raises:
            TemplateError: the template will fail in the run.
        """
        template = SampleTemplate(text)
        if not _reads_output(template):
            return template.render(sample=self.sample.data)
        if not self.messages_known:
            return text
        try:
            return template.render(**variables(self.sample, self.output))
        except TemplateError:
            if self.answers_known:
                raise
            return text


def _reads_output(template: SampleTemplate) -> bool:
    return any(name[0] in OUTPUT_NAMES for name in template.reads | template.optional_reads)


Steps = Callable[[Sample], KnownConversation]


def _steps(solver: solver_spec.SolverSpec) -> Steps:
    """Return the part of a solver's conversation that is known before a model is called."""
    match solver:
        case solver_spec.SingleTurnSolver():
            build = compile_input(solver.input_builder)
            return lambda sample: _opened(build(sample.data))
        case solver_spec.MultiTurnSolver():
            is_known = not any(isinstance(builder, _OPEN_ENDED) for builder in solver.message_builders)
            return lambda sample: KnownConversation(
                tuple(_built(solver.message_builders, sample)), known=is_known
            )
        case solver_spec.PassThroughSolver():
            passed = PassThrough(solver)
            return lambda sample: _recorded(passed.output(sample.data), solver.trace_column)
        case solver_spec.GroupedSingleTurnSolver():
            group = GroupedSingleTurn(solver)
            return lambda sample: _group(group.requests(sample.data))
        case solver_spec.PythonSolver():
            note = PromptMessage("note", "the `run_solver` code of the task creates the conversation")
            return lambda _: KnownConversation((note,), known=False)
    opening = solver_type(solver).opening(solver)
    if opening is None:
        note = PromptMessage("note", f"{solver.type!r} creates the conversation during the run")
        return lambda _: KnownConversation((note,), known=False)
    return lambda sample: replace(_opened(opening(sample.data)), known=False)


def _opened(request: ModelRequest) -> KnownConversation:
    return KnownConversation((*_messages(request.input), PromptMessage("assistant", ANSWER)), request.options)


_OPEN_ENDED = (
    solver_spec.LoopBuilder,
    solver_spec.GenerateMessageBuilder,
    solver_spec.LoadTraceBuilder,
)
"""Steps that add an unknown number of messages."""


def _recorded(output: SolverTrace, column: str) -> KnownConversation:
    messages = [
        PromptMessage(str(getattr(message, "role", "note")), str(getattr(message, "content", message)))
        for message in output.messages
    ]
    note = PromptMessage("note", f"the recorded trace in column {column!r}; no model is called")
    return KnownConversation((note, *messages), output=output)


def _group(requests: Mapping[str | int, ModelRequest]) -> KnownConversation:
    messages: list[PromptMessage] = []
    outputs: dict[str | int, SolverTrace] = {}
    for name, request in requests.items():
        sent = (*_messages(request.input), PromptMessage("assistant", ANSWER))
        messages += [PromptMessage("note", f"input {name!r} of the group"), *sent]
        outputs[name] = _placeholder(sent)
    listed = all(isinstance(name, int) for name in outputs)
    group = list(outputs.values()) if listed else {str(name): trace for name, trace in outputs.items()}
    return KnownConversation(tuple(messages), output=GroupedSolverTrace(solver_outputs=group))


def _built(builders: Sequence[solver_spec.MessageBuilder], sample: Sample) -> Iterator[PromptMessage]:
    for builder in builders:
        match builder:
            case solver_spec.ChatMessageBuilder():
                yield PromptMessage(
                    str(builder.role), SampleTemplate(builder.content).render(sample=sample.data)
                )
            case solver_spec.GenerateBuilder():
                yield PromptMessage("assistant", ANSWER)
            case solver_spec.GenerateMessageBuilder():
                role = str(builder.output_role or "assistant")
                yield PromptMessage(role, f"⟨an answer of {builder.model_key}, from an additional call:⟩")
                for message in _built(builder.extra_input_messages, sample):
                    yield PromptMessage("note", f"{message.role}: {message.content}")
            case solver_spec.LoopBuilder():
                yield PromptMessage("note", f"up to {builder.max_iterations} times:")
                yield from _built(builder.message_builders, sample)
            case solver_spec.LoadTraceBuilder():
                yield PromptMessage("note", f"the recorded trace in column {builder.trace_column!r}")


def _messages(chat: ChatCompletionInput) -> Iterator[PromptMessage]:
    for message in chat.messages:
        yield PromptMessage(message.role, message.content if isinstance(message.content, str) else "⟨files⟩")


def _placeholder(messages: Sequence[PromptMessage]) -> SolverTrace:
    """Return a solver output with a placeholder for the answer."""
    spoken = [m for m in messages if m.role in ("user", "system", "assistant")]
    if not spoken or spoken[-1].role != "assistant":
        spoken.append(PromptMessage("assistant", ANSWER))
    items = [
        assistant_item(message.content)
        if message.role == "assistant"
        else input_item(ChatCompletionInputMessage(role=message.role, content=message.content))
        for message in spoken
    ]
    answer = ChatCompletionOutputMessage(role="assistant", content=spoken[-1].content)
    raw = ChatCompletionModelOutput(choices=[ChatCompletionModelOutputChoice(message=answer)])
    return SolverTrace(trace=Trace(items=items), raw_outputs=[raw], direct_ios=[])


def _scorers(plan: TaskPlan, seen: _Seen) -> Iterator[ScorerPreview]:
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        try:
            yield _scorer(scorer, key, seen)
        except (SampleError, TemplateError) as error:
            yield ScorerPreview(key, scorer.type, problem=str(error))


def _of_unknown_rows(plan: TaskPlan) -> Iterator[ScorerPreview]:
    """Yield previews of scorers for rows that the post-processor creates. Only their templates are known."""
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        yield ScorerPreview(key, scorer.type, dict(_shown_fields(scorer)))


def _shown_fields(scorer: ScorerSpec) -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in scorer.rendered() if name in scorer.previewed)


def _scorer(scorer: ScorerSpec, key: str, seen: _Seen) -> ScorerPreview:
    kind = scorer_type(scorer)
    if kind.first_input is not None:
        return _judge(scorer, kind.first_input, key, seen)
    fields = {name: seen.shown(text) for name, text in _shown_fields(scorer)}
    fields |= kind.preview(scorer, seen.sample.data)
    if scorer.weighs_unconditioned and seen.unconditioned_query is not None:
        fields["unconditioned_query"] = seen.shown(seen.unconditioned_query)
    return ScorerPreview(key, scorer.type, fields)


def _judge(
    scorer: ScorerSpec,
    first_input: Callable[[Any, Sample, SolverOutput | None], ChatCompletionInput],
    key: str,
    seen: _Seen,
) -> ScorerPreview:
    reads_output = any(_reads_output(SampleTemplate(prompt)) for _, prompt in scorer.rendered())
    try:
        if reads_output and not seen.messages_known:
            return _unrendered_judge(scorer, key, seen)
        chat = first_input(scorer, seen.sample, seen.output)
    except SampleError:
        if seen.answers_known or not reads_output:
            raise
        return _unrendered_judge(scorer, key, seen)
    response_format = chat.response_format
    return ScorerPreview(
        key,
        scorer.type,
        messages=tuple(_messages(chat)),
        response_format=None if response_format is None else response_format.model_dump(mode="json"),
    )


def _unrendered_judge(scorer: ScorerSpec, key: str, seen: _Seen) -> ScorerPreview:
    """Return the known part of a judge's prompts. The format of its answer is unknown."""
    note = PromptMessage("note", "the judge prompts depend on the run, so they are shown as templates")
    prompts = (
        PromptMessage(name.removesuffix("_prompt"), seen.shown(text)) for name, text in scorer.rendered()
    )
    return ScorerPreview(key, scorer.type, messages=(note, *prompts))
