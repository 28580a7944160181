"""An answer of an AI GO model → Inspect's output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    Content,
    ContentReasoning,
    ContentText,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    StopReason,
    TopLogprob,
)
from inspect_ai.tool import ToolCall

from aigo_bridge.connections import Choice, Reply, ToolCallReply

RAW_OUTPUT = "aigo_output"
"""Key of `ModelOutput.metadata` for an answer that Inspect's types cannot hold: `task` of the model, and the `output` in AI
GO's form."""

_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "model_length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
"""Endpoints' words → Inspect's."""


def model_output(name: str, task: str, reply: Reply) -> ModelOutput:
    """An answer as Inspect's output."""
    usage = reply.usage
    choices = [_choice(name, choice) for choice in reply.choices] or [_opaque(name, reply)]
    kept = None if reply.choices and reply.raw is None else {RAW_OUTPUT: {"task": task, "output": reply.raw}}
    return ModelOutput(
        model=reply.model or name,
        choices=choices,
        usage=None
        if usage is None
        else ModelUsage(
            input_tokens=max(0, (usage.prompt or 0) - (usage.cached or 0)),
            output_tokens=usage.completion or 0,
            total_tokens=(usage.prompt or 0) + (usage.completion or 0),
            input_tokens_cache_read=usage.cached,
            reasoning_tokens=usage.reasoning,
        ),
        metadata=kept,
    )


def _choice(name: str, choice: Choice) -> ChatCompletionChoice:
    content: str | list[Content] = choice.text
    if choice.reasoning is not None or choice.refusal is not None:
        parts: list[Content] = (
            [] if choice.reasoning is None else [ContentReasoning(reasoning=choice.reasoning)]
        )
        if choice.text or choice.refusal is None:
            parts.append(ContentText(text=choice.text))
        if choice.refusal is not None:
            parts.append(ContentText(text=choice.refusal, refusal=True))
        content = parts
    calls = [_tool_call(call) for call in choice.tool_calls]
    logprobs = [_logprob(token) for token in choice.logprobs]
    stop: StopReason = "tool_calls" if calls else "stop"
    if choice.finish_reason is not None:
        stop = _STOP_REASONS.get(choice.finish_reason.lower(), "unknown")
    return ChatCompletionChoice(
        message=ChatMessageAssistant(
            content=content, tool_calls=calls or None, model=name, source="generate"
        ),
        stop_reason=stop,
        logprobs=Logprobs(content=logprobs) if logprobs else None,
    )


def _tool_call(call: ToolCallReply) -> ToolCall:
    try:
        arguments = json.loads(call.arguments or "{}")
        problem = None if isinstance(arguments, dict) else "expected an object"
    except ValueError as error:
        arguments, problem = None, str(error)
    return ToolCall(
        id=call.call_id,
        function=call.name,
        arguments=arguments if isinstance(arguments, dict) else {},
        parse_error=None if problem is None else f"arguments {call.arguments!r}: {problem}",
    )


def _logprob(token: Mapping[str, Any]) -> Logprob:
    tops = [
        TopLogprob(token=top["token"], logprob=top["logprob"], bytes=top.get("bytes"))
        for top in token.get("top_logprobs") or []
    ]
    return Logprob(
        token=token["token"], logprob=token["logprob"], bytes=token.get("bytes"), top_logprobs=tops or None
    )


def _opaque(name: str, reply: Reply) -> ChatCompletionChoice:
    """What stands in Inspect's views for an answer that is no chat message."""
    value = reply.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ChatCompletionChoice(
        message=ChatMessageAssistant(content=text, model=name, source="generate"), stop_reason="stop"
    )
