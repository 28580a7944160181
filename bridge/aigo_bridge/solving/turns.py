"""The multi-turn solver: message builders that run in order on one growing conversation.

`terminate_if` looks at the text of the message that its builder has just added, case-sensitively. A match ends the
sequence around the builder: the loop it stands in (the builders after the loop go on), or the whole solver. With
`keep_iteration: false` what that iteration added is taken back; outside of a loop that is the one message. What is
taken back leaves the raw outputs too, so that `output` never is an answer that the conversation does not hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import ModelResponse, SolverTrace
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models import Model, ModelRequest, Models
from aigo_bridge.solving.conversation import empty_trace, last_text, request_of_items, text_item
from aigo_bridge.solving.inputs import render
from aigo_bridge.solving.recorded import recorded_trace
from aigo_bridge.spec.solvers import (
    ChatMessageBuilder,
    GenerateBuilder,
    GenerateMessageBuilder,
    LoadTraceBuilder,
    LoopBuilder,
    MessageBuilder,
    MultiTurnSolver,
    TerminateIf,
)
from aigo_bridge.templates import SampleTemplate


class MultiTurn:
    """A conversation, built step by step."""

    def __init__(self, spec: MultiTurnSolver):
        self._steps = [_compile(builder) for builder in spec.message_builders]

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        turn = _Turn(sample, model, models, empty_trace())
        for step in self._steps:
            mark = turn.mark()
            end = await step(turn)
            if end is not None:
                if not end.keep_iteration:
                    turn.take_back(mark)
                break
        return turn.trace


@dataclass(frozen=True)
class _Turn:
    """One sample on its way."""

    sample: Mapping[str, Any]
    model: Model
    models: Models
    trace: SolverTrace

    def mark(self) -> tuple[int, int]:
        """Where the conversation stands, for `take_back`."""
        return len(self.trace.items), len(self.trace.raw_outputs)

    def take_back(self, mark: tuple[int, int]) -> None:
        """Forget what came after a mark."""
        del self.trace.items[mark[0] :]
        del self.trace.raw_outputs[mark[1] :]


_Step = Callable[[_Turn], Awaitable[TerminateIf | None]]
"""Adds to the conversation; returns the condition that was met and ends the sequence, if one was."""


def _compile(builder: MessageBuilder) -> _Step:
    match builder:
        case ChatMessageBuilder():
            return _chat_message(builder)
        case GenerateBuilder():
            return _generate(builder)
        case GenerateMessageBuilder():
            return _generate_message(builder)
        case LoadTraceBuilder():
            return _load_trace(builder)
        case LoopBuilder():
            return _loop(builder)


def _met(condition: TerminateIf | None, text: str) -> TerminateIf | None:
    return condition if condition is not None and condition.includes in text else None


def _chat_message(builder: ChatMessageBuilder) -> _Step:
    template = SampleTemplate(builder.content)

    async def step(turn: _Turn) -> TerminateIf | None:
        text = render(template, turn.sample)
        turn.trace.append(text_item(builder.role, text))
        return _met(builder.terminate_if, text)

    return step


def _generate(builder: GenerateBuilder) -> _Step:
    async def step(turn: _Turn) -> TerminateIf | None:
        response = await turn.model.predict(request_of_items(turn.trace.items))
        turn.trace.add_model_response(response)
        # An answer of function calls alone has no text, and so nothing that a condition could find.
        return _met(builder.terminate_if, last_text(response.items) or "")

    return step


def _generate_message(builder: GenerateMessageBuilder) -> _Step:
    if any(message.terminate_if is not None for message in builder.extra_input_messages):
        raise UnsupportedPlanError(
            "generate_message: a message of extra_input_messages has terminate_if, which means nothing for a message that"
            " does not stay in the conversation (put it on the builder itself)"
        )
    extra = [(message.role, SampleTemplate(message.content)) for message in builder.extra_input_messages]

    async def step(turn: _Turn) -> TerminateIf | None:
        conversation = list(turn.trace.items) if builder.include_conversation else []
        conversation += [text_item(role, render(template, turn.sample)) for role, template in extra]
        response = await _ask(turn.models, builder.model_key, request_of_items(conversation))
        text = last_text(response.items)
        if text is None:
            raise SampleError(
                f"model {builder.model_key!r} gave no text to append", stage="solver", kind="ModelError"
            )
        turn.trace.append(text_item(builder.output_role or "assistant", text))
        return _met(builder.terminate_if, text)

    return step


async def _ask(models: Models, key: str, request: ModelRequest) -> ModelResponse:
    """Call another model; looked up for scorers as a rule, its failures here are the solver's."""
    try:
        return await models(key).predict(request)
    except SampleError as error:
        raise SampleError(error.message, stage="solver", hint=error.hint, kind=error.kind) from error


def _load_trace(builder: LoadTraceBuilder) -> _Step:
    async def step(turn: _Turn) -> TerminateIf | None:
        turn.trace.extend(recorded_trace(turn.sample, builder.trace_column).items)
        return None

    return step


def _loop(builder: LoopBuilder) -> _Step:
    steps = [_compile(inner) for inner in builder.message_builders]
    most = int(builder.max_iterations)

    async def step(turn: _Turn) -> TerminateIf | None:
        for _ in range(most):
            mark = turn.mark()
            end = await _iteration(steps, turn)
            if end is not None:
                if not end.keep_iteration:
                    turn.take_back(mark)
                return None
        if builder.on_max_iterations == "error":
            raise SampleError(
                f"the loop made all of its {most} iterations and no terminate_if was met",
                stage="solver",
                hint="raise max_iterations, or set on_max_iterations: continue",
                kind="MaxIterations",
            )
        return None

    return step


async def _iteration(steps: Sequence[_Step], turn: _Turn) -> TerminateIf | None:
    for step in steps:
        end = await step(turn)
        if end is not None:
            return end
    return None
