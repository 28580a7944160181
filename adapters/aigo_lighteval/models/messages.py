"""Conversion of requests to chat completion messages and of answers to AI GO's `ModelResponse`, and the
caller protocols.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol, runtime_checkable

import orjson
from pydantic import TypeAdapter

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    CustomTaskInputMessage,
    CustomTaskOutputMessage,
    FunctionCall,
    FunctionCallOutput,
    InputFileContent,
    InputImageContent,
    Message,
    MessageRole,
    MessageStatus,
    ModelResponse,
    ModelUsage,
    ReasoningTextContent,
    RefusalContent,
    SummaryTextContent,
    TraceItem,
)
from aigo_bridge.dtypes.base import maker
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.checkpoint import CheckpointCall
from aigo_bridge.models.connections import (
    Choice,
    Exchange,
    MLTask,
    Reply,
    ToolCallReply,
    Usage,
)
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_bridge.solving.conversation import message_of, output_choice, output_text

ChatMessage = dict[str, Any]


def chat_messages(request: ModelRequest, stage: Stage) -> list[ChatMessage]:
    """Return the messages of a request, without earlier reasoning.

    Raises:
        SampleError: a part cannot be expressed as a chat message.
    """
    if request.items is not None:
        return _of_items(request.items, stage)
    messages: list[ChatMessage] = []
    for message in request.input.messages:
        if not isinstance(message.content, str):
            raise _unsupported(
                "a message refers to a file by id, which endpoints cannot resolve",
                stage,
                "put the text into the message",
            )
        messages.append({"role": message.role, "content": message.content})
    return messages


def text_of(message: ChatMessage) -> str:
    """Return the text of a chat message, with line breaks between its parts."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _of_items(items: Iterable[TraceItem], stage: Stage) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for item in items:
        match item:
            case FunctionCall():
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                function = {"name": item.name, "arguments": item.arguments}
                call = {"id": item.call_id, "type": "function", "function": function}
                messages[-1].setdefault("tool_calls", []).append(call)
            case FunctionCallOutput():
                content = item.output if isinstance(item.output, str) else _content(item.output, stage)
                messages.append({"role": "tool", "content": content, "tool_call_id": item.call_id})
            case Message():
                if item.content and all(_is_reasoning(part) for part in item.content):
                    continue
                role = "system" if item.role.value == "developer" else item.role.value
                messages.append({"role": role, "content": _content(item.content, stage)})
            case CustomTaskInputMessage() | CustomTaskOutputMessage():
                role = "user" if isinstance(item, CustomTaskInputMessage) else "assistant"
                opaque = item.content
                text = opaque if isinstance(opaque, str) else orjson.dumps(opaque, default=str).decode()
                messages.append({"role": role, "content": text})
    return messages


def _content(parts: Sequence[Any], stage: Stage) -> str | list[dict[str, Any]]:
    shown = [_part(part, stage) for part in parts if not _is_reasoning(part)]
    if all(part["type"] == "text" for part in shown):
        return "\n".join(part["text"] for part in shown)
    return shown


def _is_reasoning(part: object) -> bool:
    return isinstance(part, ReasoningTextContent | SummaryTextContent)


def _part(part: Any, stage: Stage) -> dict[str, Any]:
    match part:
        case RefusalContent():
            return {"type": "text", "text": part.refusal}
        case InputImageContent(image_url=str(url)):
            return {"type": "image_url", "image_url": {"url": url, "detail": str(part.detail.value)}}
        case InputFileContent(file_url=str(url)):
            return {"type": "file", "file": {"filename": part.filename or "file", "file_data": url}}
    text = getattr(part, "text", None)
    if not isinstance(text, str):
        raise _unsupported(
            f"a message has a part of type {part.type!r}, which endpoints do not support", stage
        )
    return {"type": "text", "text": text}


def _unsupported(message: str, stage: Stage, hint: str | None = None) -> SampleError:
    return SampleError(message, stage=stage, hint=hint, kind="UnsupportedContent")


# Answers: raw output, and items for the conversation


_model_response = maker(ModelResponse)
_model_output = maker(ChatCompletionModelOutput)
_model_usage = maker(ModelUsage)

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])

_INCOMPLETE = frozenset({"length", "max_tokens", "model_length", "content_filter", "refusal"})
"""Stop reasons of incomplete answers."""


@dataclass(frozen=True)
class ModelAnswer:
    """Answer of one model call."""

    reply: Reply
    task: MLTask = "chat_completion"
    """Task type of the model."""

    def response(self) -> ModelResponse:
        """Return the answer as a `ModelResponse` for aigo-bridge."""
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
    """Return input and output tokens. A count that the endpoint omits is 0."""
    return None if usage is None else (usage.prompt or 0, usage.completion or 0)


def _usage(usage: Usage | None) -> ModelUsage | None:
    tokens = tokens_of(usage)
    if tokens is None:
        return None
    return _model_usage({"num_prompt_tokens": tokens[0], "num_completion_tokens": tokens[1]})


def chat_output(reply: Reply) -> ChatCompletionModelOutput:
    """Return all choices in AI GO's chat form."""
    return _model_output(
        {
            "choices": [output_choice(_whole_text(choice)) for choice in reply.choices],
            "usage": _usage(reply.usage),
        }
    )


def _items(choice: Choice) -> list[TraceItem]:
    if choice.refusal is None and choice.reasoning is None and not choice.tool_calls and not choice.logprobs:
        # Shortcut for the most common case, a plain text answer.
        status = MessageStatus(_status(choice))
        return [message_of(MessageRole.assistant, output_text(choice.text), item_id=_new_id(), status=status)]
    return _ITEMS.validate_python(items_of(choice))


def _status(choice: Choice) -> str:
    return "incomplete" if (choice.finish_reason or "").lower() in _INCOMPLETE else "completed"


def _new_id() -> str:
    return f"msg_{token_hex(16)}"


def items_of(choice: Choice) -> list[dict[str, Any]]:
    """Convert an answer to items: a message with its reasoning, the text, then the tool calls."""
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


# Answers kept during a run


async def attempted(
    call: CheckpointCall | None, attempt: Coroutine[Any, Any, tuple[ModelAnswer, Exchange]]
) -> tuple[ModelAnswer, Exchange]:
    """Await an attempt and return its answer, or reuse the answer from the run that is resumed."""
    earlier = None if call is None else _from_json(call.answer())
    if earlier is not None:
        attempt.close()
        return earlier
    answer, exchange = await attempt
    if call is not None:
        with suppress(TypeError, ValueError):  # text with lone surrogates is not kept
            entry = orjson.dumps({"task": answer.task, "reply": answer.reply, "exchange": exchange})
            # Keep only answers that JSON can represent, for example without NaN.
            if _from_json(orjson.loads(entry)) == (answer, exchange):
                call.keep(entry)
    return answer, exchange


def _from_json(entry: Any) -> tuple[ModelAnswer, Exchange] | None:
    if not isinstance(entry, dict):
        return None
    try:
        fields = dict(entry["reply"])
        usage = fields["usage"]
        fields["usage"] = None if usage is None else Usage(**usage)
        fields["choices"] = tuple(_choice(choice) for choice in fields["choices"])
        return ModelAnswer(Reply(**fields), entry["task"]), Exchange(**entry["exchange"])
    except (KeyError, TypeError):  # written by another release
        return None


def _choice(fields: dict[str, Any]) -> Choice:
    calls = tuple(ToolCallReply(**call) for call in fields["tool_calls"])
    return Choice(**{**fields, "tool_calls": calls, "logprobs": tuple(fields["logprobs"])})


# Model callers


class AttemptError(Exception):
    """Error for an attempt without an answer."""

    def __init__(
        self,
        error: SampleError,
        *,
        is_transient: bool,
        retry_after: float | None = None,
        exchange: Exchange | None = None,
    ):
        super().__init__(error.message)
        self.error = error
        self.is_transient = is_transient
        self.retry_after = retry_after
        self.exchange = exchange


class Caller(Protocol):
    """Model that makes single attempts without retries."""

    name: str
    """Model name as the user wrote it."""
    max_concurrent: int
    """Maximum number of concurrent calls."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the options in the user's model string, as chat completion options; `None`: server
        default.
        """
        ...

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Call the model.

        Raises:
            SampleError: the model does not support the request.
            AttemptError: the call returned no answer.
        """
        ...

    async def aclose(self) -> None:
        """Release open resources."""
        ...


@runtime_checkable
class LikelihoodCaller(Protocol):
    """Model that returns the likelihoods of given texts."""

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """Return the likelihoods of texts after a request's prompt.

        Raises:
            SampleError: the model does not support the request.
            AttemptError: the call returned no answer.
        """
        ...


@runtime_checkable
class LoadingCaller(Protocol):
    """Model that must be loaded before it is called."""

    def load(self) -> object:
        """Load the model on the first call.

        Raises:
            UsageError: the model cannot be loaded.
        """
        ...
