"""Solvers without author code: one question (`single_turn_solver`), a group of questions that are scored
together (`grouped_single_turn_solver`), a growing conversation (`multi_turn_solver`), and recorded traces in
a dataset column (`pass_through_solver`).

The template of a group gives a JSON list of chat completion bodies, or a mapping from names to bodies. Each
body is answered separately. The output is a `GroupedSolverTrace` with the same structure. (This structure
follows from AI GO's output class and generic input builder.)

In a conversation, message builders run in order. `terminate_if` searches the text of the message that its
builder has just added, case-sensitively. A match ends the sequence around the builder: the innermost loop
(builders after the loop continue), or the whole solver. With `keep_iteration: false`, the messages of that
iteration are removed; outside a loop, only the one message. Removed messages also leave the raw outputs, so
that `output` is always an answer of the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import GroupedSolverTrace, ModelResponse, SolverTrace, Trace, make_explicit
from aigo_bridge.dtypes.validation import problems
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.models.protocol import Model, ModelRequest, Models, task_of
from aigo_bridge.solving.conversation import (
    body_from_template,
    chat_output,
    chat_request,
    compile_input,
    empty_trace,
    input_item,
    last_text,
    misread_item,
    render,
    request_from_body,
    request_of_items,
    request_of_value,
    text_item,
)
from aigo_bridge.solving.solver import Opening, SolverType
from aigo_bridge.spec.base import MLTask
from aigo_bridge.spec.solvers import (
    ChatMessageBuilder,
    GenerateBuilder,
    GenerateMessageBuilder,
    GenericInputBuilder,
    GroupedSingleTurnSolver,
    LoadTraceBuilder,
    LoopBuilder,
    MessageBuilder,
    MultiTurnSolver,
    PassThroughSolver,
    SingleTurnSolver,
    TerminateIf,
)
from aigo_bridge.templates import SampleTemplate


class SingleTurn:
    """Solver with one request and one answer."""

    def __init__(self, spec: SingleTurnSolver):
        self._build = compile_input(spec.input_builder)
        builder = spec.input_builder
        self._template = (
            SampleTemplate(builder.template) if isinstance(builder, GenericInputBuilder) else None
        )

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        if self._template is not None and task_of(model) != "chat_completion":
            return await answered(request_of_value(body_from_template(self._template, sample)), model)
        return await answered(self._build(sample), model)


async def answered(request: ModelRequest, model: Model) -> SolverTrace:
    """Return the trace of one call: the request, then the answer."""
    trace = empty_trace()
    trace.extend(request.items or [input_item(message) for message in request.input.messages])
    trace.add_model_response(await model.predict(request))
    return trace


class GroupedSingleTurn:
    """Solver with several requests that are answered separately; one failed answer fails the whole group."""

    def __init__(self, spec: GroupedSingleTurnSolver):
        self._template = SampleTemplate(spec.input_builder.template)

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> GroupedSolverTrace:
        # Check all requests before paying for the first one.
        requests = self.requests(sample, task_of(model))
        answers = {name: await answered(request, model) for name, request in requests.items()}
        if all(isinstance(name, int) for name in answers):
            return GroupedSolverTrace(solver_outputs=list(answers.values()))
        return GroupedSolverTrace(solver_outputs={str(name): answer for name, answer in answers.items()})

    def requests(
        self, sample: Mapping[str, Any], task: MLTask = "chat_completion"
    ) -> dict[str | int, ModelRequest]:
        """Return the requests of a model for a task, by name, or by position for a list.

        Raises:
            SampleError: the template does not give a group of model inputs.
        """
        bodies = body_from_template(self._template, sample)
        if isinstance(bodies, list) and bodies:
            return {index: _request(index, body, task) for index, body in enumerate(bodies)}
        if isinstance(bodies, dict) and bodies and "messages" not in bodies:
            return {name: _request(name, body, task) for name, body in bodies.items()}
        kind = f"a {type(bodies).__name__}" if bodies else f"an empty {type(bodies).__name__}"
        if isinstance(bodies, dict) and bodies:
            kind = "one model input"
        raise SampleError(
            f"the input template gave {kind}, expected a list of model inputs or a mapping from names to"
            " them",
            stage="solver",
            hint='write [{"messages": […]}, …]',
            kind="InvalidModelInput",
        )


def _request(name: str | int, body: Any, task: MLTask) -> ModelRequest:
    if task != "chat_completion":
        return request_of_value(body)
    try:
        return request_from_body(body)
    except SampleError as error:
        raise SampleError(
            f"input {name!r} of the group: {error.message}", stage="solver", hint=error.hint, kind=error.kind
        ) from error


SINGLE_TURN = SolverType(
    SingleTurnSolver,
    lambda spec, context: SingleTurn(spec),
    lambda spec: compile_input(spec.input_builder),
)
GROUPED_SINGLE_TURN = SolverType(GroupedSingleTurnSolver, lambda spec, context: GroupedSingleTurn(spec))


class MultiTurn:
    """Solver of a conversation that is built step by step."""

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
    """State of one sample."""

    sample: Mapping[str, Any]
    model: Model
    models: Models
    trace: SolverTrace

    def mark(self) -> tuple[int, int]:
        """Return the current position in the conversation, for `take_back`."""
        return len(self.trace.items), len(self.trace.raw_outputs)

    def take_back(self, mark: tuple[int, int]) -> None:
        """Remove everything after a position."""
        del self.trace.items[mark[0] :]
        del self.trace.raw_outputs[mark[1] :]


_Step = Callable[[_Turn], Awaitable[TerminateIf | None]]
"""Function that extends the conversation; returns the matched condition if it ends the sequence."""


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
        # An answer with only function calls has no text in which a condition could match.
        return _met(builder.terminate_if, last_text(response.items) or "")

    return step


def _generate_message(builder: GenerateMessageBuilder) -> _Step:
    if any(message.terminate_if is not None for message in builder.extra_input_messages):
        raise UnsupportedPlanError(
            "generate_message: terminate_if is ignored in extra_input_messages, because "
            "these messages are not kept (put it on the builder)",
            code=Code.WRONG_CONVERSATION,
        )
    extra = [(message.role, SampleTemplate(message.content)) for message in builder.extra_input_messages]

    async def step(turn: _Turn) -> TerminateIf | None:
        conversation = list(turn.trace.items) if builder.include_conversation else []
        conversation += [text_item(role, render(template, turn.sample)) for role, template in extra]
        response = await _ask(turn.models, builder.model_key, request_of_items(conversation))
        text = last_text(response.items)
        if text is None:
            raise SampleError(
                f"model {builder.model_key!r} returned no text to append", stage="solver", kind="ModelError"
            )
        turn.trace.append(text_item(builder.output_role or "assistant", text))
        return _met(builder.terminate_if, text)

    return step


async def _ask(models: Models, key: str, request: ModelRequest) -> ModelResponse:
    """Call another model. The lookup is the scorers'; here its failures belong to the solver."""
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
                f"the loop reached its limit of {most} iterations without meeting terminate_if",
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


def _opening(solver: MultiTurnSolver) -> Opening | None:
    written: list[tuple[str, SampleTemplate]] = []
    for builder in solver.message_builders:
        if not isinstance(builder, ChatMessageBuilder):
            break
        written.append((str(builder.role), SampleTemplate(builder.content)))
        if builder.terminate_if is not None:
            break  # The following messages may not be spoken.
    if not written:
        return None
    return lambda row: chat_request((role, render(template, row)) for role, template in written)


MULTI_TURN = SolverType(MultiTurnSolver, lambda spec, context: MultiTurn(spec), _opening)


class PassThrough:
    """Solver that returns the recorded trace without a model call.

    The only raw output is the last assistant message, if there is one.
    """

    def __init__(self, spec: PassThroughSolver):
        self._column = spec.trace_column

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        return self.output(sample)

    def output(self, sample: Mapping[str, Any]) -> SolverTrace:
        """Return the recorded trace as a solver output.

        Raises:
            SampleError: the cell does not contain a trace.
        """
        trace = recorded_trace(sample, self._column)
        text = last_text(trace.items)
        return SolverTrace(
            trace=trace, raw_outputs=[] if text is None else [chat_output(text)], direct_ios=[]
        )


def recorded_trace(sample: Mapping[str, Any], column: str) -> Trace:
    """Parse the trace in a cell: a mapping with `items`, a list of items, or either of them as JSON text.

    Raises:
        SampleError: the column does not exist, or the cell does not contain a trace.
    """
    data = _data(sample, column)
    try:
        trace = Trace.model_validate(data)
    except ValidationError as error:
        raise _not_a_trace(column, problems(error)) from error
    misread = misread_item(data["items"], trace.items)
    if misread is not None:
        raise _not_a_trace(column, misread)
    return make_explicit(trace)


def recorded_opening(sample: Mapping[str, Any], column: str) -> Trace:
    """Return the messages before the first answer of a trace in a cell; the rest is not parsed.

    Raises:
        SampleError: the column does not exist, or the cell does not contain a trace.
    """
    opening: list[Any] = []
    for item in _data(sample, column)["items"]:
        if not isinstance(item, dict) or item.get("role") not in ("user", "system", "developer"):
            break
        opening.append(item)
    return recorded_trace({column: opening}, column)


def _data(sample: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Return a cell as a mapping with `items`."""
    if column not in sample:
        raise _not_a_trace(
            column,
            (f"the sample does not have this column; columns: {', '.join(map(repr, sample)) or 'none'}"),
        )
    cell = sample[column]
    if isinstance(cell, str | bytes):
        try:
            cell = json.loads(cell)
        except ValueError as error:
            raise _not_a_trace(column, f"its text is not JSON: {error}") from error
        except RecursionError as error:
            raise _not_a_trace(column, "its text is nested too deeply") from error
    if isinstance(cell, list):
        cell = {"items": cell}
    if not isinstance(cell, dict):
        kind = "nothing" if cell is None else f"a {type(cell).__name__}"
        raise _not_a_trace(column, f"found {kind}, expected a mapping with 'items' or a list of items")
    if "items" not in cell:
        keys = ", ".join(repr(key) for key in cell) or "no keys"
        raise _not_a_trace(column, f"found a mapping with {keys}, expected one with 'items'")
    return cell


def _not_a_trace(column: str, reason: str) -> SampleError:
    return SampleError(
        f"column {column!r} does not contain a trace: {reason}", stage="solver", kind="InvalidTrace"
    )


def _recorded_opening(solver: PassThroughSolver) -> Opening:
    return lambda row: request_of_items(recorded_opening(row, solver.trace_column).items)


PASS_THROUGH = SolverType(PassThroughSolver, lambda spec, context: PassThrough(spec), _recorded_opening)
