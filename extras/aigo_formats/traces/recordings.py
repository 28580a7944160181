"""Reader of span files. It returns one recording for each trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, EvidenceError
from aigo_formats.traces import genai, openinference
from aigo_formats.traces.documents import ReadContext, values_of
from aigo_formats.traces.otlp import RawSpan, raw_spans
from aigo_formats.traces.span_records import Span, TraceSpans
from aigo_formats.traces.spans import trace_of

_MOST_RESOURCES = 20
"""Maximum number of resources per trace."""
SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet")


def files_at(location: Path, suffixes: tuple[str, ...] = SUFFIXES) -> list[Path]:
    """Return the files at a location, a file or a folder, sorted by path.

    Raises:
        EvidenceError: the location does not contain files.
    """
    if location.is_file():
        return [location]
    if not location.is_dir():
        raise EvidenceError(
            f"{str(location)!r} does not exist, expected a file of traces or a folder of trace files",
            code=Code.NO_LOGS,
        )
    files = sorted(path for path in location.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
    if not files:
        raise EvidenceError(
            f"{str(location)!r} contains no trace files ({', '.join(suffixes)})", code=Code.NO_LOGS
        )
    return files


def table_values(file: Path, reading: ReadContext) -> list[Any]:
    """Return the values of a JSON, JSONL or Parquet file.

    Raises:
        EvidenceError: the file cannot be read.
    """
    if file.suffix.lower() != ".parquet":
        return values_of(file, reading)
    from aigo_bridge.datasets.files import load_file
    from aigo_bridge.datasets.rows import Selection
    from aigo_bridge.text.json_text import dumps

    try:
        rows = load_file(file, Selection(), missing="none", root=reading.root)
        return [reading.value(dumps(dict(row.data)), file) for row in rows.rows]
    except DatasetError as error:
        raise EvidenceError(error.issues) from error


def traces_of_spans(location: Path, source: str, reading: ReadContext) -> Iterator[dict[str, Any]]:
    """Yield the traces of all files at a location. Spans of one trace can be in several files.

    Raises:
        EvidenceError: a file is missing or cannot be read.
    """
    by_trace: dict[str, list[RawSpan]] = {}
    origin: dict[str, Path] = {}
    for file in files_at(location):
        for raw in raw_spans(table_values(file, reading), file, reading):
            by_trace.setdefault(raw.trace_id, []).append(raw)
            origin.setdefault(raw.trace_id, file)
    for trace_id, raws in by_trace.items():
        spans = [span_of(raw, reading) for raw in raws]
        extra, tags = _of_trace(raws)
        yield trace_of(TraceSpans(source, trace_id, str(origin[trace_id]), spans, extra, tags), reading.loss)


def span_of(raw: RawSpan, reading: ReadContext) -> Span:
    """Convert a raw span by its conventions."""
    if openinference.is_openinference(raw) or not genai.is_genai(raw):
        if openinference.is_openinference(raw):
            return openinference.span_of(raw, reading.loss)
        reading.loss.kept["span without a known convention for models"] += 1
    return genai.span_of(raw, reading.loss)


def _of_trace(raws: list[RawSpan]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the information about the whole trace in its spans: resources, session, user and tags."""
    extra: dict[str, Any] = {}
    distinct: list[dict[str, Any]] = []
    for raw in raws:
        if raw.resource and raw.resource not in distinct and len(distinct) < _MOST_RESOURCES:
            distinct.append(raw.resource)
    if distinct:
        extra["resource"] = distinct[0] if len(distinct) == 1 else distinct
    tags: tuple[str, ...] = ()
    for name in ("session.id", "gen_ai.conversation.id", "user.id", "metadata"):
        value = next((raw.attributes[name] for raw in raws if raw.attributes.get(name) is not None), None)
        if value is not None:
            extra[name] = value
    for raw in raws:
        listed = raw.attributes.get("tag.tags")
        if isinstance(listed, list):
            tags = tuple(dict.fromkeys([*tags, *(tag for tag in listed if isinstance(tag, str))]))
    return extra, tags
