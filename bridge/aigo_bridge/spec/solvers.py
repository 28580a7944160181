"""Specifications of solvers, which produce the answer of a model or a recorded trace for a sample."""

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from aigo_bridge.spec.base import OneOf, Path, SpecModel, Templated, TemplatedModelKey, TypedSpec, TypeTable

Role = Literal["user", "system", "assistant"]
MessageFormat = Literal["latticeflow", "open_responses"]


class Postprocessor(SpecModel):
    """Task code that splits one solver run into several rows, each scored separately."""

    type: Literal["python"]
    postprocess_snippet: str
    """Defines `postprocess(sample, solver_output) -> list[tuple[sample, solver_output]]`."""


class InputMessage(SpecModel):
    """One message of the prompt."""

    role: Templated[Role]
    """Author of the message."""
    content: str
    """Template over `sample`."""
    choices: str | tuple[str, ...] | None = None
    """Extension, for assistant messages in few-shot examples: all choices, including this answer. A list, its
    JSON text, or a template over `sample`. Only lighteval documents contain it; models do not see it.
    """


class ChatInputBuilder(SpecModel):
    """Model input from a list of messages."""

    type: Literal["chat_completion"]
    input_messages: tuple[InputMessage, ...]
    """Messages in order."""
    unconditioned_query: str | None = None
    """Extension: neutral prompt without the question, such as `Answer:`; a template over `sample`.
    Scorers with `length_normalisation: pmi` measure with it how likely each choice is on its own.
    """
    original_query: str | None = None
    """Extension: plain question without the prompt around it; a template over `sample`. Only lighteval
    documents contain it; models do not see it.
    """
    fewshot_sorting_class: str | None = None
    """Extension: class of the row; a template over `sample`. lighteval draws few-shot examples evenly from
    these classes; models do not see it.
    """

    def rendered(self) -> Iterator[tuple[Path, str]]:
        """Yield the templates over `sample`, with their paths in the builder."""
        for number, message in enumerate(self.input_messages):
            yield ("input_messages", number, "content"), message.content
            if isinstance(message.choices, str):
                yield ("input_messages", number, "choices"), message.choices
        for name in ("unconditioned_query", "original_query", "fewshot_sorting_class"):
            if (template := getattr(self, name)) is not None:
                yield (name,), template


class GenericInputBuilder(SpecModel):
    """Model input from one template."""

    type: Literal["generic"]
    template: str
    """Template over `sample` that renders the model input as JSON."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        """Yield the template with its path in the builder."""
        yield ("template",), self.template


InputBuilder = Annotated[ChatInputBuilder | GenericInputBuilder, Field(discriminator="type")]


class TerminateIf(SpecModel):
    """When a new message ends the sequence of builders (or the loop) around it."""

    includes: str
    """Text to search for in the new message."""
    keep_iteration: bool = True
    """Whether to keep the messages that this iteration added."""


class ChatMessageBuilder(SpecModel):
    """Appends a fixed message."""

    type: Literal["chat_message"]
    role: Templated[Role]
    """Author of the message."""
    content: str
    """Template over `sample`."""
    terminate_if: TerminateIf | None = None
    """Condition that ends the loop or the solver."""


class GenerateBuilder(SpecModel):
    """Calls the model under evaluation with the conversation and appends its answer."""

    type: Literal["generate"]
    terminate_if: TerminateIf | None = None
    """Condition that ends the loop or the solver."""


class GenerateMessageBuilder(SpecModel):
    """Calls another model and appends its text."""

    type: Literal["generate_message"]
    model_key: TemplatedModelKey
    """Key of the other model."""
    extra_input_messages: Annotated[tuple[ChatMessageBuilder, ...], Field(min_length=1)]
    """Messages that only the other model sees; they are not kept in the conversation."""
    include_conversation: Templated[bool] = True
    """Whether the other model sees the conversation, followed by the extra messages."""
    output_role: Templated[Role] | None = None
    """Role of the appended message; `None`: the role that the model returns."""
    terminate_if: TerminateIf | None = None
    """Condition that ends the loop or the solver."""


class LoadTraceBuilder(SpecModel):
    """Appends a recorded trace from a column."""

    type: Literal["load_trace"]
    trace_column: str
    """Column that contains the trace."""


class LoopBuilder(SpecModel):
    """Repeats builders."""

    type: Literal["loop"]
    message_builders: "tuple[LoopedMessageBuilder, ...]"
    """Builders to repeat, in order."""
    max_iterations: Templated[Annotated[int, Field(ge=0)]] = 10
    """Maximum number of iterations."""
    on_max_iterations: Literal["error", "continue"] = "error"
    """Outcome if the maximum is reached: fail the sample, or continue after the loop."""


LoopedMessageBuilder = Annotated[
    ChatMessageBuilder | GenerateBuilder | GenerateMessageBuilder | LoopBuilder, Field(discriminator="type")
]
MessageBuilder = Annotated[
    ChatMessageBuilder | GenerateBuilder | GenerateMessageBuilder | LoadTraceBuilder | LoopBuilder,
    Field(discriminator="type"),
]


def _below(key: str | int, templates: Iterator[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    return (((key, *path), text) for path, text in templates)


def _templates(builders: Sequence[MessageBuilder]) -> Iterator[tuple[Path, str]]:
    for number, builder in enumerate(builders):
        match builder:
            case ChatMessageBuilder():
                yield (number, "content"), builder.content
            case GenerateMessageBuilder():
                inner = _below("extra_input_messages", _templates(builder.extra_input_messages))
                yield from _below(number, inner)
            case LoopBuilder():
                yield from _below(number, _below("message_builders", _templates(builder.message_builders)))


def _model_keys(builders: Sequence[MessageBuilder]) -> Iterator[str]:
    for builder in builders:
        if isinstance(builder, GenerateMessageBuilder):
            yield builder.model_key
        elif isinstance(builder, LoopBuilder):
            yield from _model_keys(builder.message_builders)


class SolverSpec(TypedSpec):
    """Base class of solver specifications: everything that other code needs without knowing the type.

    The implementation is a module in `solving`, with a row in `solving.registry`.
    """

    snippet: ClassVar[str | None] = None
    """Field that contains task code."""
    calls_model: ClassVar[bool] = True
    """Whether the evaluated model is called; otherwise its answers are recorded."""
    gives_group: ClassVar[bool | None] = False
    """Whether scorers get several answers together; `None`: unknown before the run."""
    runs_tools: ClassVar[bool] = False
    """Whether the model has tools that run its code, so that the engine needs a sandbox."""
    is_extension: ClassVar[bool] = False
    """Whether the solver is an extension that AI GO does not have."""

    postprocessor: Postprocessor | None = None
    """Code that splits one run into several rows; `None`: one row per run."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        """Yield the templates over `sample`, with their paths in the solver."""
        yield from ()

    def model_keys(self) -> Iterator[str]:
        """Yield the keys of the models that are called in addition to the evaluated one, with repetitions."""
        yield from ()

    @property
    def talks(self) -> bool:
        """Return whether the solver holds a conversation, which not every model supports."""
        return False


SOLVERS: TypeTable[SolverSpec] = TypeTable("solvers", SolverSpec)
"""Solver type → specification, from this module and plug-ins."""


class SingleTurnSolver(SolverSpec):
    """One model call per sample."""

    type: Literal["single_turn_solver"]
    message_format: MessageFormat = "open_responses"
    """Output format for snippets; `latticeflow` is deprecated."""
    input_builder: InputBuilder
    """Builder of the model input."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        return _below("input_builder", self.input_builder.rendered())

    @property
    def talks(self) -> bool:
        return isinstance(self.input_builder, ChatInputBuilder)


class GroupedSingleTurnSolver(SolverSpec):
    """Several model calls per sample, from one template that renders all inputs."""

    gives_group = True

    type: Literal["grouped_single_turn_solver"]
    input_builder: GenericInputBuilder
    """Builder of the model inputs: a JSON list, or a mapping from names to inputs."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        return _below("input_builder", self.input_builder.rendered())


class MultiTurnSolver(SolverSpec):
    """A conversation, built step by step."""

    type: Literal["multi_turn_solver"]
    message_format: MessageFormat = "open_responses"
    """Output format for snippets; `latticeflow` is deprecated."""
    message_builders: Annotated[tuple[MessageBuilder, ...], Field(min_length=1)]
    """Steps in order, all on the same conversation."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        return _below("message_builders", _templates(self.message_builders))

    def model_keys(self) -> Iterator[str]:
        return _model_keys(self.message_builders)

    @property
    def talks(self) -> bool:
        return True


class PassThroughSolver(SolverSpec):
    """No model call: the output is a recorded trace."""

    calls_model = False

    type: Literal["pass_through_solver"]
    trace_column: str
    """Column that contains the trace."""
    message_format: MessageFormat = "open_responses"
    """Output format for snippets; `latticeflow` is deprecated."""


class PythonSolver(SolverSpec):
    """Task code that holds the conversation."""

    snippet = "run_solver_snippet"
    gives_group = None

    type: Literal["python"]
    run_solver_snippet: str
    """Defines `async def run_solver(sample, model, trace) -> SolverTrace`."""


Tool = Literal["bash", "python", "text_editor"]
AgentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class SubAgent(SpecModel):
    """Agent that the main agent can hand over to."""

    name: AgentName
    """Agent name; the main agent hands over with the tool `transfer_to_NAME`."""
    description: str
    """Purpose of the agent, as shown to the main agent."""
    prompt: str
    """System message of the agent; a template over `sample`."""
    tools: tuple[Tool, ...] = ()
    """Tools of the agent."""


class AgentSolver(SolverSpec):
    """The model works with tools in a sandbox until it answers without calling one. Our extension: AI GO has
    no such solver.
    """

    runs_tools = True
    is_extension = True

    type: Literal["agent_solver"]
    input_builder: ChatInputBuilder
    """Builder of the first messages."""
    name: AgentName = "agent"
    """Agent name in traces."""
    tools: tuple[Tool, ...] = ()
    """Tools of the agent, all in the sandbox: shell commands, Python programs, and an editor for text
    files.
    """
    agents: tuple[SubAgent, ...] = ()
    """Agents to hand over to; they see the conversation and work in the same sandbox."""
    files: str | None = None
    """Files to create in the sandbox: a column that contains a mapping from file names to texts, or a
    template (`{{ … }}`) that renders such a mapping as JSON.
    """
    output_files: str | tuple[str, ...] = ()
    """Files to read from the sandbox at the end, for scorers: a list of names, or a template that renders one
    as JSON.
    """
    message_limit: Templated[Annotated[int, Field(ge=2)]] = 50
    """Maximum number of messages; at this number the agent stops and its work is scored."""

    @field_validator("output_files")
    @classmethod
    def _names_or_template(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str) and "{{" not in value and "<<" not in value:
            raise PydanticCustomError(
                "relation",
                "{problem}",
                {"problem": "found text, expected a list of names or a template that returns one"},
            )
        return value

    def rendered(self) -> Iterator[tuple[Path, str]]:
        yield from _below("input_builder", self.input_builder.rendered())
        for number, agent in enumerate(self.agents):
            yield ("agents", number, "prompt"), agent.prompt
        if self.files is not None and "{{" in self.files:
            yield ("files",), self.files
        if isinstance(self.output_files, str):
            yield ("output_files",), self.output_files

    @property
    def talks(self) -> bool:
        return True


SOLVERS |= {
    spec.type_name(): spec
    for spec in (
        SingleTurnSolver,
        GroupedSingleTurnSolver,
        MultiTurnSolver,
        PassThroughSolver,
        PythonSolver,
        AgentSolver,
    )
}

Solver = Annotated[SolverSpec, OneOf(SOLVERS)]
