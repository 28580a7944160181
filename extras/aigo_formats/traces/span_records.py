"""Common form of spans from all sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_formats.traces.items import Item


@dataclass(frozen=True)
class SpanEvent:
    """Event inside a span."""

    name: str
    data: dict[str, Any]
    time: int | None


@dataclass(frozen=True)
class Span:
    """Span in the common form."""

    id: str
    name: str
    kind: str
    """Kind of span: `model`, `tool`, `agent`, or the source's own word."""
    parent: str | None = None
    start: int | None = None
    """Start in nanoseconds since 1970. The end has the same unit."""
    end: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    """Other information from the source."""
    error: str | None = None
    traceback: str | None = None
    input: list[Item] = field(default_factory=list)
    """Input items. For a model, they are its whole context."""
    output: list[Item] = field(default_factory=list)
    model: str = ""
    usage: dict[str, int] | None = None
    tools: list[str] | None = None
    """Names of the tools available to a model."""
    call_id: str | None = None
    """Id of the call that a tool answers; `None` if unknown."""
    tool: str = ""
    arguments: str = ""
    result: str | list[Item] = ""
    happenings: tuple[SpanEvent, ...] = ()


@dataclass(frozen=True)
class TraceSpans:
    """Spans of one trace, with information about the whole trace."""

    source: str
    trace_id: str
    location: str
    spans: Sequence[Span]
    extra: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
