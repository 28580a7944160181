"""Data sets that are made of traces → their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.opening import is_below, links_out, outside
from aigo_bridge.access.presence import is_folder
from aigo_bridge.datasets.sources import TraceReader
from aigo_bridge.engine.registry import load_engine, required
from aigo_bridge.errors import DatasetError, EvidenceError, Issue, UsageError
from aigo_bridge.spec.datasets import (
    ClaudeCodeSource,
    DatasetSource,
    InspectSource,
    LangSmithSource,
    OpenTelemetrySource,
    PhoenixSource,
    TraceSource,
)

if TYPE_CHECKING:
    from aigo_bridge.interchange.traces.sources import Wanted


def trace_reader(root: Path) -> TraceReader:
    """A reader of data sets that are made of traces; `root` is the folder that paths may not leave.

    Inspect's logs are read by its adapter. Those of Claude Code, LangSmith, Phoenix and OpenTelemetry are
    read from files: no service is asked, and no folder is read that the data set does not name.
    """

    def read(source: DatasetSource, base: Path) -> Iterator[Mapping[str, Any]]:
        if not isinstance(source, TraceSource):
            raise DatasetError(f"{source.type!r} is no source of traces")
        if source.limit is not None and source.limit < 1:
            raise DatasetError(f"'limit': found {source.limit}, expected 1 or more")
        if source.path is None:
            raise DatasetError([_without_path(source)])
        path = base / source.path
        if not is_below(path, root):
            raise DatasetError([outside("the path", path, root, str(path))])
        if is_folder(path) and (issues := links_out(path, root)):
            raise DatasetError(issues)
        rows = _of_inspect(path) if isinstance(source, InspectSource) else _of_files(source, path, base, root)
        return itertools.islice(rows, source.limit)

    return read


def _without_path(source: TraceSource) -> Issue:
    """What is said of a source that names no files."""
    if isinstance(source, ClaudeCodeSource):
        return Issue(
            "'path' is missing: sessions in the home folder are not read unless the data set names it",
            hint="copy the sessions that you mean into the project and name their folder: path: sessions",
        )
    return Issue(
        f"'path' is missing: {source.type!r} is read from exported files, its service is not asked",
        hint="export the traces and name the file: path: traces.jsonl",
    )


def _of_files(source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
    from aigo_bridge.interchange.traces.documents import Reading
    from aigo_bridge.interchange.traces.sources import read_traces, row_of

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
        raise DatasetError([Issue(part.reason, file=part.member) for part in reading.damage[:20]])


def _wanted(source: TraceSource) -> Wanted:
    """Which traces a source asks for.

    Raises:
        DatasetError: it asks for something that only its service can answer.
    """
    from aigo_bridge.interchange.traces.sources import Wanted

    match source:
        case ClaudeCodeSource(session_id=session):
            return Wanted(ids=_several(session), start=source.from_time, end=source.to_time)
        case LangSmithSource():
            for name in ("filter", "dataset"):
                if getattr(source, name) is not None:
                    raise DatasetError(f"{name!r} is for the service to answer, and cannot be asked of files")
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


def _of_inspect(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        traces = load_engine("inspect").capabilities.traces
        yield from required(traces, "traces of Inspect cannot be read")(str(path))
    except (EvidenceError, UsageError) as error:
        issues = error.issues if isinstance(error, EvidenceError) else [Issue(str(error))]
        raise DatasetError(issues) from error
