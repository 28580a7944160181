"""Preview a plan: every prompt as it will be sent, without calling a model or running a snippet.

What a model would answer is not known, so a placeholder stands for it wherever a later prompt uses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from aigo_bridge.metrics import default_metrics, metric_keys
from aigo_bridge.models import ModelRequest
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.planning_checks import OUTPUT_NAMES
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.scoring.judges import JUDGES
from aigo_bridge.scoring.likelihoods import Choices, by_likelihood, is_weighed_alone
from aigo_bridge.scoring.variables import variables
from aigo_bridge.solving.conversation import assistant_item, input_item
from aigo_bridge.solving.grouped import GroupedSingleTurn
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.solving.recorded import PassThrough
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate

ANSWER = "⟨the model's answer⟩"
"""Stands for what the evaluated model would say."""

LIKELIHOODS = "the likelihoods of the continuations are compared; nothing is generated"

TEXT_FIELDS = ("ground_truth", "ground_truth_choice", "choices", "value", "function_calls")
"""Fields of scorers that are rendered per sample, judges' prompts aside."""


@dataclass(frozen=True)
class Message:
    """A message as it will be sent, or a note in its place."""

    role: str
    """`user`, `system`, `assistant`; `note` for what is not a message."""
    content: str


@dataclass(frozen=True)
class ScorerPreview:
    """What one scorer does with one sample."""

    key: str
    type: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Rendered fields, e.g. the ground truth."""
    messages: tuple[Message, ...] = ()
    """What a judge will be asked."""
    response_format: Mapping[str, Any] | None = None
    """JSON schema that a judge's answer has to follow."""
    problem: str | None = None
    """Why it cannot be shown, or will fail."""


@dataclass(frozen=True)
class SamplePreview:
    """One sample."""

    id: str | int
    data: Mapping[str, Any]
    messages: tuple[Message, ...]
    """The conversation, with placeholders for answers."""
    options: Mapping[str, Any]
    """Generation options that the input asks for."""
    scorers: tuple[ScorerPreview, ...]
    problem: str | None = None
    """Why the input will fail."""


def explain(plan: TaskPlan, num_samples: int) -> Iterator[SamplePreview]:
    """Previews of the first samples of a plan."""
    solver = plan.benchmark.solver
    ask = _steps(solver) if solver is not None else None
    for sample in plan.samples[:num_samples]:
        conversation = Conversation()
        problem = None
        try:
            if ask is not None:
                conversation = ask(sample)
        except (SampleError, TemplateError) as error:
            problem = str(error)
        messages = conversation.messages
        compared = by_likelihood(plan.benchmark.scorers)
        if messages and compared and len(compared) == len(plan.benchmark.scorers):
            # No other scorer looks at an answer, so none is asked for.
            messages = (*messages[:-1], Message("note", LIKELIHOODS))
        output = None if solver is None else conversation.output or _placeholder(messages)
        if solver is not None and solver.postprocessor is not None:
            messages = (
                *messages,
                Message("note", "the author's code `postprocess` makes the rows that are scored"),
            )
            scorers = tuple(_of_unknown_rows(plan))
        else:
            recorded = isinstance(solver, solver_spec.PassThroughSolver)
            against = getattr(getattr(solver, "input_builder", None), "unconditioned_query", None)
            seen = _Seen(sample, output, conversation.known, recorded, unconditioned_query=against)
            scorers = tuple(_scorers(plan, seen))
        yield SamplePreview(sample.id, sample.data, messages, conversation.options, scorers, problem)


def metric_names(plan: TaskPlan) -> list[tuple[str, str, str]]:
    """(scorer key, metric key, what it computes) of every metric, default ones included where they are known."""
    found: list[tuple[str, str, str]] = []
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        metrics = scorer.metrics if scorer.metrics is not None else default_metrics(scorer.type, [])
        for metric, name in zip(metrics, metric_keys(metrics), strict=True):
            described = metric.model_dump(mode="json", exclude_unset=True, exclude={"key", "type"})
            found.append((key, name, ", ".join(f"{k}: {v}" for k, v in described.items())))
        if not metrics and scorer.metrics is None:
            found.append((key, "mean", "of every number and boolean that it gives"))
    return found


@dataclass(frozen=True)
class Conversation:
    """What is known of a solver's work before a model is called."""

    messages: tuple[Message, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    output: SolverOutput | None = None
    """What scorers will see, where it is more than the messages with a placeholder for the answer."""
    known: bool = True
    """Whether the messages are those of the run but for what a model says; otherwise even their number is not known."""


@dataclass(frozen=True)
class _Seen:
    """What is known of that which scorers will see."""

    sample: Sample
    output: SolverOutput | None
    messages_known: bool
    answers_known: bool
    """Whether there are no placeholders, so that a template that fails will fail in the run."""
    unconditioned_query: str | None = None
    """Template of what choices are weighed against; `None`: there is none."""

    def shown(self, text: str) -> str:
        """A template rendered, or as it is where what it asks for is not known yet.

        Raises:
            TemplateError: it will fail in the run.
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


Steps = Callable[[Sample], Conversation]


def _steps(solver: solver_spec.Solver) -> Steps:
    """The conversation of a solver as far as it is known before a model is called."""
    match solver:
        case solver_spec.SingleTurnSolver():
            build = compile_input(solver.input_builder)

            def single(sample: Sample) -> Conversation:
                request = build(sample.data)
                messages = (*_messages(request.input), Message("assistant", ANSWER))
                return Conversation(messages, request.options)

            return single
        case solver_spec.MultiTurnSolver():
            known = not any(isinstance(each, _OPEN_ENDED) for each in solver.message_builders)
            return lambda sample: Conversation(tuple(_built(solver.message_builders, sample)), known=known)
        case solver_spec.PassThroughSolver():
            passed = PassThrough(solver)
            return lambda sample: _recorded(passed.output(sample.data), solver.trace_column)
        case solver_spec.GroupedSingleTurnSolver():
            group = GroupedSingleTurn(solver)
            return lambda sample: _group(group.requests(sample.data))
        case solver_spec.PythonSolver():
            note = Message("note", "the author's code `run_solver` makes the conversation")
            return lambda _: Conversation((note,), known=False)


_OPEN_ENDED = (
    solver_spec.LoopBuilder,
    solver_spec.GenerateMessageBuilder,
    solver_spec.LoadTraceBuilder,
)
"""Steps of which it is not known how many messages they add."""


def _recorded(output: SolverTrace, column: str) -> Conversation:
    said = [
        Message(str(getattr(message, "role", "note")), str(getattr(message, "content", message)))
        for message in output.messages
    ]
    note = Message("note", f"the recorded trace in column {column!r}; no model is called")
    return Conversation((note, *said), output=output)


def _group(requests: Mapping[str | int, ModelRequest]) -> Conversation:
    messages: list[Message] = []
    outputs: dict[str | int, SolverTrace] = {}
    for name, request in requests.items():
        asked = (*_messages(request.input), Message("assistant", ANSWER))
        messages += [Message("note", f"input {name!r} of the group"), *asked]
        outputs[name] = _placeholder(asked)
    listed = all(isinstance(name, int) for name in outputs)
    group = list(outputs.values()) if listed else {str(name): each for name, each in outputs.items()}
    return Conversation(tuple(messages), output=GroupedSolverTrace(solver_outputs=group))


def _built(builders: Sequence[solver_spec.MessageBuilder], sample: Sample) -> Iterator[Message]:
    for builder in builders:
        match builder:
            case solver_spec.ChatMessageBuilder():
                yield Message(str(builder.role), SampleTemplate(builder.content).render(sample=sample.data))
            case solver_spec.GenerateBuilder():
                yield Message("assistant", ANSWER)
            case solver_spec.GenerateMessageBuilder():
                role = str(builder.output_role or "assistant")
                yield Message(role, f"⟨an answer of {builder.model_key}, asked in addition:⟩")
                for message in _built(builder.extra_input_messages, sample):
                    yield Message("note", f"{message.role}: {message.content}")
            case solver_spec.LoopBuilder():
                yield Message("note", f"up to {builder.max_iterations} times:")
                yield from _built(builder.message_builders, sample)
            case solver_spec.LoadTraceBuilder():
                yield Message("note", f"the recorded trace in column {builder.trace_column!r}")


def _messages(chat: ChatCompletionInput) -> Iterator[Message]:
    for message in chat.messages:
        yield Message(message.role, message.content if isinstance(message.content, str) else "⟨files⟩")


def _placeholder(messages: Sequence[Message]) -> SolverTrace:
    """A solver's output in which the placeholder stands for the answer."""
    said = [m for m in messages if m.role in ("user", "system", "assistant")]
    if not said or said[-1].role != "assistant":
        said.append(Message("assistant", ANSWER))
    items = [
        assistant_item(message.content)
        if message.role == "assistant"
        else input_item(ChatCompletionInputMessage(role=message.role, content=message.content))
        for message in said
    ]
    answer = ChatCompletionOutputMessage(role="assistant", content=said[-1].content)
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
    """Scorers of rows that the post-processor makes: only their templates are known."""
    scorers = plan.benchmark.scorers
    for scorer, key in zip(scorers, scorer_keys(scorers), strict=True):
        fields = {name: text for name in TEXT_FIELDS if isinstance(text := getattr(scorer, name, None), str)}
        yield ScorerPreview(key, scorer.type, fields)


def _scorer(scorer: scorer_spec.Scorer, key: str, seen: _Seen) -> ScorerPreview:
    if scorer.type in JUDGES:
        return _judge(scorer, key, seen)
    fields = {
        name: seen.shown(text) for name in TEXT_FIELDS if isinstance(text := getattr(scorer, name, None), str)
    }
    if by_likelihood([scorer]):
        assert isinstance(scorer, scorer_spec.StringEqualsMCQAScorer)
        choices, continuations = Choices(scorer).of(seen.sample.data, "score")
        compared = dict(zip(choices, continuations, strict=True))
        fields |= {
            "continuations": json.dumps(compared, ensure_ascii=False),
            "method": scorer.method,
            "length_normalisation": scorer.length_normalisation,
        }
        if is_weighed_alone(scorer) and seen.unconditioned_query is not None:
            fields["unconditioned_query"] = seen.shown(seen.unconditioned_query)
    snippet = getattr(scorer, "compute_scores_snippet", None)
    if snippet is not None:
        fields["compute_scores"] = f"{len(snippet.splitlines())} lines of the author's code; not run here"
    return ScorerPreview(key, scorer.type, fields)


def _judge(scorer: Any, key: str, seen: _Seen) -> ScorerPreview:
    prompts = (scorer.system_prompt, scorer.user_prompt)
    reads_output = any(_reads_output(SampleTemplate(prompt)) for prompt in prompts)
    try:
        if reads_output and not seen.messages_known:
            return _unrendered_judge(scorer, key, seen)
        asked = JUDGES[scorer.type](scorer).first_input(seen.sample, seen.output)
    except SampleError:
        if seen.answers_known or not reads_output:
            raise
        return _unrendered_judge(scorer, key, seen)
    response_format = asked.response_format
    return ScorerPreview(
        key,
        scorer.type,
        messages=tuple(_messages(asked)),
        response_format=None if response_format is None else response_format.model_dump(mode="json"),
    )


def _unrendered_judge(scorer: Any, key: str, seen: _Seen) -> ScorerPreview:
    """A judge's prompts as far as they are known; what it is told of the form of its answer comes after them."""
    messages = (
        Message("note", "the judge sees what is not known yet: its prompts as they are written"),
        Message("system", seen.shown(scorer.system_prompt)),
        Message("user", seen.shown(scorer.user_prompt)),
    )
    return ScorerPreview(key, scorer.type, messages=messages)
