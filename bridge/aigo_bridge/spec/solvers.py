"""Solvers: how a model (or a recorded trace) comes to its answer for one sample."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from aigo_bridge.spec.base import SpecModel, Templated, TemplatedModelKey

Role = Literal["user", "system", "assistant"]
MessageFormat = Literal["latticeflow", "open_responses"]


class Postprocessor(SpecModel):
    """The author's code that turns one solver run into several rows, each scored on its own."""

    type: Literal["python"]
    postprocess_snippet: str
    """Defines `postprocess(sample, solver_output) -> list[tuple[sample, solver_output]]`."""


class InputMessage(SpecModel):
    """One message of the prompt."""

    role: Templated[Role]
    """Who speaks."""
    content: str
    """Template over `sample`."""
    choices: str | tuple[str, ...] | None = None
    """Our extension, for the assistant's messages of examples: the texts that this answer was chosen from, itself among them; a list, its
    JSON text, or a template over `sample` that gives it. No model sees it; documents of lighteval carry it. `None`: not known."""


class ChatInputBuilder(SpecModel):
    """Model input from a list of messages."""

    type: Literal["chat_completion"]
    input_messages: tuple[InputMessage, ...]
    """Messages in order."""
    unconditioned_query: str | None = None
    """Our extension: template over `sample` of the question without what makes its answer known. Scorers with
    `length_normalisation: pmi` weigh against it how likely a choice is by itself; documents of lighteval carry it. `None`: there is none."""
    original_query: str | None = None
    """Our extension: template over `sample` of the question before it was worked into the messages. No model sees it; documents of lighteval
    carry it. `None`: there is none."""
    fewshot_sorting_class: str | None = None
    """Our extension: template over `sample` of the class by which lighteval balances examples that it draws from such rows. No model sees it;
    documents of lighteval carry it. `None`: there is none."""


class GenericInputBuilder(SpecModel):
    """Model input from one template."""

    type: Literal["generic"]
    template: str
    """Template over `sample`; its text is the model input as JSON."""


InputBuilder = Annotated[ChatInputBuilder | GenericInputBuilder, Field(discriminator="type")]


class TerminateIf(SpecModel):
    """When a new message ends the sequence of builders (or the loop) around it."""

    includes: str
    """Text that the message must hold."""
    keep_iteration: bool = True
    """Whether what this iteration added stays in the conversation."""


class ChatMessageBuilder(SpecModel):
    """Appends a fixed message."""

    type: Literal["chat_message"]
    role: Templated[Role]
    """Who speaks."""
    content: str
    """Template over `sample`."""
    terminate_if: TerminateIf | None = None
    """When to stop; `None`: never."""


class GenerateBuilder(SpecModel):
    """Calls the model under evaluation with the conversation and appends its answer."""

    type: Literal["generate"]
    terminate_if: TerminateIf | None = None
    """When to stop; `None`: never."""


class GenerateMessageBuilder(SpecModel):
    """Calls another model and appends its text."""

    type: Literal["generate_message"]
    model_key: TemplatedModelKey
    """The other model."""
    extra_input_messages: Annotated[tuple[ChatMessageBuilder, ...], Field(min_length=1)]
    """Messages for that model only; they do not stay in the conversation."""
    include_conversation: Templated[bool] = True
    """Whether that model sees the conversation before the extra messages."""
    output_role: Templated[Role] | None = None
    """Role under which the text is appended; `None`: the model's own."""
    terminate_if: TerminateIf | None = None
    """When to stop; `None`: never."""


class LoadTraceBuilder(SpecModel):
    """Appends a recorded trace from a column."""

    type: Literal["load_trace"]
    trace_column: str
    """Column with the trace."""


class LoopBuilder(SpecModel):
    """Repeats builders."""

    type: Literal["loop"]
    message_builders: tuple[LoopedMessageBuilder, ...]
    """What to repeat."""
    max_iterations: Templated[Annotated[int, Field(ge=0)]] = 10
    """Most repetitions."""
    on_max_iterations: Literal["error", "continue"] = "error"
    """What happens when that many were made without a stop."""


LoopedMessageBuilder = Annotated[
    ChatMessageBuilder | GenerateBuilder | GenerateMessageBuilder | LoopBuilder, Field(discriminator="type")
]
MessageBuilder = Annotated[
    ChatMessageBuilder | GenerateBuilder | GenerateMessageBuilder | LoadTraceBuilder | LoopBuilder,
    Field(discriminator="type"),
]


# It names itself: without this its fields are known only after the first validation.
LoopBuilder.model_rebuild()


class _Solver(SpecModel):
    postprocessor: Postprocessor | None = None
    """Turns one run into several rows; `None`: one run is one row."""


class SingleTurnSolver(_Solver):
    """One model call per sample."""

    type: Literal["single_turn_solver"]
    message_format: MessageFormat = "open_responses"
    """Form of the output; `latticeflow` is the old one."""
    input_builder: InputBuilder
    """Makes the model input."""


class GroupedSingleTurnSolver(_Solver):
    """Several model calls per sample, from one template that gives them all."""

    type: Literal["grouped_single_turn_solver"]
    input_builder: GenericInputBuilder
    """Makes the model inputs."""


class MultiTurnSolver(_Solver):
    """A conversation, built step by step."""

    type: Literal["multi_turn_solver"]
    message_format: MessageFormat = "open_responses"
    """Form of the output; `latticeflow` is the old one."""
    message_builders: Annotated[tuple[MessageBuilder, ...], Field(min_length=1)]
    """Steps in order, all on one conversation."""


class PassThroughSolver(_Solver):
    """No model call: the output is a recorded trace."""

    type: Literal["pass_through_solver"]
    trace_column: str
    """Column with the trace."""
    message_format: MessageFormat = "open_responses"
    """Form of the output; `latticeflow` is the old one."""


class PythonSolver(_Solver):
    """The author's code makes the conversation."""

    type: Literal["python"]
    run_solver_snippet: str
    """Defines `async def run_solver(sample, model, trace) -> SolverTrace`."""


Solver = Annotated[
    SingleTurnSolver | GroupedSingleTurnSolver | MultiTurnSolver | PassThroughSolver | PythonSolver,
    Field(discriminator="type"),
]
