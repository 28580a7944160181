"""Data sets that are made of recorded traces → their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, EvidenceError, Issue
from aigo_bridge.spec.datasets import (
    ClaudeCodeSource,
    LangSmithSource,
    OpenTelemetrySource,
    PhoenixSource,
    TraceSource,
)
from aigo_formats.traces.documents import Reading
from aigo_formats.traces.sources import Wanted, read_traces, row_of


def missing_path(source: TraceSource) -> Issue:
    """What is said of a source that names no files."""
    if isinstance(source, ClaudeCodeSource):
        return Issue(
            "'path' is missing: sessions in the home folder are not read unless the data set names it",
            hint="copy the sessions that you mean into the project and name their folder: path: sessions",
            code=Code.WRONG_TRACE_SOURCE,
        )
    return Issue(
        f"'path' is missing: {source.type!r} is read from exported files, its service is not asked",
        hint="export the traces and name the file: path: traces.jsonl",
        code=Code.WRONG_TRACE_SOURCE,
    )


def rows_of_files(source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
    """The rows of a source whose files lie at a path; `base` is the folder that their places are told from.

    Raises:
        DatasetError: a file cannot be read, or a part of one.
    """
    wanted = _wanted(source)
    reading = Reading(root=root)
    try:
        for trace in read_traces(path, source.type, reading):
            if reading.damage:
                break
            if wanted(trace):
                yield row_of(trace, base)
    except EvidenceError as error:
        raise DatasetError(error.issues) from error
    if reading.damage:
        # A data set that lacks rows, or traces that lack a part, would give other numbers.
        raise DatasetError(
            [
                Issue(part.reason, file=part.member, code=Code.WRONG_TRACE_SOURCE)
                for part in reading.damage[:20]
            ]
        )


def _wanted(source: TraceSource) -> Wanted:
    """Which traces a source asks for.

    Raises:
        DatasetError: it asks for something that only its service can answer.
    """
    match source:
        case ClaudeCodeSource(session_id=session):
            return Wanted(ids=_several(session), start=source.from_time, end=source.to_time)
        case LangSmithSource():
            for name in ("filter", "dataset"):
                if getattr(source, name) is not None:
                    raise DatasetError(
                        f"{name!r} is for the service to answer, and cannot be asked of files",
                        code=Code.WRONG_TRACE_SOURCE,
                    )
            return Wanted(
                start=source.from_time, end=source.to_time, tags=source.tags or (), project=source.project
            )
        case PhoenixSource():
            return Wanted(
                ids=_several(source.trace_id),
                sessions=_several(source.session_id),
                start=source.from_time,
                end=source.to_time,
                tags=source.tags or (),
                metadata=source.metadata,
                project=source.project,
            )
        case OpenTelemetrySource():
            return Wanted(
                ids=_several(source.trace_id),
                sessions=_several(source.session_id),
                start=source.from_time,
                end=source.to_time,
            )
    return Wanted()


def _several(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else value
