"""Model calls, tool calls and sub-agent calls in a Claude Code session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import Event, count, usage
from aigo_formats.traces.items import Item, ItemMaker, as_text
from aigo_formats.traces.session_tree import TranscriptLine

SOURCE = "claude_code"
_SYNTHETIC = "<synthetic>"
"""Model name of answers that Claude Code wrote itself."""
_STARTERS = ("Task", "Agent")
"""Tools that start sub-agents."""


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool."""

    call_id: str
    record: TranscriptLine
    block: dict[str, Any]


@dataclass(frozen=True)
class ToolResults:
    """Tool results of a session."""

    by_call: dict[str, ToolResult]
    by_agent: dict[str, ToolResult]
    """Results of the tools that started sub-agents, by sub-agent."""


def results_of(records: Iterable[TranscriptLine], loss: LossReport) -> ToolResults:
    """Return all tool results. If a call has several, the first counts."""
    by_call: dict[str, ToolResult] = {}
    by_agent: dict[str, ToolResult] = {}
    for record in records:
        if record.type != "user":
            continue
        for block in record.blocks:
            if block.get("type") != "tool_result":
                continue
            call_id = block.get("tool_use_id")
            key = call_id if isinstance(call_id, str) else f"line-{record.number}"
            result = ToolResult(key, record, block)
            if key in by_call:
                if by_call[key].block != block:
                    loss.dropped["second result of a tool call"] += 1
                continue
            by_call[key] = result
            details = record.value.get("toolUseResult")
            agent = details.get("agentId") if isinstance(details, dict) else None
            if isinstance(agent, str):
                by_agent.setdefault(agent, result)
    return ToolResults(by_call, by_agent)


class ModelAnswerConverter:
    """Converter of model answers to events. A call is one event although its parts are on several lines."""

    def __init__(self, loss: LossReport, notes_of: Callable[[TranscriptLine], dict[str, Any]]):
        self._loss = loss
        self._rest = notes_of
        self._maker = ItemMaker(loss)
        self._calls: dict[str, Event] = {}
        self.tools: dict[str, Event] = {}
        """Tool calls by id."""

    def events_of(self, record: TranscriptLine) -> list[Event]:
        """Return the events of an assistant line."""
        message = record.message
        if message.get("model") == _SYNTHETIC or record.value.get("isApiErrorMessage") is True:
            return [self._synthetic(record)]
        content = message.get("id")
        key = content if isinstance(content, str) and content else record.uuid or f"line-{record.number}"
        events: list[Event] = []
        call = self._calls.get(key)
        if call is None:
            model = message.get("model")
            call = {
                "type": "model_call_event",
                "id": key,
                "model": model if isinstance(model, str) else "",
                "input_context": [],
                "output_items": [],
                "metadata": self._rest(record),
            }
            call["metadata"][SOURCE]["lines"] = []
            self._calls[key] = call
            events.append(call)
        notes = call["metadata"][SOURCE]
        notes["lines"].append(record.uuid or record.number)
        for name in ("stop_reason", "stop_sequence", "container", "context_management", "diagnostics"):
            if message.get(name) is not None:
                notes[name] = message[name]
        if isinstance(message.get("usage"), dict):
            # Each line of an answer contains the usage so far.
            notes["usage"] = message["usage"]
            tokens = _tokens(message["usage"])
            if tokens is not None:
                call["usage"] = tokens
            elif message["usage"]:
                call.pop("usage", None)
        items = self._maker.of_message("assistant", message.get("content"), id=f"{key}:{len(notes['lines'])}")
        for index, item in enumerate(items):
            if item["type"] == "message" and not item["content"]:
                continue
            call["output_items"].append(item)
            tool = self.tools.get(item["call_id"]) if item["type"] == "function_call_output" else None
            if tool is not None:  # a provider's tool has its result in the model's answer
                tool["result"], tool["status"] = item["output"], "completed"
                continue
            events.append(self._event(record, key, item, index))
        return events

    def _event(self, record: TranscriptLine, key: str, item: Item, index: int) -> Event:
        identity = f"{record.uuid or f'line-{record.number}'}:{index}"
        if item["type"] == "message":
            return {"type": "message_event", "id": identity, "item": item, "model_call_id": key}
        if item["type"] != "function_call":
            self._loss.changed["tool result in a model answer: custom event"] += 1
            return {"type": "custom", "id": identity, "name": item["type"], "data": item}
        return self._tool(identity, key, item, record)

    def _tool(self, identity: str, key: str, item: Item, record: TranscriptLine) -> Event:
        call_id = item["call_id"]
        event: Event = {
            "type": "function_call_event",
            "id": identity,
            "call_id": call_id,
            "function": item["name"],
            "arguments": item["arguments"],
            "result": "",
            "status": "incomplete",
            "model_call_id": key,
        }
        if call_id in self.tools:
            self._loss.changed["tool call with a duplicate id"] += 1
        else:
            self.tools[call_id] = event
        return event

    def answer(self, results: ToolResults) -> None:
        """Add the tool results to their calls."""
        for call_id, event in self.tools.items():
            result = results.by_call.get(call_id)
            if result is None and event["status"] == "completed":
                continue
            if result is None:
                self._loss.changed["tool call without a result: incomplete"] += 1
                continue
            content = result.block.get("content")
            parts = content if isinstance(content, list) else [] if content is None else [content]
            event["result"] = self._maker.tool_output(parts)
            event["status"] = "completed"
            if result.block.get("is_error") is True:
                event["error"] = _error(content)
            details = result.record.value.get("toolUseResult")
            event["metadata"] = self._rest(result.record)
            if details is not None:
                event["metadata"][SOURCE]["toolUseResult"] = details
            if (took := _milliseconds(details)) is not None:
                event["working_time"] = took / 1000

    def _synthetic(self, record: TranscriptLine) -> Event:
        texts = [part["text"] for part in record.blocks if isinstance(part.get("text"), str)]
        identity = record.uuid or f"line-{record.number}"
        if record.value.get("isApiErrorMessage") is True:
            self._loss.changed["failed model call, recorded as an answer: error"] += 1
            return {
                "type": "error",
                "id": identity,
                "message": "\n".join(texts) or as_text(record.value.get("error")) or "unknown error",
                "metadata": self._rest(record),
            }
        self._loss.changed["answer without a model: custom event"] += 1
        return {"type": "custom", "id": identity, "name": "synthetic_answer", "data": record.value}


def _tokens(content: dict[str, Any]) -> dict[str, int] | None:
    """Return the tokens of a call. Tokens read from and written to the cache are prompt tokens."""
    parts = [content.get("input_tokens")]
    parts += [
        content[n]
        for n in ("cache_creation_input_tokens", "cache_read_input_tokens")
        if content.get(n) is not None
    ]
    counts = [count(part) for part in parts]
    prompt = None if None in counts else sum(part for part in counts if part is not None)
    return usage(prompt, count(content.get("output_tokens")))


def _error(content: Any) -> str:
    if isinstance(content, list):
        texts = [
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        return "\n".join(texts) or as_text(content)
    return as_text(content) or "unknown error"


def _milliseconds(details: Any) -> float | None:
    """Return the duration of a tool call in milliseconds, if recorded."""
    if not isinstance(details, dict):
        return None
    for name in ("totalDurationMs", "durationMs"):
        value = details.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
            return float(value)
    return None


class Agents:
    """Links between sub-agents and the tool calls that started them."""

    def __init__(self, calls: ModelAnswerConverter, results: ToolResults, loss: LossReport):
        self._loss = loss
        self._calls = calls
        self._results = results
        self._linked: set[str] = set()
        self._prompts: dict[str, list[Event]] | None = None

    def link(self, key: str, begin: Event, records: Sequence[TranscriptLine], meta: dict[str, Any]) -> None:
        """Set the name and parent of a sub-agent's span, and add the span to the call that started it."""
        kinds = [meta.get("agentType")]
        kinds += [record.value.get(name) for record in records for name in ("agentType", "attributionAgent")]
        event = self._call(key, records, meta)
        if event is None:
            self._loss.changed["sub-agent without the call that started it: moved to the top"] += 1
        else:
            self._linked.add(event["call_id"])
            result = self._results.by_call.get(event["call_id"])
            details = result.record.value.get("toolUseResult") if result else None
            kinds += [details.get("agentType") if isinstance(details, dict) else None]
            kinds += [_argument(event, "subagent_type")]
            if "span_id" in event:
                begin["parent_span_id"] = event["span_id"]
        begin["name"] = next((kind for kind in kinds if isinstance(kind, str) and kind), "agent")
        if meta:
            begin["metadata"][SOURCE]["meta"] = meta
        if event is not None:
            event["agent"], event["agent_span_id"] = begin["name"], begin["span_id"]

    def _call(self, key: str, records: Sequence[TranscriptLine], meta: dict[str, Any]) -> Event | None:
        identity = meta.get("toolUseId")
        if isinstance(identity, str) and identity in self._calls.tools:
            return self._calls.tools[identity]
        result = self._results.by_agent.get(key)
        if result is not None and (event := self._calls.tools.get(result.call_id)) is not None:
            return event
        for record in records:
            for name in ("parentToolUseID", "parentToolUseId", "toolUseId", "sourceToolUseID"):
                if isinstance(identity := record.value.get(name), str) and identity in self._calls.tools:
                    return self._calls.tools[identity]
        prompt = next((_prompt(record) for record in records if record.type == "user"), None)
        if self._prompts is None:
            self._prompts = {}
            for event in self._calls.tools.values():
                if event["function"] in _STARTERS and (tool := _argument(event, "prompt")):
                    self._prompts.setdefault(tool, []).append(event)
        waiting = [e for e in self._prompts.get(prompt or "", ()) if e["call_id"] not in self._linked]
        return waiting[0] if waiting else None


def _argument(event: Event, name: str) -> str | None:
    try:
        arguments = json.loads(event["arguments"])
    except (ValueError, RecursionError):
        return None
    value = arguments.get(name) if isinstance(arguments, dict) else None
    return value if isinstance(value, str) else None


def _prompt(record: TranscriptLine) -> str:
    content = record.message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in record.blocks if isinstance(part.get("text"), str))
