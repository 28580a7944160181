"""Spans in words that all sources share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_formats.traces.items import Item


@dataclass(frozen=True)
class Happening:
    """Something that a span says happened in it."""

    name: str
    data: dict[str, Any]
    time: int | None


@dataclass(frozen=True)
class Span:
    """A span, in words that all sources share."""

    id: str
    name: str
    kind: str
    """`model`, `tool`, `agent`, or the source's own word for anything else."""
    parent: str | None = None
    start: int | None = None
    """Nanoseconds since 1970, as `end`."""
    end: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    """Everything else that the source says of it."""
    error: str | None = None
    traceback: str | None = None
    input: list[Item] = field(default_factory=list)
    """Of a model: all that it saw. Of others: what was said to them."""
    output: list[Item] = field(default_factory=list)
    model: str = ""
    usage: dict[str, int] | None = None
    tools: list[str] | None = None
    """Names of the tools that a model could call."""
    call_id: str | None = None
    """Of a tool: the call that it answers; `None`: not known."""
    tool: str = ""
    arguments: str = ""
    result: str | list[Item] = ""
    happenings: tuple[Happening, ...] = ()


@dataclass(frozen=True)
class Recording:
    """The spans of one trace, and what is said of it as a whole."""

    source: str
    trace_id: str
    location: str
    spans: Sequence[Span]
    extra: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
