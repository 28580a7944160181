"""Conversion of OpenInference spans, as Phoenix stores them.

See <https://arize-ai.github.io/openinference/spec/semantic_conventions.html>. `openinference.span.kind` is
the kind of a span. Lists are flattened (`llm.input_messages.0.message.role`), or nested with the same names
(`llm.input_messages: [{"message.role": …}]`), as in Phoenix's data frames.
"""

from __future__ import annotations

from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import count, usage
from aigo_formats.traces.attributes import Attributes, mapping, nested, parsed
from aigo_formats.traces.genai import of_messages
from aigo_formats.traces.items import Item, ItemMaker, as_text, text_part
from aigo_formats.traces.otlp import RawSpan
from aigo_formats.traces.span_records import Span, SpanEvent

_NAMESPACES = frozenset(
    {"llm", "input", "output", "openinference", "tool", "session", "user", "agent", "retrieval", "embedding"}
)
"""Namespaces of attributes."""
_KINDS = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
"""Kinds with a special span kind. All others keep their own name in lowercase."""


def is_openinference(raw: RawSpan) -> bool:
    """Return whether a span uses these conventions."""
    return "openinference.span.kind" in raw.attributes or (
        raw.kind is not None and not raw.kind.startswith("SPAN_KIND") and "SpanKind." not in raw.kind
    )


def span_of(raw: RawSpan, loss: LossReport) -> Span:
    """Convert a raw span to the common form. Other information is stored in its notes."""
    fields = Attributes(_flat(raw.attributes))
    word = as_text(fields.take("openinference.span.kind") or raw.kind).upper()
    kind = _KINDS.get(word, word.lower() or "span")
    maker = ItemMaker(loss, prefix=f"{raw.span_id}-call")
    heard = _messages(fields.take_list("llm.input_messages"), maker, loss)
    answers = _messages(fields.take_list("llm.output_messages"), maker, loss)
    arguments, result = "", ""
    if kind == "tool":
        arguments = as_text(fields.take("input.value", "tool.parameters"))
        result = as_text(fields.take("output.value"))
    elif kind == "model":
        heard = heard or _prompts(fields, maker)
        answers = answers or _completions(fields, maker)
    else:
        heard = heard or _value(fields, "input", "user", maker)
        answers = answers or _value(fields, "output", "assistant", maker)
    model = (
        fields.take("llm.model_name", "llm.response.model_name", "llm.request.model_name")
        if kind == "model"
        else None
    )
    errors = [event for event in raw.events if event.name == "exception"]
    events = [event for event in raw.events if not (raw.is_error and event.name == "exception")]
    error = None
    if raw.is_error:
        texts = [raw.status, *(as_text(event.attributes.get("exception.message")) for event in errors)]
        error = next((text for text in texts if text), "unknown error")
    name = raw.name
    if kind == "agent":
        name = as_text(fields.take("agent.name")) or raw.name
    tokens = None
    if kind == "model":
        tokens = usage(
            count(fields.take("llm.token_count.prompt")), count(fields.take("llm.token_count.completion"))
        )
    tool = as_text(fields.take("tool.name")) if kind == "tool" else ""
    call_id = fields.take("tool_call.id", "tool.id") if kind == "tool" else None
    return Span(
        id=raw.span_id,
        name=name,
        kind=kind,
        parent=raw.parent_id,
        start=raw.start,
        end=raw.end,
        notes={**({"span_name": raw.name} if name != raw.name else {}), **raw.notes, **fields.rest()},
        error=error,
        traceback=as_text(errors[0].attributes.get("exception.stacktrace")) or None
        if error and errors
        else None,
        input=heard,
        output=answers,
        model=as_text(model),
        usage=tokens,
        tools=_tools(fields) if kind == "model" else None,
        call_id=call_id if isinstance(call_id, str) else None,
        tool=tool,
        arguments=arguments,
        result=result,
        happenings=tuple(SpanEvent(event.name, event.attributes, event.time) for event in events),
    )


def _flat(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes with flat names. Nested attributes such as `{"llm": {"model_name": …}}` are
    flattened.
    """
    flat: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _NAMESPACES and isinstance(value, dict):
            _flatten(name, value, flat)
        else:
            flat[name] = value
    return flat


def _flatten(prefix: str, value: dict[str, Any], flat: dict[str, Any]) -> None:
    waiting = [(prefix, value)]
    while waiting:
        start, node = waiting.pop()
        for name, part in node.items():
            if isinstance(part, dict) and part:
                waiting.append((f"{start}.{name}", part))
            else:
                flat[f"{start}.{name}"] = part


def _messages(fields: list[Any] | None, maker: ItemMaker, loss: LossReport) -> list[Item]:
    items: list[Item] = []
    for entry in fields or []:
        wrapped = nested(entry)
        message = wrapped.get("message", wrapped) if isinstance(wrapped, dict) else wrapped
        if not isinstance(message, dict):
            loss.changed["message that is not an object: text of the user"] += 1
            items += maker.of_message("user", as_text(message))
            continue
        calls = list(_calls(message.get("tool_calls")))
        if message.get("function_call_name"):
            calls.append((None, message["function_call_name"], message.get("function_call_arguments_json")))
        contents = message.get("contents")
        content = message.get("content")
        if isinstance(contents, list) and contents:
            content = [_part(part) for part in contents]
        items += maker.of_message(
            message.get("role"),
            content,
            calls=calls,
            call_id=message.get("tool_call_id"),
            name=message.get("name"),
        )
    return items


def _calls(fields: Any) -> list[tuple[Any, Any, Any]]:
    calls = []
    for entry in fields if isinstance(fields, list) else []:
        call = entry.get("tool_call", entry) if isinstance(entry, dict) else {}
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            calls.append((call.get("id"), function.get("name"), function.get("arguments")))
    return calls


def _part(entry: Any) -> Any:
    """Return a message part in a provider's own form."""
    if not isinstance(entry, dict):
        return entry
    if isinstance(entry.get("tool_call"), dict):
        call = entry["tool_call"]
        return {"type": "tool_call", "id": call.get("id"), "function": call.get("function") or {}}
    part = entry.get("message_content", entry)
    if not isinstance(part, dict):
        return part
    image = part.get("image")
    if isinstance(image, dict) and isinstance(inner := image.get("image", image), dict):
        return {"type": "image", "url": inner.get("url")}
    return part


def _prompts(fields: Attributes, maker: ItemMaker) -> list[Item]:
    """Return the prompt of a call without messages: its completion prompts or its raw input."""
    prompts = fields.take_list("llm.prompts")
    if prompts is None:
        return _value(fields, "input", "user", maker)
    texts = [_prompt(prompt) for prompt in prompts]
    return maker.of_message("user", [text_part(as_text(text)) for text in texts])


def _prompt(entry: Any) -> Any:
    inner = mapping(entry).get("prompt", entry)
    return inner.get("text") if isinstance(inner, dict) else inner


def _completions(fields: Attributes, maker: ItemMaker) -> list[Item]:
    choices = fields.take_list("llm.choices")
    if not choices:
        return _value(fields, "output", "assistant", maker)
    choice = choices[0].get("completion", choices[0]) if isinstance(choices[0], dict) else choices[0]
    return maker.of_message("assistant", as_text(choice.get("text") if isinstance(choice, dict) else choice))


def _value(fields: Attributes, side: str, role: str, maker: ItemMaker) -> list[Item]:
    """Return the whole input or output of a span, as messages if it is a list of messages, otherwise as
    text.
    """
    value = fields.take(f"{side}.value")
    if value is None:
        return []
    content = parsed(value)
    if isinstance(content, dict):
        content = next((content[n] for n in ("messages",) if isinstance(content.get(n), list)), content)
    if isinstance(content, list) and content and all(isinstance(m, dict) and "role" in m for m in content):
        return of_messages(content, maker, role)
    return maker.of_message(role, as_text(value))


def _tools(fields: Attributes) -> list[str] | None:
    """Return the names of a model's tools. Their definitions remain in the attributes."""
    copy = Attributes(fields.rest())
    names = []
    for entry in copy.take_list("llm.tools") or []:
        tool = nested(entry)
        tool = tool.get("tool", tool) if isinstance(tool, dict) else {}
        schema = parsed(tool.get("json_schema")) if isinstance(tool, dict) else None
        function = schema.get("function", schema) if isinstance(schema, dict) else tool
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            names.append(function["name"])
    return names or None
