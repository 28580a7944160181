"""Compressed blocks of a result: samples and table rows in small groups, so that a viewer only unpacks what
it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.secrets import redact_json
from aigo_bridge.results.reading import FramePart, LogReader
from aigo_bridge.results.rows import rows_of
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.values import Json, json_line
from aigo_bridge.version import __version__
from aigo_report.page.metrics import MetricReader
from aigo_report.page.pages import Block, packed
from aigo_report.page.summary import (
    ResultTotals,
    Verify,
    broken_summary,
    evaluation_summary,
    result_summary,
)

PART = 1 << 18
"""Uncompressed size in bytes of the samples in a block."""
ROWS = 2_000
"""Number of table rows in a block."""


@dataclass
class Blocks:
    """Compressed samples and rows in a file, in order."""

    file: BinaryIO
    pack: Callable[[bytes], bytes] = packed
    parts: list[Block] = field(default_factory=list)
    rows: list[Block] = field(default_factory=list)

    def put(self, data: bytes, name: str) -> Block:
        """Compress and write a block without known secrets."""
        text = self.pack(redact_json(data))
        block = Block(name, self.file.tell(), len(text))
        self.file.write(text)
        return block


def summary_of(sources: Sequence[ResultSource], results: Sequence[Json]) -> Json:
    """Return the data for the first view of a page.

    Args:
        sources: results.
        results: output of `read_result` for each result.
    """
    return {
        "format": 1,
        "version": __version__,
        "evaluations": _evaluations(sources),
        "whole": len({id(source.evaluation) for source in sources}) == 1
        and sources[0].evaluation is not None,
        "results": list(results),
    }


def _evaluations(sources: Sequence[ResultSource]) -> list[Json]:
    summaries = {id(source.evaluation): source.evaluation for source in sources if source.evaluation}
    return [evaluation_summary(dict(summary)) for summary in summaries.values()]


def read_result(
    source: ResultSource,
    number: int,
    blocks: Blocks,
    problems: list[str],
    verify: Verify | None = None,
) -> Json:
    """Write the samples of a result to the blocks, and return its summary.

    Args:
        source: source of the result.
        number: position of the result on the page.
        blocks: file for samples and rows.
        problems: list to which problems are added.
        verify: function that verifies the result; `None` to skip verification.
    """
    if source.path is None:
        return broken_summary(source, ["its result is missing from the evaluation"])
    packing = _Packing(blocks, f"r{number}")
    reader = LogReader(source.path, root=source.root)
    totals, metrics = ResultTotals(), MetricReader()
    try:
        for part in reader.parts():
            metrics.add(part)
            if isinstance(part, FramePart):
                packing.close()
                log = reader.typed_frame(part)
                break
            rows = list(rows_of(part.value, totals.samples, part.run))
            totals.add(part, rows)
            packing.add(json_line(part.value), [row.cells for row in rows])
    except EvidenceError as error:
        packing.close()
        problems.append(str(error))
        summary = broken_summary(source, [str(error)])
    else:
        summary = result_summary(source, log, totals, metrics, verify)
    return {**summary, "rows": packing.rows, "parts": packing.parts}


class _Packing:
    """Samples and rows of one result, compressed while they are read."""

    def __init__(self, blocks: Blocks, prefix: str):
        self._blocks = blocks
        self._prefix = prefix
        self._lines: list[bytes] = []
        self._size = 0
        self._rows: list[Json] = []
        self._samples = 0
        self.parts: list[list[int | str]] = []
        """Index of the first sample and name of each block of samples."""
        self.rows: list[str] = []
        """Names of the row blocks."""

    def add(self, line: bytes, rows: Sequence[Json]) -> None:
        """Add a sample."""
        self._lines.append(line)
        self._size += len(line)
        self._rows += rows
        if self._size >= PART:
            self._close_part()
        if len(self._rows) >= ROWS:
            self._close_rows()

    def close(self) -> None:
        """Write the remaining samples and rows."""
        if self._lines:
            self._close_part()
        if self._rows:
            self._close_rows()

    def _close_part(self) -> None:
        name = f"{self._prefix}p{len(self.parts)}"
        self._blocks.parts.append(self._blocks.put(b"\n".join(self._lines), name))
        self.parts.append([self._samples, name])
        self._samples += len(self._lines)
        self._lines, self._size = [], 0

    def _close_rows(self) -> None:
        name = f"{self._prefix}t{len(self.rows)}"
        self._blocks.rows.append(self._blocks.put(json_line(self._rows), name))
        self.rows.append(name)
        self._rows = []
