"""Conversion of AI GO items and events to Inspect's messages and events, for logs that Inspect displays."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Item = dict[str, Any]
Native = dict[str, Any]
_USUAL_TIME = "1970-01-01T00:00:00+00:00"


def messages_of(items: Iterable[Item]) -> list[Native]:
    """Convert conversation items to chat messages. Tool calls join the preceding assistant message."""
    messages: list[Native] = []
    names: dict[str, str] = {}
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            names[item["call_id"]] = item["name"]
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "id": item["id"] or None, "content": ""})
            messages[-1].setdefault("tool_calls", []).append(
                {
                    "id": item["call_id"],
                    "function": item["name"],
                    "arguments": _arguments(item["arguments"]),
                    "type": "function",
                }
            )
        elif kind == "function_call_output":
            messages.append(
                _without_none(
                    {
                        "role": "tool",
                        "id": item["id"] or None,
                        "content": _content(item["output"]),
                        "tool_call_id": item["call_id"],
                        "function": names.get(item["call_id"]),
                    }
                )
            )
        elif kind == "message":
            role = "system" if item["role"] == "developer" else item["role"]
            messages.append(
                _without_none({"role": role, "id": item["id"] or None, "content": _content(item["content"])})
            )
        else:
            role = "assistant" if kind == "custom_task_output_message" else "user"
            content = item["content"]
            messages.append(
                {"role": role, "content": content if isinstance(content, str) else json.dumps(content)}
            )
    return messages


def _without_none(found: Native) -> Native:
    return {key: value for key, value in found.items() if value is not None}


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return value if isinstance(value, dict) else {"arguments": value}


def _content(content: str | list[Item]) -> str | list[Native]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if len(parts) == 1 and parts[0]["type"] == "text" and len(parts[0]) == 2:
        text: str = parts[0]["text"]
        return text
    return parts


def _part(part: Item) -> Native:
    kind = part.get("type")
    if kind == "reasoning_text":
        return {"type": "reasoning", "reasoning": part["text"]}
    if kind == "summary_text":
        return {"type": "reasoning", "reasoning": "", "summary": part["text"]}
    if kind == "refusal":
        return {"type": "text", "text": part["refusal"], "refusal": True}
    if kind == "input_image" and part.get("image_url"):
        return {"type": "image", "image": part["image_url"], "detail": part.get("detail", "auto")}
    if kind == "input_file" and part.get("file_url"):
        return {
            "type": "document",
            "document": part["file_url"],
            "filename": part.get("filename") or "file",
            "mime_type": "",
        }
    if kind == "input_video":
        return {"type": "video", "video": part["video_url"], "format": "mp4"}
    citations = [
        {
            "type": "url",
            "url": c["url"],
            "title": c["title"],
            "cited_text": [c["start_index"], c["end_index"]],
        }
        if c.get("url")
        else {"type": "content", "cited_text": c.get("content", "")}
        for c in part.get("annotations") or []
    ]
    text = part["text"] if isinstance(part.get("text"), str) else json.dumps(part)
    return (
        {"type": "text", "text": text, "citations": citations}
        if citations
        else {"type": "text", "text": text}
    )


def events_of(events: Iterable[Item]) -> list[Native]:
    """Convert AI GO trace events to Inspect's events, in the same order."""
    return [_event(event, index) for index, event in enumerate(events)]


def _event(event: Item, index: int) -> Native:
    kind = event.get("type", "custom")
    native: Native = {
        "uuid": event.get("id") or f"event-{index}",
        "timestamp": event.get("timestamp") or _USUAL_TIME,
        "working_start": 0.0,
    }
    if event.get("span_id"):
        native["span_id"] = event["span_id"]
    if kind == "model_call_event":
        return native | _model(event)
    if kind == "function_call_event":
        return native | _tool(event)
    if kind == "span_begin":
        return _without_none(
            native
            | {
                "event": "span_begin",
                "id": event["span_id"],
                "name": event["name"],
                "parent_id": event.get("parent_span_id"),
                "type": event.get("span_type"),
            }
        )
    if kind == "span_end":
        return native | {"event": "span_end", "id": event["span_id"]}
    if kind == "compaction":
        sizes = {name: event.get(name) for name in ("tokens_before", "tokens_after")}
        return _without_none(native | {"event": "compaction", "type": event["strategy"], **sizes})
    if kind == "error":
        return native | {"event": "error", "error": error_of(event["message"], event.get("traceback"))}
    if kind == "message_event":
        return native | {"event": "info", "source": "message", "data": event["item"]}
    return native | {"event": "info", "source": event.get("name", kind), "data": event.get("data") or {}}


def error_of(message: str, traceback: str | None = None) -> Native:
    """Return an `EvalError` as a dictionary."""
    return {"message": message, "traceback": traceback or "", "traceback_ansi": traceback or ""}


def _model(event: Item) -> Native:
    answers = messages_of(event["output_items"])
    usage = event.get("usage") or {}
    prompt, completion = usage.get("num_prompt_tokens"), usage.get("num_completion_tokens")
    choices = []
    if answers:
        answer = {**answers[-1], "role": "assistant"}
        if len(answers) > 1:
            # AI GO stores reasoning in separate messages.
            reasoning = [part for message in answers[:-1] for part in _parts(message["content"])]
            answer["content"] = [*reasoning, *_parts(answer["content"])]
        choices = [{"message": answer, "stop_reason": "tool_calls" if answer.get("tool_calls") else "stop"}]
    output: Native = {"model": event["model"], "choices": choices}
    # Inspect cannot express unknown token counts.
    if prompt is not None and completion is not None:
        output["usage"] = {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
        }
    native: Native = {
        "event": "model",
        "model": event["model"],
        "input": messages_of(event["input_context"]),
        "tools": [
            {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": {}, "required": []},
            }
            for name in event.get("tools") or []
        ],
        "tool_choice": "auto",
        "config": {},
        "output": output,
        "error": event.get("error"),
        "working_time": event.get("total_time"),
    }
    return _without_none(native)


def _parts(content: Any) -> list[Native]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _tool(event: Item) -> Native:
    error = event.get("error")
    return _without_none(
        {
            "event": "tool",
            "id": event["call_id"],
            "function": event["function"],
            "arguments": _arguments(event["arguments"]),
            "result": _content(event["result"]),
            "error": {"type": "unknown", "message": error} if error else None,
            "working_time": event.get("working_time"),
            "agent": event.get("agent"),
            "agent_span_id": event.get("agent_span_id"),
        }
    )
