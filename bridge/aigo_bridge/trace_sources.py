"""Data sets that are made of traces: which of them can be read, and by whom.

Inspect's logs are read by its adapter. Traces of LangSmith, Phoenix and Claude Code are not read here: export them to a JSONL file with a column
`trace` and name that as a local source.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.datasets.sources import TraceReader
from aigo_bridge.engines import load_engine
from aigo_bridge.errors import DatasetError, EvidenceError, Issue, UsageError
from aigo_bridge.roots import is_below, outside
from aigo_bridge.spec.datasets import DatasetSource, InspectSource


def trace_reader(root: Path) -> TraceReader:
    """A reader of trace sources; `root` is the folder that paths may not leave."""

    def read(source: DatasetSource, base: Path) -> Iterator[Mapping[str, Any]]:
        if not isinstance(source, InspectSource):
            hint = "write the traces into a JSONL file, column 'trace', and name that as a local source"
            raise DatasetError([Issue(f"traces of {source.type!r} cannot be read here", hint=hint)])
        if source.limit is not None and source.limit < 1:
            raise DatasetError(f"'limit': found {source.limit}, expected 1 or more")
        path = base / source.path
        if not is_below(path, root):
            raise DatasetError([outside("the path", path, root, str(path))])
        return itertools.islice(_of_inspect(path), source.limit)

    return read


def _of_inspect(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        yield from load_engine("inspect").trace_rows(str(path))
    except (EvidenceError, UsageError) as error:
        issues = error.issues if isinstance(error, EvidenceError) else [Issue(str(error))]
        raise DatasetError(issues) from error
