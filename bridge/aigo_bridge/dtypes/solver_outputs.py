"""Solver outputs for the scorers, in both message formats, and the variables of a judge's prompt template."""

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field

from aigo_bridge.dtypes.base import LFBaseModel, OpenFieldsModel
from aigo_bridge.dtypes.chat import (
    DirectModelIO,
    LFMessage,
    LFModelInput,
    LFModelOutput,
    ModelEndpointInput,
    ModelEndpointOutput,
    ModelResponse,
    OpenResponsesModelOutput,
    text_of,
)
from aigo_bridge.dtypes.conversion import (
    chat_output,
    model_input_to_messages,
    model_output_to_message,
    system_message,
    trace_items_to_lf_messages,
    user_message,
)
from aigo_bridge.dtypes.items import CustomTaskInputMessage, TraceItem
from aigo_bridge.dtypes.trace import Trace


class SingleSolverOutput(LFBaseModel):
    """Conversation in the chat format, with the last output of the model."""

    messages: list[LFMessage]
    """Conversation, including the answers of the model."""
    output: LFModelOutput
    """Last output of the model; `None` if the model was not called."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """Raw requests and responses, in order; empty if they were not recorded."""

    @classmethod
    def from_input_and_output(
        cls,
        model_input: LFModelInput,
        model_output: LFModelOutput,
        direct_model_input: ModelEndpointInput | None = None,
        direct_model_output: ModelEndpointOutput | None = None,
    ) -> Self:
        """Create the conversation of a single call. Dictionaries are custom values and never read as a chat.

        Raises:
            ValueError: the output is a chat without choices, or items without an assistant message.
        """
        return cls(
            messages=[*model_input_to_messages(model_input), model_output_to_message(model_output)],
            output=model_output,
            direct_ios=direct_ios(direct_model_input, direct_model_output),
        )


class SolverTrace(LFBaseModel):
    """Trace with the model outputs in the order of the calls."""

    trace: Trace
    """Conversation as a trace."""
    raw_outputs: list[LFModelOutput]
    """Unmodified output of every call."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """Raw requests and responses, in order; empty if they were not recorded."""

    @property
    def items(self) -> list[TraceItem]:
        """Items of the trace: the list itself, not a copy."""
        return self.trace.items

    @property
    def messages(self) -> list[LFMessage]:
        """Conversation in the chat format, without tool calls, their results and developer messages."""
        return trace_items_to_lf_messages(self.trace.items)

    @property
    def output(self) -> LFModelOutput | None:
        """Last raw output, with items converted to the chat format; `None` if there is none."""
        if not self.raw_outputs:
            return None
        output = self.raw_outputs[-1]
        return chat_output(output) if isinstance(output, OpenResponsesModelOutput) else output

    def append(self, item: TraceItem) -> None:
        """Append an item to the trace without validation."""
        self.trace.items.append(item)

    def extend(self, items: Iterable[TraceItem]) -> None:
        """Append items to the trace without validation."""
        self.trace.items.extend(items)

    def append_user_message(self, content: str) -> None:
        """Append a user message.

        Raises:
            pydantic.ValidationError: `content` is not a text.
        """
        self.append(user_message(content))

    def append_system_message(self, content: str) -> None:
        """Append a system message.

        Raises:
            pydantic.ValidationError: `content` is not a text.
        """
        self.append(system_message(content))

    def append_custom_task_input_message(self, content: Any) -> None:
        """Append the input of a custom model, in any form."""
        self.append(CustomTaskInputMessage(content=content))

    def add_model_response(self, response: ModelResponse) -> None:
        """Append a model response: its items to the trace, and its output to the raw outputs."""
        self.extend(response.items)
        self.raw_outputs.append(response.raw_output)


class GroupedSolverOutput(LFBaseModel):
    """Several conversations of one sample in the chat format."""

    solver_outputs: list[SingleSolverOutput] | dict[str, SingleSolverOutput]
    """Conversations, in order or by name."""


class GroupedSolverTrace(LFBaseModel):
    """Several traces of one sample."""

    solver_outputs: list[SolverTrace] | dict[str, SolverTrace]
    """Traces, in order or by name."""


def solver_text(value: object) -> str | None:
    """Return the text of a solver output: of its last model output, or of each conversation in a group."""
    if isinstance(value, GroupedSolverOutput | GroupedSolverTrace):
        group = value.solver_outputs
        return "\n".join(map(str, group.values() if isinstance(group, dict) else group))
    if isinstance(value, SingleSolverOutput | SolverTrace):
        if value.output is not None:
            return str(value.output)
        return (value.trace.get_last_assistant_text() if isinstance(value, SolverTrace) else None) or ""
    return text_of(value)


for _kind in (SingleSolverOutput, SolverTrace, GroupedSolverOutput, GroupedSolverTrace):
    _kind.__template_text__ = staticmethod(solver_text)


SolverOutput = SingleSolverOutput | GroupedSolverOutput | SolverTrace | GroupedSolverTrace
"""Output of a solver for the scorers."""


def direct_ios(
    request: ModelEndpointInput | None, response: ModelEndpointOutput | None
) -> list[DirectModelIO]:
    """Return a list with the exchange; empty if the request or the response is unknown."""
    if request is None or response is None:
        return []
    return [DirectModelIO(direct_input=request, direct_output=response)]


class JudgeInput(OpenFieldsModel):
    """Variables for every judge."""

    sample: dict[str, Any]
    """Columns of the sample."""


class SolverJudgeInput(JudgeInput):
    """Variables for a judge of a solver output."""

    solver_output: SolverOutput
    """Output of the solver."""


class SingleSolverJudgeInput(SolverJudgeInput):
    """Variables for a judge of a single conversation."""

    messages: list[LFMessage]
    """Conversation in the chat format."""
    model_output: LFModelOutput
    """Last output of the model."""


class ChatCompletionJudgeInput(SingleSolverJudgeInput):
    """Variables for a judge of a chat."""

    input_prompt: str
    """Text of the last user message."""


class SolverTraceJudgeInput(JudgeInput):
    """Variables for a judge of a trace. The fields after `model_outputs` repeat it in the chat format."""

    trace: Trace
    """Conversation as a trace."""
    model_outputs: list[LFModelOutput]
    """Unmodified output of every call."""
    solver_output: SolverOutput | None = None
    """Output of the solver."""
    messages: list[LFMessage] | None = None
    """Conversation in the chat format."""
    model_output: LFModelOutput | None = None
    """Last output of the model."""
    input_prompt: str | None = None
    """Text of the last user message."""
