"""Answers that arrive in pieces: server-sent events and JSON lines.

An author's adapter gets the raw text of the stream. This module serves the adapters of this package. It also
detects a stream that ended too early, because half an answer looks like a whole one.

Formats: server-sent events as in the HTML standard, section 9.2; OpenAI's chat completion chunks; Ollama's
chat lines.

This module parses event lines itself because `httpx-sse` takes a response instead of a text, drops a last
event without a blank line, and joins events that some servers send without a blank line between them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

DONE = "[DONE]"


@dataclass(frozen=True)
class Stream:
    """Events of a response."""

    events: tuple[dict[str, Any], ...]
    """Pieces that are JSON objects."""
    done: bool
    """Whether `[DONE]` announced the end."""
    broken: str | None = None
    """First piece that is not JSON; `None` if all are."""

    @property
    def is_known(self) -> bool:
        """Whether the events have a format that this module can merge."""
        return any(_is_piece(event) or _is_response_event(event) for event in self.events)


def stream_of(body: str) -> Stream | None:
    """Return the events of a streamed response; `None` if the text is not a stream."""
    head = body.lstrip("\ufeff \t\r\n")
    if head.startswith(("data:", "event:", "id:", "retry:", ":")):
        data = [piece for piece in _sse_data(head) if piece]
        return _stream([piece for piece in data if piece != DONE], done=DONE in data)
    if head.startswith("{") and "\n" in head.strip():
        lines = [line for line in head.splitlines() if line.strip()]
        stream = _stream(lines, done=False)
        # A pretty-printed object also has several lines, but they are not objects.
        if stream.broken is None or (stream.events and _is_piece(stream.events[0])):
            return stream
    return None


def _stream(pieces: list[str], *, done: bool) -> Stream:
    parsed = [(piece, _parsed(piece)) for piece in pieces]
    broken = next((piece for piece, value in parsed if value is None), None)
    return Stream(tuple(value for _, value in parsed if isinstance(value, dict)), done, broken)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _sse_data(text: str) -> Iterator[str]:
    """Yield the data of each event: its `data:` lines, joined."""
    data: list[str] = []
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line.strip() and data:
            joined = "\n".join(data).strip()
            # Some servers omit the blank lines: then each line is an event.
            yield from [joined] if _parsed(joined) is not None else [piece.strip() for piece in data]
            data = []


def _is_piece(event: dict[str, Any]) -> bool:
    return _is_chunk(event) or _is_line(event)


def _is_chunk(event: dict[str, Any]) -> bool:
    """Return whether an event is a piece of a chat completion."""
    if event.get("object") == "chat.completion.chunk":
        return True
    choices = event.get("choices")
    return isinstance(choices, list) and any(
        isinstance(choice, dict) and "delta" in choice for choice in choices
    )


def _is_line(event: dict[str, Any]) -> bool:
    """Return whether an event is a piece of an Ollama chat."""
    return isinstance(event.get("done"), bool) and ("message" in event or "response" in event)


def _is_response_event(event: dict[str, Any]) -> bool:
    return str(event.get("type", "")).startswith("response.")


def joined_texts(stream: Stream) -> list[str]:
    """Join the texts of the events by position: a word may begin in one event and end in the next."""
    places: dict[tuple[str | int, ...], list[str]] = {}
    for event in stream.events:
        for place, text in _texts(event, (str(event.get("type", "")),)):
            places.setdefault(place, []).append(text)
    return ["".join(texts) for texts in places.values()]


def tokens(body: str) -> str:
    """Join the tokens that a response lists with log probabilities; `""` if it lists none."""
    if '"token"' not in body:
        return ""
    value = _parsed(body)
    return "".join(
        text for place, text in _texts(value, ()) if place[-1:] == ("token",) and "top_logprobs" not in place
    )


def _texts(
    value: Any, place: tuple[str | int, ...], depth: int = 20
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict | list) and depth:
        named = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in named:
            yield from _texts(part, (*place, name), depth - 1)


def is_cut_off(stream: Stream) -> bool:
    """Return whether the stream ended before the answer; `False` for an unknown format."""
    if stream.broken is not None and any(map(_is_piece, stream.events)):
        return True
    chunks = [event for event in stream.events if _is_chunk(event)]
    if chunks and not stream.done:
        return not any(choice.get("finish_reason") for chunk in chunks for choice in _choices(chunk))
    lines = [event for event in stream.events if _is_line(event)]
    if lines:
        return not any(line["done"] for line in lines)
    return any(map(_is_response_event, stream.events)) and final_response(stream) is None


def final_response(stream: Stream) -> dict[str, Any] | None:
    """Return the response that closes a stream of OpenAI's Responses API; `None` without one."""
    for event in reversed(stream.events):
        if event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            response = event.get("response")
            return response if isinstance(response, dict) else None
    return None


def stream_error(stream: Stream) -> Any:
    """Return the error that an endpoint reports within the stream; `None` without one."""
    for event in stream.events:
        if event.get("error") and not event.get("choices"):
            return event["error"]
        if event.get("type") == "error":
            return event.get("message") or "the stream ended with an error"
    return None


def _choices(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


MANY_CHARACTERS = 100_000
"""Minimum length of a stream that is condensed, because the work of templates is bounded."""


def condensed(body: str) -> str:
    """Merge neighboring chunks of a long chat completion stream that only add text.

    The condensed stream has the same content. All other chunks are unchanged.
    """
    if len(body) < MANY_CHARACTERS or not body.lstrip().startswith("data:") or "\nevent:" in body:
        return body
    pieces: list[str | tuple[dict[str, Any], list[str]]] = []
    for text in _sse_data(body):
        event = _parsed(text)
        if not _only_adds_text(event):
            pieces.append(text)
            continue
        previous = pieces[-1] if pieces else ""
        if isinstance(previous, tuple) and _index(previous[0]) == _index(event):
            previous[1].append(_content(event))
        else:
            pieces.append((event, [_content(event)]))
    lines = (piece if isinstance(piece, str) else _joined(*piece) for piece in pieces)
    return "".join(f"data: {line}\n\n" for line in lines)


def _content(event: dict[str, Any]) -> str:
    content: str = event["choices"][0]["delta"]["content"]
    return content


def _joined(event: dict[str, Any], texts: list[str]) -> str:
    event["choices"][0]["delta"]["content"] = "".join(texts)
    return json.dumps(event)


def _only_adds_text(event: Any) -> bool:
    if not isinstance(event, dict) or not _is_chunk(event) or event.get("usage"):
        return False
    choices = _choices(event)
    if len(choices) != 1 or choices[0].get("finish_reason") or choices[0].get("logprobs"):
        return False
    delta = choices[0].get("delta")
    return (
        isinstance(delta, dict)
        and isinstance(delta.get("content"), str)
        and delta.keys() <= {"content", "role"}
    )


def _index(event: dict[str, Any]) -> Any:
    return event["choices"][0].get("index", 0)


@dataclass
class _ChoiceBuffer:
    """Choice whose pieces are still arriving."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name, texts in (
            ("content", self.content),
            ("reasoning_content", self.reasoning),
            ("reasoning", self.reasoning),
            ("refusal", self.refusal),
        ):
            if isinstance(delta.get(name), str):
                texts.append(delta[name])
        for position, part in enumerate(delta.get("tool_calls") or []):
            self._add_call(part, position)
        logprobs = choice.get("logprobs")
        if isinstance(logprobs, dict):
            self.logprobs += logprobs.get("content") or []
        self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def _add_call(self, part: dict[str, Any], position: int) -> None:
        index = part.get("index", position)
        call = self.calls.setdefault(index, {"id": "", "function": {"name": "", "arguments": ""}})
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    def whole(self, index: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.content)}
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.refusal:
            message["refusal"] = "".join(self.refusal)
        if self.calls:
            message["tool_calls"] = [self.calls[position] for position in sorted(self.calls)]
        choice: dict[str, Any] = {"index": index, "message": message, "finish_reason": self.finish_reason}
        if self.logprobs:
            choice["logprobs"] = {"content": self.logprobs}
        return choice


def merged(stream: Stream) -> dict[str, Any]:
    """Merge the pieces of a stream to one chat completion."""
    growing: dict[int, _ChoiceBuffer] = {}
    completion: dict[str, Any] = {}
    for event in stream.events:
        if _is_line(event):
            _add_line(event, growing.setdefault(0, _ChoiceBuffer()), completion)
            continue
        for choice in _choices(event):
            growing.setdefault(choice.get("index", 0), _ChoiceBuffer()).add(choice)
        completion |= {name: event[name] for name in ("id", "model", "usage") if event.get(name)}
    return {**completion, "choices": [growing[index].whole(index) for index in sorted(growing)]}


def _add_line(line: dict[str, Any], growing: _ChoiceBuffer, completion: dict[str, Any]) -> None:
    message = line.get("message")
    if not isinstance(message, dict):
        message = {"content": line.get("response")}
    growing.add({"delta": {"content": message.get("content"), "reasoning": message.get("thinking")}})
    if line.get("model"):
        completion["model"] = line["model"]
    if line["done"]:
        growing.finish_reason = line.get("done_reason") or "stop"
        if "eval_count" in line:
            completion["usage"] = {
                "prompt_tokens": line.get("prompt_eval_count", 0),
                "completion_tokens": line["eval_count"],
            }
