"""A model's answer → AI GO's `ModelResponse`: the raw output, and the items that join the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter

from aigo_bridge.connections import Choice, Reply, Usage
from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    CustomTaskOutputMessage,
    ModelResponse,
    ModelUsage,
    TraceItem,
)

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
        raw = chat_output(reply) if reply.raw is None else reply.raw
        return ModelResponse(raw_output=raw, items=_ITEMS.validate_python(items_of(reply.choices[0])))


def usage_of(usage: Usage | None) -> ModelUsage | None:
    """Token counts in AI GO's words; what an endpoint does not tell counts as none."""
    if usage is None:
        return None
    return ModelUsage(num_prompt_tokens=usage.prompt or 0, num_completion_tokens=usage.completion or 0)


def chat_output(reply: Reply) -> ChatCompletionModelOutput:
    """All choices in AI GO's chat form."""
    return ChatCompletionModelOutput(
        choices=[
            ChatCompletionModelOutputChoice(
                message=ChatCompletionOutputMessage(role="assistant", content=_whole_text(choice))
            )
            for choice in reply.choices
        ],
        usage=usage_of(reply.usage),
    )


def items_of(choice: Choice) -> list[dict[str, Any]]:
    """An answer as items: its reasoning in a message of its own, the text, then the calls it asks for."""
    incomplete = (choice.finish_reason or "").lower() in _INCOMPLETE
    status = "incomplete" if incomplete else "completed"
    answer_id = f"msg_{uuid4().hex}"
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
