"""The sources of traces by name: which files are theirs, their traces, and rows of a dataset."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import dumps, read_json
from aigo_formats.traces import claude_code, langsmith, recordings
from aigo_formats.traces.assembling import nanoseconds
from aigo_formats.traces.attributes import mapping, parsed
from aigo_formats.traces.documents import Reading
from aigo_formats.traces.items import Item

Traces = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class TraceFileKind:
    """A kind of files with traces."""

    name: str
    expected: str
    """The files, for people."""
    read: Callable[[Path, Reading], Traces]
    """The traces of a file or folder, JSON-ready. Raises `EvidenceError`."""
    marks: tuple[str, ...]
    """Names that stand in the beginning of such a file, and in no other's."""


def _sessions(location: Path, reading: Reading) -> Traces:
    for files in claude_code.find_sessions(location):
        trace = claude_code.read_session(files, reading)
        if trace is None:
            reading.loss.dropped["transcript without a message"] += 1
        else:
            yield trace


def _spans(source: str) -> Callable[[Path, Reading], Traces]:
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
    """Whose traces a file has, by its beginning; `None`: nobody's that is known."""
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return None
    names = {match[1].decode() for match in re.finditer(rb'"([A-Za-z_.]{1,40})"\s*:', head)}
    return next((source for source in SOURCES.values() if names.intersection(source.marks)), None)


def read_traces(location: Path, source: str, reading: Reading | None = None) -> Traces:
    """The traces at a location, a file or a folder, JSON-ready; nothing in them is run.

    Args:
        location: a file or a folder.
        source: one of `SOURCES`.
        reading: how they are read; what was lost and damaged is noted there.

    Raises:
        EvidenceError: there is no such source, no such file, or one cannot be read.
    """
    kind = SOURCES.get(source)
    if kind is None:
        raise EvidenceError(
            f"found the source {source!r}, expected one of {', '.join(SOURCES)}", code=Code.UNKNOWN_CHOICE
        )
    reading = reading or Reading()
    for trace in kind.read(location, reading):
        yield _without_secrets(trace, reading)


def _without_secrets(trace: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """A trace without what only now stands beside a name that tells it for a secret: in OTLP names and values
    are members of their own.
    """
    text = dumps(trace)
    clean = reading.redaction.apply(text)
    if clean is text:
        return trace
    cleaned: dict[str, Any] = read_json(clean)
    return cleaned


@dataclass(frozen=True)
class Wanted:
    """Which traces are wanted; everything is optional."""

    ids: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    start: datetime | date | None = None
    """Only those that began at this moment or later."""
    end: datetime | date | None = None
    """Only those that began before this moment."""
    tags: tuple[str, ...] = ()
    """All of them."""
    metadata: Mapping[str, str] | None = None
    project: str | None = None
    """Those of other projects are left out, where a trace says its project."""

    def __call__(self, trace: Mapping[str, Any]) -> bool:
        """Whether a trace is wanted.

        Raises:
            EvidenceError: it has no time, and times are asked for.
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
                f"the trace {about['trace_id']!r} has no time to compare with 'from_time' and 'to_time'",
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
    """A row of a dataset: the trace in the column `trace`, and what is asked of traces beside it.

    `base` is the folder that `source_uri` starts from.
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
