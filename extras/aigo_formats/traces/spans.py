"""Conversion of recorded spans to an AI GO trace: model and tool calls become events, all others remain
spans.

All sources share these rules:

- A model span becomes a model call and a tool span becomes a function call, inside the enclosing span. A tool
  with inner spans is also a span. If two instrumentations recorded one model call, the outer one is a span,
  so that tokens are counted once.
- The main agent is the outermost agent that calls models. If there are several, it is the one with the last
  call. Without an agent, it is the root.
- The conversation of the main agent is the conversation of its last model call. If the root or the agent
  records an output, the last call with this output counts. If no call has this output, the recorded input and
  output are used. So a call that judges or names the answer is never used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import (
    Event,
    iso,
    ordered,
    seconds,
    span_begin,
    span_end,
    timed,
    total_tokens,
)
from aigo_formats.traces.items import Item, answer_item, as_text
from aigo_formats.traces.span_records import Span, TraceSpans


def trace_of(recording: TraceSpans, loss: LossReport) -> dict[str, Any]:
    """Return the trace of a recording, for the span of the main agent."""
    return _Trace(recording, loss).trace()


class _Trace:
    def __init__(self, recording: TraceSpans, loss: LossReport):
        self.recording = recording
        self.loss = loss
        self.spans = _sound(recording.spans, loss)
        self.by_id = {span.id: span for span in self.spans}
        self.children: dict[str, list[Span]] = {}
        for span in self.spans:
            if span.parent is not None:
                self.children.setdefault(span.parent, []).append(span)
        self.kinds = self._kinds()
        self.homes = self._homes()
        self.scopes = self._scopes()
        self.callers = self._callers()

    def _kinds(self) -> dict[str, str]:
        """Return the kinds of spans. A model span that contains another one is a wrapper."""
        kinds = {span.id: span.kind for span in self.spans}
        around: set[str] = set()
        for span in self.spans:
            if span.kind == "model":
                above = span.parent
                while above is not None and above not in around:
                    around.add(above)
                    above = self.by_id[above].parent
        for span in self.spans:
            if span.kind == "model" and span.id in around:
                kinds[span.id] = "model_wrapper"
                self.loss.changed[
                    "model call that contains another one: span, so tokens are not counted twice"
                ] += 1
        return kinds

    def _is_event(self, span: Span) -> bool:
        kind = self.kinds[span.id]
        return kind == "model" or (kind == "tool" and span.id not in self.children)

    def _homes(self) -> dict[str, str | None]:
        """Return the parent span of each span. Model calls do not contain spans."""
        homes: dict[str, str | None] = {}
        for span in self.spans:
            path = []
            current: str | None = span.id
            while current is not None and current not in homes:
                path.append(current)
                current = self.by_id[current].parent
            for key in reversed(path):
                above = self.by_id[key].parent
                if above is not None and self._is_event(self.by_id[above]):
                    above = homes[above]
                homes[key] = above
        return homes

    def _callers(self) -> dict[str, str]:
        """Return the model call that requested each tool call."""
        callers: dict[str, str] = {}
        for span in sorted(self._models(), key=_start):
            for item in span.output:
                if item["type"] == "function_call":
                    callers.setdefault(item["call_id"], span.id)
        return callers

    def _models(self) -> list[Span]:
        return [span for span in self.spans if self.kinds[span.id] == "model"]

    def trace(self) -> dict[str, Any]:
        source = self.recording.source
        self._name_calls()
        events = [event for span in self.spans for event in self._events_of(span)]
        events = ordered(events, self.loss)
        main = self._main()
        items, origin = self._conversation(main)
        items = [*items, *self._late_results(items, events)]
        self.loss.kept["span"] += len(self.spans)
        trace: dict[str, Any] = {"items": items, "metadata": self._metadata(main, items, events)}
        trace["metadata"]["extra"] = {source: {**self.recording.extra, "items": origin}}
        trace["events"] = events
        if main is not None:
            trace |= {"span_id": main.id, "span_name": main.name, "span_type": main.kind}
        return trace

    def _name_calls(self) -> None:
        """Assign the requested call ids to tool spans that do not have one."""
        taken = {span.call_id for span in self.spans if span.call_id is not None}
        waiting: dict[str, dict[str, list[str]]] = {}
        for span in sorted(self._models(), key=_start):
            for item in span.output:
                if item["type"] == "function_call" and item["call_id"] not in taken:
                    calls = waiting.setdefault(item["name"], {})
                    calls.setdefault(_canonical(item["arguments"]), []).append(item["call_id"])
        named: list[Span] = []
        for span in sorted((s for s in self.spans if self.kinds[s.id] == "tool"), key=_start):
            calls = waiting.get(span.tool or span.name, {})
            key = _canonical(span.arguments)
            if span.call_id is None and key not in calls and len(calls) == 1:
                key = next(iter(calls))  # the only open call, although its arguments differ
            if span.call_id is None and key in calls:
                named.append(replace(span, call_id=calls[key].pop(0)))
                if not calls[key]:
                    del calls[key]
        for span in named:
            self.by_id[span.id] = span
        self.spans = [self.by_id[span.id] for span in self.spans]

    def _events_of(self, span: Span) -> list[Event]:
        kind, home = self.kinds[span.id], self.homes[span.id]
        events: list[Event] = []
        if kind == "model":
            events.append(self._model_call(span))
        elif kind == "tool":
            events.append(self._function_call(span))
        for event in events:
            if home is not None:
                event["span_id"] = home
        inside: str | None = home
        if not self._is_event(span):
            inside = span.id
            begin = span_begin(span.id, span.name, kind, parent=home, time=span.start)
            if kind != "tool":
                begin["metadata"] = {self.recording.source: self._notes(span)}
                if span.error is not None:
                    events.append(self._error(span))
            events += [begin, span_end(span.id, span.end)]
        for number, happening in enumerate(span.happenings, 1):
            custom: Event = {
                "type": "custom",
                "id": f"{span.id}:event-{number}",
                "name": happening.name,
                "data": happening.data,
            }
            if inside is not None:
                custom["span_id"] = inside
            events.append(timed(custom, happening.time if happening.time is not None else span.start))
        return events

    def _notes(self, span: Span) -> dict[str, Any]:
        notes = dict(span.notes)
        if span.input:
            notes["input_items"] = span.input
        if span.output:
            notes["output_items"] = span.output
        return notes

    def _model_call(self, span: Span) -> Event:
        event: Event = {
            "type": "model_call_event",
            "id": span.id,
            "model": span.model,
            "input_context": span.input,
            "output_items": span.output,
            "metadata": {self.recording.source: {"name": span.name, **span.notes}},
        }
        if span.usage is not None:
            event["usage"] = span.usage
        if span.tools is not None:
            event["tools"] = span.tools
        if (took := seconds(span.start, span.end)) is not None:
            event["total_time"] = took
        if span.error is not None:
            event["error"] = span.error
        return timed(event, span.start)

    def _function_call(self, span: Span) -> Event:
        call_id = span.call_id or span.id
        event: Event = {
            "type": "function_call_event",
            "id": f"{span.id}:call" if span.id in self.children else span.id,
            "call_id": call_id,
            "function": span.tool or span.name,
            "arguments": span.arguments,
            "result": span.result or (span.error or ""),
            "status": "completed" if span.result or span.error or span.end is not None else "incomplete",
            "metadata": {self.recording.source: {"name": span.name, **span.notes}},
        }
        if (took := seconds(span.start, span.end)) is not None:
            event["working_time"] = took
        if span.error is not None:
            event["error"] = span.error
        if (caller := self.callers.get(call_id)) is not None:
            event["model_call_id"] = caller
        agent = next((s for s in self.children.get(span.id, ()) if self.kinds[s.id] == "agent"), None)
        if agent is not None:
            event["agent"], event["agent_span_id"] = agent.name, agent.id
        return timed(event, span.start)

    def _error(self, span: Span) -> Event:
        event: Event = {"type": "error", "id": f"{span.id}:error", "span_id": span.id, "message": span.error}
        if span.traceback:
            event["traceback"] = span.traceback
        return timed(event, span.end if span.end is not None else span.start)

    def _scopes(self) -> dict[str, tuple[str | None, int]]:
        """Return the enclosing agent of each span, and the number of agents around it."""
        scopes: dict[str, tuple[str | None, int]] = {}
        for span in self.spans:
            path = []
            current: str | None = span.id
            while current is not None and current not in scopes:
                path.append(current)
                current = self.by_id[current].parent
            for key in reversed(path):
                above = self.by_id[key].parent
                if above is None:
                    scopes[key] = (None, 0)
                elif self.kinds[above] == "agent":
                    scopes[key] = (above, scopes[above][1] + 1)
                else:
                    scopes[key] = scopes[above]
        return scopes

    def _main(self) -> Span | None:
        """Return the span of the main agent; `None`: the root."""
        best: tuple[int, int] | None = None
        main: str | None = None
        for span in self._models():
            agent, depth = self.scopes[span.id]
            rank = (-depth, _start(span))
            if best is None or rank >= best:
                best, main = rank, agent
        if best is None:
            main = next((span.id for span in self.spans if self.kinds[span.id] == "agent"), None)
        return None if main is None else self.by_id[main]

    def _conversation(self, main: Span | None) -> tuple[list[Item], str]:
        """Return the main agent's conversation, and a description of its origin."""
        key = None if main is None else main.id
        calls_of = [span for span in self._models() if self.scopes[span.id][0] == key]
        calls = sorted((span for span in calls_of if span.input or span.output), key=_start)
        roots = [span for span in self.spans if span.parent is None and self.kinds[span.id] != "model"]
        around = [*roots[:1], *([main] if main is not None and main not in roots[:1] else [])]
        recorded = next((span for span in around if said(span.output) is not None), None)
        if recorded is not None:
            answer = said(recorded.output)
            call = next((c for c in reversed(calls) if _same(said(c.output), answer)), None)
            if call is not None:
                return [*call.input, *call.output], f"model call {call.id}, whose answer is the output"
            return _own(recorded), f"input and output of span {recorded.id}"
        answered = [call for call in calls if call.output]
        if answered or calls:
            call = (answered or calls)[-1]
            return [*call.input, *call.output], f"model call {call.id}, the last"
        spoken = next((span for span in around if span.input), None)
        if spoken is not None:
            return _own(spoken), f"input of span {spoken.id}"
        self.loss.changed["trace without content: only spans, times and tokens"] += 1
        return [], "no content was recorded"

    def _late_results(self, items: Sequence[Item], events: Iterable[Event]) -> list[Item]:
        """Return the tool results for the last answer, which later calls do not contain."""
        answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
        call_ids = [item["call_id"] for item in items if item["type"] == "function_call"]
        waiting = set(call_ids) - answered
        results: dict[str, Item] = {}
        for event in events if waiting else ():
            if (
                event["type"] == "function_call_event"
                and event["call_id"] in waiting
                and event["status"] == "completed"
            ):
                results.setdefault(event["call_id"], answer_item(event["call_id"], event["result"]))
        return [results[key] for key in dict.fromkeys(call_ids) if key in results]

    def _metadata(self, main: Span | None, items: Sequence[Item], events: Sequence[Event]) -> dict[str, Any]:
        recording = self.recording
        root = next((span for span in self.spans if span.parent is None), None)
        metadata: dict[str, Any] = {
            "trace_id": recording.trace_id,
            "source_type": recording.source,
            "source_uri": recording.location,
        }
        named = main or root
        if named is not None and self.kinds[named.id] != "model" and named.name:
            metadata["agent"] = named.name
        models = [span.model for span in sorted(self._models(), key=_start) if span.model]
        if models:
            metadata["model"] = models[-1]
        if recording.tags:
            metadata["tags"] = list(recording.tags)
        starts = [span.start for span in self.spans if span.start is not None]
        ends = [span.end for span in self.spans if span.end is not None]
        if starts:
            metadata["created_at"] = iso(min(starts))
            if (took := seconds(min(starts), max(ends, default=None))) is not None:
                metadata["total_time"] = took
        if (tokens := total_tokens(events)) is not None:
            metadata["total_tokens"] = tokens
        metadata["message_count"] = sum(item["type"] == "message" for item in items)
        if root is not None and root.error is not None:
            metadata["error"] = root.error
        return metadata


def said(items: Sequence[Item]) -> str | None:
    """Return the text of the last answer without surrounding whitespace; `None` without an answer."""
    for item in reversed(items):
        if item["type"] == "message" and item["role"] == "assistant":
            texts = [
                p.get("text", p.get("refusal"))
                for p in item["content"]
                if p["type"] in ("output_text", "refusal")
            ]
            if texts:
                return "\n".join(as_text(text) for text in texts).strip()
    return None


def _own(span: Span) -> list[Item]:
    """Return the recorded input and output of a span. An output that repeats the input contains both."""

    def bare(items: Iterable[Item]) -> list[Item]:
        return [{name: value for name, value in item.items() if name != "id"} for item in items]

    if bare(span.output[: len(span.input)]) == bare(span.input):
        return span.output
    return [*span.input, *span.output]


def _start(span: Span) -> int:
    return -1 if span.start is None else span.start


def _same(one: str | None, another: str | None) -> bool:
    return (
        one is not None and another is not None and (one == another or _canonical(one) == _canonical(another))
    )


def _canonical(text: str) -> str:
    """Return a text in canonical form if it is JSON."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _sound(spans: Sequence[Span], loss: LossReport) -> list[Span]:
    """Return the spans with unique ids, existing parents and without cycles."""
    by_id: dict[str, Span] = {}
    for span in spans:
        earlier = by_id.get(span.id)
        if earlier == span:
            loss.dropped["duplicate span"] += 1
        elif earlier is not None:
            loss.changed["span with a duplicate id: made unique"] += 1
            number = 2
            while f"{span.id}~{number}" in by_id:
                number += 1
            by_id[f"{span.id}~{number}"] = replace(span, id=f"{span.id}~{number}")
        else:
            by_id[span.id] = span
    settled: set[str] = set()
    for key in list(by_id):
        path: set[str] = set()
        current: str | None = key
        while current is not None and current not in settled:
            span = by_id[current]
            path.add(current)
            if span.parent is None:
                break
            if span.parent not in by_id:
                loss.changed["span whose parent is not in the file: moved to the top"] += 1
                by_id[current] = replace(span, parent=None)
                break
            if span.parent in path:
                loss.changed["span inside itself: moved to the top"] += 1
                by_id[current] = replace(span, parent=None)
                break
            current = span.parent
        settled |= path
    return list(by_id.values())
