"""Trace sources as formats: dataset rows and results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, EvidenceError, Issue
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.spec.datasets import (
    ClaudeCodeSource,
    LangSmithSource,
    OpenTelemetrySource,
    PhoenixSource,
    TraceSource,
)
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.sources import TraceQuery, read_traces, row_of


@dataclass(frozen=True)
class SourceTraces:
    """Traces of one source."""

    source: str
    """Name of the source in `SOURCES`."""

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Write a result log for each location. See `TraceFormat.import_logs`."""
        from aigo_formats.traces.evidence import import_traces

        return import_traces(locations, self.source, out, options, tell)

    def rows(self, source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
        """Return the rows of a dataset. See `TraceFormat.rows`."""
        return rows_of_files(source, path, base, root)


def rows_of_files(source: TraceSource, path: Path, base: Path, root: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a source's files at a path. File locations are relative to the folder `base`.

    Raises:
        DatasetError: a file or a part of it cannot be read.
    """
    wanted = _wanted(source)
    reading = ReadContext(root=root)
    try:
        for trace in read_traces(path, source.type, reading):
            if reading.damage:
                break
            if wanted(trace):
                yield row_of(trace, base)
    except EvidenceError as error:
        raise DatasetError(error.issues) from error
    if reading.damage:
        # With missing rows or incomplete traces, metrics would be wrong.
        raise DatasetError(
            [
                Issue(part.reason, file=part.member, code=Code.WRONG_TRACE_SOURCE)
                for part in reading.damage[:20]
            ]
        )


def _wanted(source: TraceSource) -> TraceQuery:
    """Return the trace filter of a source.

    Raises:
        DatasetError: the source has a filter that only its service can apply.
    """
    match source:
        case ClaudeCodeSource(session_id=session):
            return TraceQuery(ids=_several(session), start=source.from_time, end=source.to_time)
        case LangSmithSource():
            for name in ("filter", "dataset"):
                if getattr(source, name) is not None:
                    raise DatasetError(
                        f"{name!r} is a query of the service, which files do not support",
                        code=Code.WRONG_TRACE_SOURCE,
                    )
            return TraceQuery(
                start=source.from_time, end=source.to_time, tags=source.tags or (), project=source.project
            )
        case PhoenixSource():
            return TraceQuery(
                ids=_several(source.trace_id),
                sessions=_several(source.session_id),
                start=source.from_time,
                end=source.to_time,
                tags=source.tags or (),
                metadata=source.metadata,
                project=source.project,
            )
        case OpenTelemetrySource():
            return TraceQuery(
                ids=_several(source.trace_id),
                sessions=_several(source.session_id),
                start=source.from_time,
                end=source.to_time,
            )
    return TraceQuery()


def _several(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else value
