"""Conversion of messages of providers and frameworks to trace items.

It supports OpenAI's chat messages, Anthropic's content blocks, LangChain's messages, and the parts of
OpenTelemetry's GenAI conventions. An answer is split at each tool call. Reasoning is a separate message and
not part of the answer text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text

Item = dict[str, Any]

_ROLES = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "system": "system", "developer": "developer",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXT = frozenset({"text", "input_text", "output_text", "text_delta"})
_REASONING = frozenset({"thinking", "reasoning", "reasoning_text", "reasoning_content"})
_CALL = frozenset({"tool_use", "tool_call", "tool-call", "server_tool_use", "function_call", "mcp_tool_use"})
_ANSWER = frozenset({
    "tool_result", "tool_call_response", "tool-result", "function_call_output", "mcp_tool_result",
    "web_search_tool_result", "server_tool_call_response",
})  # fmt: skip
_FILES = ("image", "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio",
          "video", "media", "blob", "uri", "computer_screenshot")  # fmt: skip


def role_of(role: object) -> str | None:
    """Return a role of a trace, or `tool`; `None` if the role is unknown."""
    return _ROLES.get(role.lower()) if isinstance(role, str) else None


def text_part(text: str, *, written: bool = False) -> Item:
    """Return a text part of a message, either written by the model or given to it."""
    if written:
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def message(role: str, parts: Sequence[Item], *, id: str = "") -> Item:  # noqa: A002  # the field's name
    """Return a message item."""
    return {"type": "message", "id": id, "status": "completed", "role": role, "content": list(parts)}


def call_item(call_id: str, name: str, arguments: str) -> Item:
    """Return a tool call item."""
    return {
        "type": "function_call", "id": call_id, "call_id": call_id, "name": name,
        "arguments": arguments, "status": "completed",
    }  # fmt: skip


def answer_item(call_id: str, output: str | list[Item]) -> Item:
    """Return a tool result item."""
    return {
        "type": "function_call_output", "id": f"{call_id}:output", "call_id": call_id,
        "output": output, "status": "completed",
    }  # fmt: skip


def kind_of(part: Any) -> str | None:
    """Return the `type` of a part, if it has one."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else None


def as_text(value: Any) -> str:
    """Return a text unchanged, `None` as empty text, and any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


class ItemMaker:
    """Converter of one conversation's messages to items, in order. It counts changes."""

    def __init__(self, loss: LossReport, prefix: str = "call"):
        """Create a converter. `prefix` is used for ids of calls without an id."""
        self._loss = loss
        self._prefix = prefix
        self._made = 0
        self._open: list[tuple[str, str]] = []
        """Id and name of calls without their own id that wait for a result."""

    def of_message(
        self,
        role: object,
        content: Any,
        *,
        id: object = "",  # noqa: A002
        calls: Iterable[tuple[Any, Any, Any]] = (),
        call_id: Any = None,
        name: Any = None,
    ) -> list[Item]:
        """Return the items of a message.

        Args:
            role: role of the message, in any dialect.
            content: a text, a list of parts, or `None`.
            id: id of the message.
            calls: tool calls outside the content: id, name and arguments.
            call_id: id of the call that the message answers.
            name: name of the tool that answers.
        """
        speaker = role_of(role)
        key = id if isinstance(id, str) else ""
        parts = content if isinstance(content, list) else [] if content is None else [content]
        if speaker == "tool":
            return self._answers(parts, call_id, name)
        if speaker is None:
            self._loss.changed["message of an unknown role: custom item"] += 1
            return [{"type": "custom_task_input_message", "content": {"role": role, "content": content}}]
        items: list[Item] = []
        for part in parts:
            self._add(items, part, speaker, key)
        written = {item["call_id"] for item in items if item["type"] == "function_call"}
        for own_id, tool, arguments in calls:
            if not (isinstance(own_id, str) and own_id in written):
                items.append(self._call(own_id, tool, arguments))
        if not items:
            items = [message(speaker, [], id=key)]
        return items

    def _add(self, items: list[Item], part: Any, role: str, key: str) -> None:
        """Add a part of a message to the items."""
        kind = kind_of(part)
        if isinstance(part, dict) and kind in _CALL:
            function: Item = part["function"] if isinstance(part.get("function"), dict) else part
            arguments = next((function[n] for n in ("input", "arguments", "args") if n in function), None)
            own_id = part.get("id") or part.get("call_id") or part.get("tool_call_id")
            items.append(self._call(own_id, function.get("name"), arguments))
            return
        if isinstance(part, dict) and kind in _ANSWER:
            items += self._answer_part(part)
            return
        if isinstance(part, dict) and (kind in _REASONING or kind == "redacted_thinking"):
            text = self._reasoning(part)
            if text is not None:
                items.append(message(role, [{"type": "reasoning_text", "text": text}], id=key))
            return
        content = self.part(part, written=role == "assistant")
        previous = items[-1] if items else None
        if (
            previous is not None
            and previous["type"] == "message"
            and not any(p["type"] == "reasoning_text" for p in previous["content"])
        ):
            previous["content"].append(content)
        else:
            items.append(message(role, [content], id=key))

    def _reasoning(self, part: dict[str, Any]) -> str | None:
        """Return the text of reasoning; `None` if only its ciphertext is recorded."""
        if part.get("signature") or part.get("encrypted_content") or part.get("data"):
            self._loss.changed["reasoning: signature or ciphertext left out"] += 1
        for name in ("thinking", "reasoning", "text", "content", "reasoning_content"):
            if isinstance(part.get(name), str) and part[name]:
                return str(part[name])
        summary = part.get("summary")
        if isinstance(summary, list):
            texts = [p["text"] for p in summary if isinstance(p, dict) and isinstance(p.get("text"), str)]
            if texts:
                return "\n".join(texts)
        self._loss.changed["reasoning without text: left out"] += 1
        return None

    def _call(self, own_id: Any, name: Any, arguments: Any) -> Item:
        tool = name if isinstance(name, str) else as_text(name)
        call_id = own_id if isinstance(own_id, str) and own_id else None
        if call_id is None:
            self._made += 1
            call_id = f"{self._prefix}-{self._made}"
            self._open.append((call_id, tool))
            self._loss.changed["tool call without an id: numbered"] += 1
        return call_item(call_id, tool, as_text(arguments))

    def _answered(self, own_id: Any, name: Any) -> str:
        """Return the call that a result belongs to."""
        if isinstance(own_id, str) and own_id:
            return own_id
        for index, (call_id, tool) in enumerate(self._open):
            if name is None or name == tool:
                del self._open[index]
                return call_id
        self._loss.changed["tool result without a call id: not assigned to a call"] += 1
        return ""

    def _answers(self, parts: list[Any], call_id: Any, name: Any) -> list[Item]:
        """Return the results in a tool message: one for each part with a call id, and one for all others."""
        answering = [part for part in parts if isinstance(part, dict) and kind_of(part) in _ANSWER]
        items = [item for part in answering for item in self._answer_part(part)]
        plain = [part for part in parts if not (isinstance(part, dict) and kind_of(part) in _ANSWER)]
        if plain or not answering:
            items.append(answer_item(self._answered(call_id, name), self.tool_output(plain)))
        return items

    def _answer_part(self, part: dict[str, Any]) -> list[Item]:
        own_id = next(
            (part[n] for n in ("tool_use_id", "id", "tool_call_id", "call_id") if part.get(n)), None
        )
        value = next((part[n] for n in ("content", "response", "result", "output") if n in part), None)
        parts = value if isinstance(value, list) else [] if value is None else [value]
        return [answer_item(self._answered(own_id, part.get("name")), self.tool_output(parts))]

    def tool_output(self, parts: list[Any]) -> str | list[Item]:
        """Return the result of a tool: a single text unchanged, several parts as a list."""
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], str):
            return parts[0]
        return [self.part(part, written=False) for part in parts]

    def part(self, part: Any, *, written: bool) -> Item:
        """Convert a part of a message or tool result, other than calls, results and reasoning."""
        if isinstance(part, str):
            return text_part(part, written=written)
        kind = kind_of(part)
        if isinstance(part, dict) and (kind in _TEXT or kind is None):
            text = part.get("text") if isinstance(part.get("text"), str) else part.get("content")
            if isinstance(text, str):
                return text_part(text, written=written)
        if kind == "refusal" and written and isinstance(part.get("refusal"), str):
            return {"type": "refusal", "refusal": part["refusal"]}
        if kind in _FILES and (file := _file(part)) is not None:
            if written and file["type"] == "input_image":
                self._loss.changed["image in an answer: file"] += 1
                return {"type": "input_file", "file_url": file["image_url"]}
            return file
        self._loss.changed["message part of an unknown kind: JSON as text"] += 1
        return text_part(json_text(part), written=written)


def _file(part: dict[str, Any]) -> Item | None:
    """Convert an image, document or sound; `None` if its location is unknown."""
    kind = str(part.get("type"))
    inner = part.get(kind) if isinstance(part.get(kind), dict) else None
    source = next((p for p in (part.get("source"), inner, part) if isinstance(p, dict)), part)
    media = next(
        (v for p in (source, part) for n in ("media_type", "mime_type", "mimeType", "format")
         if isinstance(v := p.get(n), str) and v), None,
    )  # fmt: skip
    url = next(
        (source[n] for n in ("url", "uri", "image_url", "file_url") if isinstance(source.get(n), str)), None
    )
    if url is None and isinstance(part.get("image_url"), str):
        url = part["image_url"]
    data = next(
        (source[n] for n in ("data", "base64", "content", "file_data") if isinstance(source.get(n), str)),
        None,
    )
    if url is None and data is not None:
        if source.get("type") == "text":
            return text_part(data)
        url = (
            data if data.startswith("data:") else f"data:{media or 'application/octet-stream'};base64,{data}"
        )
    name = next(
        (v for p in (part, source) for n in ("filename", "title", "name") if isinstance(v := p.get(n), str)),
        None,
    )
    if url is None:
        handle = next((source[n] for n in ("file_id", "id") if isinstance(source.get(n), str)), None)
        if handle is None:
            return None
        url = handle
    is_image = "image" in kind or part.get("modality") == "image" or str(media).startswith("image/")
    if is_image:
        detail = source.get("detail")
        return {
            "type": "input_image",
            "image_url": url,
            "detail": detail if detail in ("low", "high") else "auto",
        }
    file: Item = {"type": "input_file", "file_url": url}
    if name is not None:
        file["filename"] = name
    return file
