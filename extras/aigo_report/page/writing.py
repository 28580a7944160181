"""Results → a page, or a folder of pages where one would be too large; memory is bounded by the rows of the
table, never by the samples.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.redaction.secrets import redact_json
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.values import json_line
from aigo_report.page.packing import Blocks, read_result, summary_of
from aigo_report.page.pages import Block, write_page
from aigo_report.page.summary import Verify

LARGEST = 48_000_000
"""Bytes of a page; more become a folder of pages."""


@dataclass(frozen=True)
class Report:
    """What was written."""

    path: Path
    """The page to open."""
    pages: int
    """How many there are."""
    samples: int
    problems: Sequence[str] = ()
    """Results that could not be read, or not to their end."""


def write_report(
    sources: Sequence[ResultSource], out: Path, *, largest: int = LARGEST, verify: Verify | None = None
) -> Report:
    """Write a page of results; where it would be too large a folder of pages, named as the page without
    its suffix, with `index.html` to open.

    Args:
        sources: the results.
        out: the file.
        largest: bytes of a page.
        verify: check of each result; `None`: they are not checked.

    Raises:
        UsageError: There is no result, or none can be read.
        OSError: The page cannot be written.
    """
    if not sources:
        raise UsageError("found no result, expected at least one", code=Code.MISSING_ARGUMENT)
    with tempfile.TemporaryFile() as file:
        blocks = Blocks(file)
        problems: list[str] = []
        results = [
            read_result(source, number, blocks, problems, verify) for number, source in enumerate(sources)
        ]
        if all("counts" not in result for result in results) and all(
            source.entry is None for source in sources
        ):
            hint = "hint: result logs are what `aigo-bridge run` and `aigo-bridge import` write"
            raise UsageError("\n".join([*problems, hint]), code=Code.NOT_A_RESULT)
        summary = summary_of(sources, results)
        samples = sum((result.get("counts") or {}).get("samples", 0) for result in results)
        pages = list(_pages(blocks, largest))
        path = out if len(pages) == 1 else _folder(out) / "index.html"
        names = [path.name, *(f"samples-{number:04d}.html" for number in range(1, len(pages)))]
        where = {block.name: names[number] for number, page in enumerate(pages) for block in page}
        if len(pages) > 1:
            path.parent.mkdir(parents=True, exist_ok=True)
            summary["pages"] = where
            summary["index"] = path.name
        # The page that is opened comes last: where it is, all of them are.
        for name, page in reversed(list(zip(names, pages, strict=True))):
            with open_for_replacing(path.with_name(name)) as target:
                write_page(target, redact_json(json_line(summary)), page, file)
    return Report(path, len(pages), samples, tuple(problems))


def _folder(out: Path) -> Path:
    folder = out.with_suffix("")
    # `x.tasklog.json.html` stands beside the result that it is called like.
    return out.with_name(f"{out.name}-pages") if folder == out or folder.is_file() else folder


def _pages(blocks: Blocks, largest: int) -> Iterator[list[Block]]:
    """The blocks of each page: all on one, or the rows on the first and the samples on the others."""
    total = sum(block.size for block in (*blocks.rows, *blocks.parts))
    if total <= largest:
        yield [*blocks.rows, *blocks.parts]
        return
    yield blocks.rows
    page: list[Block] = []
    size = 0
    for block in blocks.parts:
        if page and size + block.size > largest:
            yield page
            page, size = [], 0
        page.append(block)
        size += block.size
    yield page
