"""Conversion of exported LangSmith runs to traces.

A run is a span (<https://docs.langchain.com/langsmith/run-data-format>). Its fields include `id`,
`parent_run_id`, `trace_id`, `dotted_order`, `run_type` (`llm`, `chain`, `tool`, `retriever` …), `inputs`,
`outputs`, `error` and token counts. A file contains one run per line, a list of runs, `runs`, or nested runs
(`child_runs`). In the Parquet files of a bulk export, `inputs`, `outputs` and `extra` are JSON text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import count, usage
from aigo_formats.traces.attributes import mapping, parsed
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.items import Item, ItemMaker, as_text
from aigo_formats.traces.langchain import first_message, items_of, message_list
from aigo_formats.traces.otlp import time_of
from aigo_formats.traces.recordings import files_at, table_values
from aigo_formats.traces.span_records import Span, SpanEvent, TraceSpans
from aigo_formats.traces.spans import trace_of

SOURCE = "langsmith"
_AGENTS = frozenset({"LangGraph", "AgentExecutor"})
"""Names of chains that are agents."""
_ANSWERS = ("output", "answer", "result", "response", "text", "content", "completion", "generation")
"""Output names for the answer, in order of preference."""
_QUESTIONS = ("input", "question", "query", "prompt", "text", "content", "user_input", "message")
_USED = frozenset({
        "id", "run_id", "parent_run_id", "trace_id", "name", "run_type", "start_time", "end_time", "error",
    "child_runs",
    "tags", "events", "dotted_order", "parent_run_ids", "child_run_ids", "direct_child_run_ids",
})  # fmt: skip
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def traces_of_runs(location: Path, reading: ReadContext) -> Iterator[dict[str, Any]]:
    """Yield the traces of all files at a location. Runs of one trace can be in several files.

    Raises:
        EvidenceError: a file is missing or cannot be read.
    """
    by_trace: dict[str, list[dict[str, Any]]] = {}
    origin: dict[str, Path] = {}
    trace_of_run: dict[str, str] = {}
    for file in files_at(location):
        for run in runs_of(table_values(file, reading), file, reading):
            key = _trace_id(run, trace_of_run)
            trace_of_run[run["id"]] = key
            by_trace.setdefault(key, []).append(run)
            origin.setdefault(key, file)
    for trace_id, runs in by_trace.items():
        reading.bounds.check_count("runs", len(runs), 0, "the trace")
        spans = [span_of(run, reading.loss) for run in runs]
        extra, tags = _of_trace(runs)
        yield trace_of(TraceSpans(SOURCE, trace_id, str(origin[trace_id]), spans, extra, tags), reading.loss)


def _trace_id(run: dict[str, Any], traces: dict[str, str]) -> str:
    """Return the trace id of a run: its own, its root's in the dotted order, or its parent's."""
    value = run.get("trace_id")
    if isinstance(value, str) and value:
        return value
    order = run.get("dotted_order")
    if isinstance(order, str) and (match := _UUID.search(order)):
        return match[0]
    parent = run.get("parent_run_id")
    return traces.get(parent, parent) if isinstance(parent, str) else str(run["id"])


def runs_of(values: Iterable[Any], file: Path, reading: ReadContext) -> Iterator[dict[str, Any]]:
    """Yield the runs of a file's values, children after their parents. Other values are damage."""
    waiting: list[tuple[Any, str | None, str | None]] = [
        (value, None, None) for value in reversed(list(values))
    ]
    while waiting:
        value, parent, trace = waiting.pop()
        if isinstance(value, list):
            waiting += [(part, parent, trace) for part in reversed(value)]
            continue
        inner = None
        if isinstance(value, dict) and "run_type" not in value:
            inner = next((value[n] for n in ("runs", "data") if isinstance(value.get(n), list)), None)
        if inner is not None:
            waiting.append((inner, parent, trace))
            continue
        run = _run(value, parent, trace)
        if isinstance(run, str):
            reading.damaged(file, run)
            continue
        children = run.pop("child_runs", None)
        if isinstance(children, list):
            key = run.get("trace_id") or trace or run["id"]
            waiting += [(child, run["id"], key) for child in reversed(children)]
        yield run


def _run(value: Any, parent: str | None, trace: str | None) -> dict[str, Any] | str:
    """Return a run with its id as `id`, or the reason why it is not valid."""
    if not isinstance(value, dict):
        return f"found a {type(value).__name__}, expected a run"
    key = value.get("id") or value.get("run_id")
    if not isinstance(key, str) or not key or len(key) > 200:
        return f"a run named {str(value.get('name'))[:60]!r} has no id"
    run = {**value, "id": key}
    if run.get("parent_run_id") is None:
        run["parent_run_id"] = parent or _parent_by_order(run)
    if run.get("trace_id") is None and trace is not None:
        run["trace_id"] = trace
    for name in ("inputs", "outputs", "extra", "events"):
        run[name] = parsed(run.get(name))
    return run


def _parent_by_order(run: dict[str, Any]) -> str | None:
    """Return the parent in the run's dotted order."""
    order = run.get("dotted_order")
    keys = _UUID.findall(order) if isinstance(order, str) and len(order) < 100_000 else []
    return keys[-2] if len(keys) > 1 and keys[-1] == run["id"] else None


def span_of(run: dict[str, Any], loss: LossReport) -> Span:
    """Convert a run to the common span form. Other information is stored in its notes."""
    word = as_text(run.get("run_type")) or "span"
    name = as_text(run.get("name"))
    extra = mapping(run.get("extra"))
    about = mapping(extra.get("metadata"))
    kind = {"llm": "model", "tool": "tool"}.get(word, word)
    if word == "chain" and (
        name in _AGENTS or (about.get("lc_agent_name") and about["lc_agent_name"] == name)
    ):
        kind = "agent"
    maker = ItemMaker(loss, prefix=f"{run['id']}-call")
    inputs, outputs = run.get("inputs"), run.get("outputs")
    notes = {n: v for n, v in run.items() if n not in _USED and v not in (None, {}, [], "")}
    span: dict[str, Any] = {}
    if kind == "model":
        notes.pop("inputs", None)
        span = _model(run, inputs, outputs, extra, about, maker)
        notes.pop("outputs", None)
        if remaining := _besides(inputs, ("messages", "prompts", "prompt", "input", "system")):
            notes["inputs"] = remaining
        if remaining := _besides(
            outputs, ("generations", "message", "messages", "choices", "role", "content", "tool_calls")
        ):
            notes["outputs"] = remaining
    elif kind == "tool":
        span = _tool(run, inputs, outputs, extra, maker)
    else:
        span = {
            "input": _spoken(inputs, "user", _QUESTIONS, maker),
            "output": _spoken(outputs, "assistant", _ANSWERS, maker),
        }
    error = run.get("error")
    text = as_text(error) if error else None
    if text is None and run.get("status") == "error":
        text = "unknown error"
    return Span(
        id=run["id"],
        name=name,
        kind=kind,
        parent=run["parent_run_id"] if isinstance(run.get("parent_run_id"), str) else None,
        start=time_of(run.get("start_time")),
        end=time_of(run.get("end_time")),
        notes=notes,
        error=text,
        happenings=tuple(_happenings(run.get("events"))),
        **span,
    )


def _besides(value: Any, taken: tuple[str, ...]) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    return {name: part for name, part in value.items() if name not in taken and part is not None} or None


def _happenings(value: Any) -> Iterator[SpanEvent]:
    """Yield the events of a run, except begin, end and streamed tokens."""
    for event in value if isinstance(value, list) else []:
        if isinstance(event, dict) and event.get("name") not in ("start", "end", "new_token"):
            remaining = {name: value for name, value in event.items() if name not in ("name", "time")}
            yield SpanEvent(as_text(event.get("name")) or "event", remaining, time_of(event.get("time")))


def _model(
    run: dict[str, Any],
    inputs: Any,
    outputs: Any,
    extra: dict[str, Any],
    about: dict[str, Any],
    maker: ItemMaker,
) -> dict[str, Any]:
    heard: list[Item] = []
    if (system := mapping(inputs).get("system")) is not None:
        heard = maker.of_message("system", system)
    messages = message_list(inputs)
    if messages is not None:
        heard += [item for message in messages for item in items_of(message, maker, "user")]
    elif isinstance(inputs, dict) and inputs:
        prompts = next(
            (inputs[n] for n in ("prompts", "prompt", "input") if inputs.get(n) is not None), inputs
        )
        for prompt in prompts if isinstance(prompts, list) else [prompts]:
            heard += maker.of_message("user", as_text(prompt))
    answer = first_message(outputs)
    answers = items_of(answer, maker, "assistant") if answer is not None else []
    value, calling = mapping(outputs), mapping(extra.get("invocation_params"))
    llm_output = mapping(value.get("llm_output"))
    models = (
        mapping(mapping(answer).get("response_metadata")).get("model_name"),
        value.get("model"),
        llm_output.get("model_name"),
        about.get("ls_model_name"),
        calling.get("model"),
        calling.get("model_name"),
        mapping(inputs).get("model"),
    )
    tools = calling.get("tools") or mapping(inputs).get("tools")
    return {
        "input": heard,
        "output": answers,
        "model": next((model for model in models if isinstance(model, str) and model), ""),
        "usage": _usage(run, outputs, answer, about, llm_output),
        "tools": _names(tools),
    }


def _names(tools: Any) -> list[str] | None:
    names = []
    for tool in tools if isinstance(tools, list) else []:
        function = mapping(tool).get("function", tool)
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            names.append(function["name"])
    return names or None


def _usage(
    run: dict[str, Any], outputs: Any, answer: Any, about: dict[str, Any], llm_output: dict[str, Any]
) -> dict[str, int] | None:
    """Return the token counts of the message, otherwise LangSmith's own counts."""
    value = outputs if isinstance(outputs, dict) else {}
    places = (
        answer.get("usage_metadata") if isinstance(answer, dict) else None,
        value.get("usage_metadata"),
        about.get("usage_metadata"),
        value.get("usage"),
        llm_output.get("token_usage"),
        {"input_tokens": run.get("prompt_tokens"), "output_tokens": run.get("completion_tokens")},
    )
    for place in places:
        if isinstance(place, dict):
            prompt = next(
                (place[n] for n in ("input_tokens", "prompt_tokens") if place.get(n) is not None), None
            )
            answered = next(
                (place[n] for n in ("output_tokens", "completion_tokens") if place.get(n) is not None), None
            )
            if place is value.get("usage") and prompt is not None:
                # Anthropic's prompt tokens do not include cached tokens.
                counts = [count(part) for part in (prompt, *_cached(place))]
                prompt = None if None in counts else sum(part for part in counts if part is not None)
            if (tokens := usage(count(prompt), count(answered))) is not None:
                return tokens
    return None


def _cached(place: Any) -> list[Any]:
    return [place.get(name) or 0 for name in ("cache_creation_input_tokens", "cache_read_input_tokens")]


def _tool(
    run: dict[str, Any], inputs: Any, outputs: Any, extra: dict[str, Any], maker: ItemMaker
) -> dict[str, Any]:
    value = inputs
    if isinstance(inputs, dict) and set(inputs) == {"input"}:
        value = inputs["input"]
    answer = outputs
    if isinstance(outputs, dict) and "output" in outputs:
        answer = outputs["output"]
    message = first_message({"message": answer}) if isinstance(answer, dict) else None
    call_id: Any = None
    result: str | list[Item] = as_text(answer)
    if message is not None and (message.get("tool_call_id") or message.get("role") == "tool"):
        call_id = message.get("tool_call_id")
        content = message.get("content")
        result = maker.tool_output(
            content if isinstance(content, list) else [] if content is None else [content]
        )
    for place in (extra, extra.get("metadata"), inputs):
        if call_id is None and isinstance(place, dict):
            call_id = place.get("tool_call_id")
    return {
        "tool": as_text(run.get("name")),
        "arguments": as_text(value),
        "result": result,
        "call_id": call_id if isinstance(call_id, str) and call_id else None,
    }


def _spoken(value: Any, role: str, names: tuple[str, ...], maker: ItemMaker) -> list[Item]:
    """Return the input or output of a chain: its messages, or the most likely text."""
    messages = message_list(value)
    if messages is not None:
        return [item for message in messages for item in items_of(message, maker, role)]
    if isinstance(value, str):
        return maker.of_message(role, value)
    if not isinstance(value, dict) or not value:
        return []
    content = next((value[name] for name in names if value.get(name) is not None), None)
    if content is None:
        content = next(iter(value.values())) if len(value) == 1 else value
    if isinstance(content, dict) and (message := first_message({"message": content})) is not None:
        return items_of(message, maker, role)
    if isinstance(content, list) and (messages := message_list({"messages": content})) is not None:
        return [item for message in messages for item in items_of(message, maker, role)]
    return maker.of_message(role, as_text(content))


def _of_trace(runs: list[dict[str, Any]]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the information about the whole trace in the root run."""
    root = next((run for run in runs if run.get("parent_run_id") is None), runs[0])
    tags = root.get("tags")
    names = ("session_id", "session_name", "thread_id", "reference_example_id", "feedback_stats")
    extra = {name: root[name] for name in names if root.get(name)}
    return extra, tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()
