"""Conversion of Inspect's model output to AI GO's answer: the raw chat output, and the items of the first
choice.
"""

from __future__ import annotations

from inspect_ai.model import ModelOutput
from pydantic import TypeAdapter

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    CustomTaskOutputMessage,
    ModelResponse,
    ModelUsage,
    TraceItem,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.mapping.messages import items_from_message, logprobs_of
from aigo_inspect.models.requests import RAW_OUTPUT

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])


def model_response(output: ModelOutput, stage: Stage) -> ModelResponse:
    """Convert Inspect's output to AI GO's model response.

    Raises:
        SampleError: the model returned no answer.
    """
    if output.error and not output.completion:
        raise SampleError(f"the model failed: {output.error}", stage=stage, kind="ModelError")
    if not output.choices:
        raise SampleError("the model returned no answer (no choices)", stage=stage, kind="ModelError")
    opaque = (output.metadata or {}).get(RAW_OUTPUT)
    if opaque is None:
        return ModelResponse(raw_output=chat_output(output), items=answer_items(output))
    if opaque["task"] == "chat_completion":
        return ModelResponse(raw_output=opaque["output"], items=answer_items(output))
    content = opaque["output"]
    if opaque["task"] == "embeddings":
        content = content["embeddings"]
    answer = CustomTaskOutputMessage(type="custom_task_output_message", content=content)
    return ModelResponse(raw_output=opaque["output"], items=[answer])


_INCOMPLETE = frozenset({"max_tokens", "model_length", "content_filter"})
"""Stop reasons of an incomplete answer."""


def answer_items(output: ModelOutput) -> list[TraceItem]:
    """Convert the first choice to trace items."""
    choice = output.choices[0]
    message = choice.message.model_dump(mode="json", exclude_none=True)
    logprobs = logprobs_of(choice.model_dump(mode="json", include={"logprobs"}), LossReport())
    status = "incomplete" if choice.stop_reason in _INCOMPLETE else "completed"
    return _ITEMS.validate_python(items_from_message(message, status=status, logprobs=logprobs))


def chat_output(output: ModelOutput) -> ChatCompletionModelOutput:
    """Convert all choices to AI GO's chat output."""
    usage = output.usage
    return ChatCompletionModelOutput(
        choices=[
            ChatCompletionModelOutputChoice(
                message=ChatCompletionOutputMessage(role="assistant", content=choice.message.text)
            )
            for choice in output.choices
        ],
        # Inspect's `input_tokens` excludes cached tokens, but AI GO's prompt count includes them.
        usage=usage
        and ModelUsage(
            num_prompt_tokens=usage.input_tokens
            + (usage.input_tokens_cache_read or 0)
            + (usage.input_tokens_cache_write or 0),
            num_completion_tokens=usage.output_tokens,
        ),
    )
