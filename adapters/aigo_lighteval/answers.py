"""A model's answer → AI GO's `ModelResponse`: the raw output, and the items that join the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from pydantic import TypeAdapter

from aigo_bridge.connections import Choice, Reply, Usage
from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    CustomTaskOutputMessage,
    MessageRole,
    MessageStatus,
    ModelResponse,
    ModelUsage,
    TraceItem,
)
from aigo_bridge.dtypes.making import maker
from aigo_bridge.solving.conversation import message_of, output_choice, output_text

_model_response = maker(ModelResponse)
_model_output = maker(ChatCompletionModelOutput)
_model_usage = maker(ModelUsage)

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])

_INCOMPLETE = frozenset({"length", "max_tokens", "model_length", "content_filter", "refusal"})
"""Reasons to stop in the middle of an answer."""


@dataclass(frozen=True)
class Answer:
    """What one call of a model gave."""

    reply: Reply
    task: str = "chat_completion"
    """What the model is for."""

    def response(self) -> ModelResponse:
        """As the core wants it."""
        reply = self.reply
        if not reply.choices:
            raw = reply.raw
            content = raw["embeddings"] if self.task == "embeddings" else raw
            answer = CustomTaskOutputMessage(type="custom_task_output_message", content=content)
            return ModelResponse(raw_output=raw, items=[answer])
        items = _items(reply.choices[0])
        if reply.raw is None:
            return _model_response({"raw_output": chat_output(reply), "items": items})
        return ModelResponse(raw_output=reply.raw, items=items)


def tokens_of(usage: Usage | None) -> tuple[int, int] | None:
    """Tokens read and written; what an endpoint does not tell counts as none."""
    return None if usage is None else (usage.prompt or 0, usage.completion or 0)


def _usage(usage: Usage | None) -> ModelUsage | None:
    tokens = tokens_of(usage)
    if tokens is None:
        return None
    return _model_usage({"num_prompt_tokens": tokens[0], "num_completion_tokens": tokens[1]})


def chat_output(reply: Reply) -> ChatCompletionModelOutput:
    """All choices in AI GO's chat form."""
    return _model_output(
        {
            "choices": [output_choice(_whole_text(choice)) for choice in reply.choices],
            "usage": _usage(reply.usage),
        }
    )


def _items(choice: Choice) -> list[TraceItem]:
    if choice.refusal is None and choice.reasoning is None and not choice.tool_calls and not choice.logprobs:
        # Most answers are a text and nothing else.
        status = MessageStatus(_status(choice))
        return [message_of(MessageRole.assistant, output_text(choice.text), item_id=_new_id(), status=status)]
    return _ITEMS.validate_python(items_of(choice))


def _status(choice: Choice) -> str:
    return "incomplete" if (choice.finish_reason or "").lower() in _INCOMPLETE else "completed"


def _new_id() -> str:
    return f"msg_{token_hex(16)}"


def items_of(choice: Choice) -> list[dict[str, Any]]:
    """An answer as items: its reasoning in a message of its own, the text, then the calls it asks for."""
    status = _status(choice)
    answer_id = _new_id()
    items: list[dict[str, Any]] = []
    if choice.reasoning is not None:
        thought = {"type": "reasoning_text", "text": choice.reasoning}
        items.append(_message(f"{answer_id}:reasoning", [thought], status))
    parts: list[dict[str, Any]] = []
    said_nothing = not choice.text and bool(choice.tool_calls) and choice.reasoning is None
    if choice.text or (choice.refusal is None and not said_nothing):
        text: dict[str, Any] = {"type": "output_text", "text": choice.text, "annotations": []}
        if choice.logprobs and choice.refusal is None:
            text["logprobs"] = [_logprob(dict(token)) for token in choice.logprobs]
        parts.append(text)
    if choice.refusal is not None:
        parts.append({"type": "refusal", "refusal": choice.refusal})
    if parts:
        items.append(_message(answer_id, parts, status))
    items += [
        {
            "type": "function_call",
            "id": f"{answer_id}:{number}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for number, call in enumerate(choice.tool_calls)
    ]
    return items


def _message(message_id: str, parts: list[dict[str, Any]], status: str) -> dict[str, Any]:
    return {"type": "message", "id": message_id, "status": status, "role": "assistant", "content": parts}


def _whole_text(choice: Choice) -> str:
    texts = [choice.text] if choice.text or choice.refusal is None else []
    return "\n".join([*texts, *([choice.refusal] if choice.refusal is not None else [])])


def _logprob(token: dict[str, Any]) -> dict[str, Any]:
    return {
        "token": token["token"],
        "logprob": token["logprob"],
        "bytes": token.get("bytes") or [],
        "top_logprobs": [_logprob(dict(top)) for top in token.get("top_logprobs") or []],
    }
