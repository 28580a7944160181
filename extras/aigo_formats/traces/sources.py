"""Sources of traces by name: recognizing their files, reading traces, and dataset rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_formats.traces import claude_code, langsmith, recordings
from aigo_formats.traces.assembling import nanoseconds
from aigo_formats.traces.attributes import mapping, parsed
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.items import Item

Traces = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class TraceFileKind:
    """Source of traces."""

    name: str
    expected: str
    """Description of the files for messages."""
    read: Callable[[Path, ReadContext], Traces]
    """Function that reads the traces of a file or folder. It raises `EvidenceError`."""
    marks: tuple[str, ...]
    """Names at the beginning of such files that do not occur in files of other sources."""


def _sessions(location: Path, reading: ReadContext) -> Traces:
    for files in claude_code.find_sessions(location):
        trace = claude_code.read_session(files, reading)
        if trace is None:
            reading.loss.dropped["transcript without a message"] += 1
        else:
            yield trace


def _spans(source: str) -> Callable[[Path, ReadContext], Traces]:
    return lambda location, reading: recordings.traces_of_spans(location, source, reading)


SOURCES: Mapping[str, TraceFileKind] = {
    source.name: source
    for source in (
        TraceFileKind(
            "claude_code",
            "transcripts of Claude Code (<session id>.jsonl)",
            _sessions,
            ("parentUuid", "sessionId", "leafUuid"),
        ),
        TraceFileKind(
            "opentelemetry",
            "spans of OpenTelemetry as OTLP/JSON (*.json, *.jsonl)",
            _spans("opentelemetry"),
            ("resourceSpans", "resource_spans", "scopeSpans", "resourceLogs", "batches", "trace_state"),
        ),
        TraceFileKind(
            "langsmith",
            "runs of LangSmith (*.json, *.jsonl, *.parquet)",
            langsmith.traces_of_runs,
            ("run_type",),
        ),
        TraceFileKind(
            "phoenix",
            "spans of Phoenix (*.json, *.jsonl, *.parquet)",
            _spans("phoenix"),
            ("span_kind", "context.trace_id", "context"),
        ),
    )
}
_HEAD = 256 << 10


def source_of(file: Path) -> TraceFileKind | None:
    """Return the source of a file from its beginning; `None` if unknown."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    names = {match[1].decode() for match in re.finditer(rb'"([A-Za-z_.]{1,40})"\s*:', head)}
    return next((source for source in SOURCES.values() if names.intersection(source.marks)), None)


def read_traces(location: Path, source: str, reading: ReadContext | None = None) -> Traces:
    """Yield the JSON-serializable traces at a location. Their content is never executed.

    Args:
        location: a file or a folder.
        source: a name in `SOURCES`.
        reading: settings for reading. Losses and damage are recorded in it.

    Raises:
        EvidenceError: the source is unknown, or a file is missing or cannot be read.
    """
    kind = SOURCES.get(source)
    if kind is None:
        raise EvidenceError(
            f"found the source {source!r}, expected one of {', '.join(SOURCES)}", code=Code.UNKNOWN_CHOICE
        )
    reading = reading or ReadContext()
    for trace in kind.read(location, reading):
        # OTLP stores names and values separately, so only a converted trace shows which values are secrets.
        yield reading.redaction.value(trace)


@dataclass(frozen=True)
class TraceQuery:
    """Trace filter. All fields are optional."""

    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    start: datetime | date | None = None
    """Earliest start, inclusive."""
    end: datetime | date | None = None
    """Latest start, exclusive."""
    tags: tuple[str, ...] = ()
    """Tags that a trace must have."""
    metadata: Mapping[str, str] | None = None
    project: str | None = None
    """Project of the traces. Traces without a project are also included."""

    def __call__(self, trace: Mapping[str, Any]) -> bool:
        """Return whether a trace matches the filter.

        Raises:
            EvidenceError: the filter contains a time, but the trace does not.
        """
        about = trace["metadata"]
        extra = mapping(mapping(about.get("extra")).get(about["source_type"]))
        if self.ids and about["trace_id"] not in self.ids:
            return False
        session = extra.get("session.id") or extra.get("gen_ai.conversation.id") or extra.get("thread_id")
        if self.sessions and session not in self.sessions:
            return False
        if not set(self.tags) <= set(about.get("tags") or ()):
            return False
        recorded = mapping(parsed(extra.get("metadata")))
        if any(str(recorded.get(name)) != value for name, value in (self.metadata or {}).items()):
            return False
        named = mapping(extra.get("resource")).get("openinference.project.name") or extra.get("session_name")
        if self.project is not None and named is not None and named != self.project:
            return False
        return self._is_in_time(about)

    def _is_in_time(self, about: Mapping[str, Any]) -> bool:
        if self.start is None and self.end is None:
            return True
        time = nanoseconds(about.get("created_at"))
        if time is None:
            raise EvidenceError(
                f"trace {about['trace_id']!r}: its time is missing, which 'from_time' and 'to_time' need",
                code=Code.DAMAGED_LOG,
            )
        return not (
            (self.start is not None and time < _moment(self.start))
            or (self.end is not None and time >= _moment(self.end))
        )


def _moment(moment: datetime | date) -> int:
    time = (
        moment
        if isinstance(moment, datetime)
        else datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    )
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    return int(time.timestamp() * 1_000_000) * 1000


def row_of(trace: dict[str, Any], base: Path) -> dict[str, Any]:
    """Return a dataset row: the trace in the column `trace`, and its main properties in other columns.

    `source_uri` is relative to the folder `base`.
    """
    about = trace["metadata"]
    users = [item for item in trace["items"] if item["type"] == "message" and item["role"] == "user"]
    answers = [item for item in trace["items"] if item["type"] == "message" and item["role"] == "assistant"]
    place = Path(about["source_uri"])
    about = {
        **about,
        "source_uri": place.relative_to(base).as_posix() if place.is_relative_to(base) else str(place),
    }
    names = (
        "source_type",
        "source_uri",
        "agent",
        "model",
        "total_time",
        "total_tokens",
        "message_count",
        "error",
    )
    return {
        "sample_id": about["trace_id"],
        "trace": {**trace, "metadata": about},
        "input": _text(users[0]) if users else None,
        "output": _text(answers[-1]) if answers else None,
        "date": about.get("created_at"),
        "tags": about.get("tags") or [],
        "metadata": mapping(about.get("extra")).get(about["source_type"], {}),
        **{name: about.get(name) for name in names},
    }


def _text(item: Item) -> str:
    return "\n".join(part.get("text", part.get("refusal", "")) for part in item["content"] if _is_text(part))


def _is_text(part: Item) -> bool:
    return isinstance(part.get("text", part.get("refusal")), str)
