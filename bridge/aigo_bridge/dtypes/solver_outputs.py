"""What a solver hands to the scorers, in both message formats, and what the prompt template of a judge sees
of it.
"""

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
    """A conversation in the chat form, with the model's last output."""

    messages: list[LFMessage]
    """The conversation, the model's answers included."""
    output: LFModelOutput
    """The last output of the model; `None` when there was none."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """The raw requests and responses, in order; empty when they were not recorded."""

    @classmethod
    def from_input_and_output(
        cls,
        model_input: LFModelInput,
        model_output: LFModelOutput,
        direct_model_input: ModelEndpointInput | None = None,
        direct_model_output: ModelEndpointOutput | None = None,
    ) -> Self:
        """The conversation of a single call. Dictionaries are custom values, never read as a chat.

        Raises:
            ValueError: The output is a chat without choices, or items without an assistant message.
        """
        return cls(
            messages=[*model_input_to_messages(model_input), model_output_to_message(model_output)],
            output=model_output,
            direct_ios=direct_ios(direct_model_input, direct_model_output),
        )


class SolverTrace(LFBaseModel):
    """A trace, with the model's outputs in the order of the calls."""

    trace: Trace
    """The conversation."""
    raw_outputs: list[LFModelOutput]
    """Unmodified output of every call."""
    direct_ios: list[DirectModelIO] = Field(default=[])
    """The raw requests and responses, in order; empty when they were not recorded."""

    @property
    def items(self) -> list[TraceItem]:
        """The items of the trace: the list itself, not a copy."""
        return self.trace.items

    @property
    def messages(self) -> list[LFMessage]:
        """The conversation in the chat form; tool calls, their answers and developer messages are
        left out.
        """
        return trace_items_to_lf_messages(self.trace.items)

    @property
    def output(self) -> LFModelOutput | None:
        """The last raw output, items turned into the chat form; `None` without any."""
        if not self.raw_outputs:
            return None
        output = self.raw_outputs[-1]
        return chat_output(output) if isinstance(output, OpenResponsesModelOutput) else output

    def append(self, item: TraceItem) -> None:
        """Add an item to the trace, unchecked."""
        self.trace.items.append(item)

    def extend(self, items: Iterable[TraceItem]) -> None:
        """Add items to the trace, unchecked."""
        self.trace.items.extend(items)

    def append_user_message(self, content: str) -> None:
        """Add a user message.

        Raises:
            pydantic.ValidationError: `content` is not text.
        """
        self.append(user_message(content))

    def append_system_message(self, content: str) -> None:
        """Add a system message.

        Raises:
            pydantic.ValidationError: `content` is not text.
        """
        self.append(system_message(content))

    def append_custom_task_input_message(self, content: Any) -> None:
        """Add the input of a custom model, in whatever form."""
        self.append(CustomTaskInputMessage(content=content))

    def add_model_response(self, response: ModelResponse) -> None:
        """Add what a model answered: its items to the trace, its output to the raw outputs."""
        self.extend(response.items)
        self.raw_outputs.append(response.raw_output)


class GroupedSolverOutput(LFBaseModel):
    """Several conversations of one sample in the chat form."""

    solver_outputs: list[SingleSolverOutput] | dict[str, SingleSolverOutput]
    """The conversations, in order or by name."""


class GroupedSolverTrace(LFBaseModel):
    """Several traces of one sample."""

    solver_outputs: list[SolverTrace] | dict[str, SolverTrace]
    """The traces, in order or by name."""


def solver_text(value: object) -> str | None:
    """Return the text of a solver output: of its last model output, of each conversation of a group."""
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
"""What a solver hands to the scorers."""


def direct_ios(
    request: ModelEndpointInput | None, response: ModelEndpointOutput | None
) -> list[DirectModelIO]:
    """The one exchange, when both sides of it are known."""
    if request is None or response is None:
        return []
    return [DirectModelIO(direct_input=request, direct_output=response)]


class JudgeInput(OpenFieldsModel):
    """What every judge sees."""

    sample: dict[str, Any]
    """The sample's columns."""


class SolverJudgeInput(JudgeInput):
    """What a judge of a solver sees."""

    solver_output: SolverOutput
    """What the solver handed over."""


class SingleSolverJudgeInput(SolverJudgeInput):
    """What a judge of a single conversation sees."""

    messages: list[LFMessage]
    """The conversation in the chat form."""
    model_output: LFModelOutput
    """The last output of the model."""


class ChatCompletionJudgeInput(SingleSolverJudgeInput):
    """What a judge of a chat sees."""

    input_prompt: str
    """Text of the last user message."""


class SolverTraceJudgeInput(JudgeInput):
    """What a judge of a trace sees; the fields below `model_outputs` repeat it in the chat form."""

    trace: Trace
    """The conversation."""
    model_outputs: list[LFModelOutput]
    """Unmodified output of every call."""
    solver_output: SolverOutput | None = None
    """What the solver handed over."""
    messages: list[LFMessage] | None = None
    """The conversation in the chat form."""
    model_output: LFModelOutput | None = None
    """The last output of the model."""
    input_prompt: str | None = None
    """Text of the last user message."""
