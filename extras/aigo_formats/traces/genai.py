"""Conversion of spans with OpenTelemetry's semantic conventions for generative AI.

See <https://opentelemetry.io/docs/specs/semconv/gen-ai/>. `gen_ai.operation.name` is the kind of a span. By
default, recorders do not store messages. Recorded messages have several forms:

- `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions` as attributes of the span
  or of its event `gen_ai.client.inference.operation.details`.
- Before release 1.37: an event for each message (`gen_ai.user.message`, `gen_ai.choice` …),
  `gen_ai.content.prompt` and `gen_ai.content.completion`.
- In OpenLLMetry: `gen_ai.prompt.<n>.role` and similar attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import count, usage
from aigo_formats.traces.attributes import Attributes, mapping, parsed
from aigo_formats.traces.items import Item, ItemMaker, as_text
from aigo_formats.traces.otlp import RawEvent, RawSpan
from aigo_formats.traces.span_records import Span, SpanEvent

_KINDS = {
    "chat": "model", "text_completion": "model", "generate_content": "model", "completion": "model",
    "execute_tool": "tool", "invoke_agent": "agent",
}  # fmt: skip
"""Operations with a special span kind. All others keep their own name."""
_TRACELOOP = {"agent": "agent", "tool": "tool", "workflow": "workflow", "task": "task"}
_MESSAGE_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_DETAILS = "gen_ai.client.inference.operation.details"


def is_genai(raw: RawSpan) -> bool:
    """Return whether a span uses these conventions."""
    return any(name.startswith(("gen_ai.", "llm.", "traceloop.")) for name in raw.attributes)


def span_of(raw: RawSpan, loss: LossReport) -> Span:
    """Convert a raw span to the common form. Other information is stored in its notes."""
    fields = Attributes(raw.attributes)
    events = list(raw.events)
    for event in [e for e in events if e.name == _DETAILS]:
        for name, value in event.attributes.items():
            fields.offer(name, value)
        events.remove(event)
    kind = _kind(fields)
    maker = ItemMaker(loss, prefix=f"{raw.span_id}-call")
    answers, heard, events = _content(fields, events, maker, plain=kind not in ("model", "tool"))
    errors = [event for event in events if event.name == "exception"]
    if raw.is_error:
        events = [event for event in events if event.name != "exception"]
    tool = _text(fields.take("gen_ai.tool.name")) or (raw.name if kind == "tool" else "")
    tokens = _usage(fields) if kind == "model" else None
    arguments = (
        fields.take("gen_ai.tool.call.arguments", "traceloop.entity.input") if kind == "tool" else None
    )
    result = fields.take("gen_ai.tool.call.result", "traceloop.entity.output") if kind == "tool" else None
    call_id = _text(fields.take("gen_ai.tool.call.id"))
    name = raw.name
    if kind == "agent":
        name = _text(fields.take("gen_ai.agent.name", "traceloop.entity.name")) or raw.name
    model = _text(fields.take("gen_ai.response.model", "llm.response.model")) or ""
    requested = fields.take("gen_ai.request.model", "llm.request.model") if not model else None
    tools = _tools(fields) if kind == "model" else None
    return Span(
        id=raw.span_id,
        name=name,
        kind=kind,
        parent=raw.parent_id,
        start=raw.start,
        end=raw.end,
        notes={**({"span_name": raw.name} if name != raw.name else {}), **raw.notes, **fields.rest()},
        error=_error(raw, errors) if raw.is_error else None,
        traceback=_text(errors[0].attributes.get("exception.stacktrace"))
        if raw.is_error and errors
        else None,
        input=heard,
        output=answers,
        model=model or _text(requested) or "",
        usage=tokens,
        tools=tools,
        call_id=call_id,
        tool=tool,
        arguments=as_text(arguments),
        result=_result(result, maker),
        happenings=tuple(SpanEvent(event.name, event.attributes, event.time) for event in events),
    )


def _kind(fields: Attributes) -> str:
    operation = fields.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return _KINDS.get(operation, operation)
    entity = fields.get("traceloop.span.kind")
    if isinstance(entity, str) and entity in _TRACELOOP:
        return _TRACELOOP[entity]
    if fields.get("llm.request.type") in ("chat", "completion"):
        return "model"
    named = ("gen_ai.request.model", "gen_ai.response.model")
    if any(fields.get(name) for name in named) and (
        fields.get("gen_ai.system") or fields.get("gen_ai.provider.name")
    ):
        return "model"
    return "span"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _error(raw: RawSpan, errors: Sequence[RawEvent]) -> str:
    if raw.status:
        return raw.status
    for event in errors:
        if text := _text(event.attributes.get("exception.message")) or _text(
            event.attributes.get("exception.type")
        ):
            return text
    return _text(raw.attributes.get("error.type")) or "unknown error"


def _usage(fields: Attributes) -> dict[str, int] | None:
    """Return the tokens. By these conventions, prompt tokens include cached tokens."""
    prompt = fields.take("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
    answer = fields.take(
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"
    )
    return usage(count(prompt), count(answer))


def _tools(fields: Attributes) -> list[str] | None:
    definitions = parsed(fields.get("gen_ai.tool.definitions"))
    names = []
    for tool in definitions if isinstance(definitions, list) else []:
        function = tool.get("function") if isinstance(tool, dict) else None
        named = function if isinstance(function, dict) else tool
        if isinstance(named, dict) and isinstance(named.get("name"), str):
            names.append(named["name"])
    return names or None


def _result(result: Any, maker: ItemMaker) -> str | list[Item]:
    if result is None:
        return ""
    return result if isinstance(result, str) else maker.tool_output([as_text(result)])


def _content(
    fields: Attributes, events: list[RawEvent], maker: ItemMaker, *, plain: bool
) -> tuple[list[Item], list[Item], list[RawEvent]]:
    """Return the recorded output and input of a span, and its other events."""
    heard: list[Item] = []
    instructions = parsed(fields.take("gen_ai.system_instructions"))
    if instructions is not None:
        heard += maker.of_message(
            "system", instructions if isinstance(instructions, list) else [instructions]
        )
    heard += of_messages(fields.take("gen_ai.input.messages"), maker)
    answers = of_messages(fields.take("gen_ai.output.messages"), maker, role="assistant")
    remaining: list[RawEvent] = []
    for event in events:
        content = {name.removeprefix("gen_ai.event."): value for name, value in event.attributes.items()}
        if event.name in _MESSAGE_EVENTS:
            role = content.get("role") or _MESSAGE_EVENTS[event.name]
            heard += of_messages([{**_event_body(content), "role": role}], maker)
        elif event.name == "gen_ai.choice":
            body = _event_body(content)
            choice = parsed(body.get("message"))
            answers += of_messages(
                [{"role": "assistant", **(choice if isinstance(choice, dict) else body)}], maker
            )
        elif event.name == "gen_ai.content.prompt":
            heard += of_messages(event.attributes.get("gen_ai.prompt"), maker, role="user")
        elif event.name == "gen_ai.content.completion":
            answers += of_messages(event.attributes.get("gen_ai.completion"), maker, role="assistant")
        else:
            remaining.append(event)
    if not heard:
        heard = of_messages(fields.take_list("gen_ai.prompt", "llm.prompts"), maker, role="user")
    if not answers:
        answers = of_messages(
            fields.take_list("gen_ai.completion", "llm.completions"), maker, role="assistant"
        )
    if plain:
        heard = heard or _plain(fields.take("traceloop.entity.input"), "user", maker)
        answers = answers or _plain(fields.take("traceloop.entity.output"), "assistant", maker)
    return answers, heard, remaining


def _event_body(content: dict[str, Any]) -> dict[str, Any]:
    body = content.get("body")
    return {**content, **body} if isinstance(body, dict) else content


def _plain(value: Any, role: str, maker: ItemMaker) -> list[Item]:
    return [] if value is None else maker.of_message(role, as_text(value))


def of_messages(fields: Any, maker: ItemMaker, role: str | None = None) -> list[Item]:
    """Return the items of messages, given as a list or JSON text. Other text is one message."""
    messages = parsed(fields)
    if messages is None:
        return []
    if isinstance(messages, dict):
        messages = messages["messages"] if isinstance(messages.get("messages"), list) else [messages]
    if not isinstance(messages, list):
        return maker.of_message(role or "user", as_text(messages))
    return [item for message in messages for item in of_chat(message, maker, role)]


def of_chat(message: Any, maker: ItemMaker, role: str | None = None) -> list[Item]:
    """Return the items of one message, which has `parts` or `content` or is a text."""
    if not isinstance(message, dict):
        return maker.of_message(role or "user", as_text(message))
    content = next((message[n] for n in ("parts", "content", "text") if message.get(n) is not None), None)
    inner = (
        parsed(content)
        if isinstance(content, str) and content[:2] in ("[{", '{"') and _is_parts(content)
        else content
    )
    return maker.of_message(
        message.get("role") or role,
        [inner] if isinstance(inner, dict) else inner,
        id=message.get("id"),
        calls=list(chat_calls(message.get("tool_calls"))),
        call_id=message.get("tool_call_id") or message.get("id"),
        name=message.get("name"),
    )


def _is_parts(text: str) -> bool:
    """Return whether a text is the JSON of message parts, as some recorders write it."""
    value = parsed(text)
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts)


def chat_calls(fields: Any) -> Iterable[tuple[Any, Any, Any]]:
    """Yield id, name and arguments of the tool calls in a chat message."""
    calls = parsed(fields)
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            function = mapping(call.get("function")) or call
            arguments = next(
                (function[n] for n in ("arguments", "args", "input") if function.get(n) is not None), None
            )
            yield call.get("id"), function.get("name"), arguments
