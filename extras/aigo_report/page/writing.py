"""Report writer: one page, or a folder of pages for large results. Memory depends on the table rows only."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.redaction.secrets import redact_json
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.values import Json, json_line
from aigo_report.page.packing import Blocks, read_result, summary_of
from aigo_report.page.pages import Block, write_page
from aigo_report.page.summary import Verify

LARGEST = 48_000_000
"""Maximum size of a page in bytes. Larger reports become a folder of pages."""


@dataclass(frozen=True)
class Report:
    """Report that was written."""

    path: Path
    """Path of the page to open."""
    pages: int
    """Number of pages."""
    samples: int
    problems: Sequence[str] = ()
    """Results that could not be read completely."""


def write_report(
    sources: Sequence[ResultSource], out: Path, *, largest: int = LARGEST, verify: Verify | None = None
) -> Report:
    """Write results as one page, or as a folder of pages if the page would be too large.

    The folder has the name of the page without its file extension, and `index.html` is the page to open.

    Args:
        sources: results.
        out: path of the HTML file.
        largest: maximum size of a page in bytes.
        verify: function that verifies each result; `None` to skip verification.

    Raises:
        UsageError: no result was given, or no result can be read.
        OSError: the page cannot be written.
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
            hint = "hint: `aigo-bridge run` and `aigo-bridge import` write result logs"
            raise UsageError("\n".join([*problems, hint]), code=Code.NOT_A_RESULT)
        summary = summary_of(sources, results)
        summary["comparisons"] = _comparisons(sources, results, blocks)
        samples = sum((result.get("counts") or {}).get("samples", 0) for result in results)
        pages = list(_pages(blocks, largest))
        path = out if len(pages) == 1 else _folder(out) / "index.html"
        names = [path.name, *(f"samples-{number:04d}.html" for number in range(1, len(pages)))]
        where = {block.name: names[number] for number, page in enumerate(pages) for block in page}
        if len(pages) > 1:
            path.parent.mkdir(parents=True, exist_ok=True)
            summary["pages"] = where
            summary["index"] = path.name
        # Write the main page last. If it exists, all pages exist.
        for name, page in reversed(list(zip(names, pages, strict=True))):
            with open_for_replacing(path.with_name(name)) as target:
                write_page(target, redact_json(json_line(summary)), page, file)
    return Report(path, len(pages), samples, tuple(problems))


def _comparisons(sources: Sequence[ResultSource], results: Sequence[Json], blocks: Blocks) -> list[Json]:
    """Write the comparisons of results of the same task, and return their positions and block names."""
    if len(results) < 2:
        return []
    from aigo_report.page.pairs import page_comparisons

    rows = []
    for base, new, content in page_comparisons(sources, results):
        name = f"c{base}-{new}"
        blocks.rows.append(blocks.put(orjson.dumps(content), name))
        rows.append({"base": base, "new": new, "block": name})
    return rows


def _folder(out: Path) -> Path:
    folder = out.with_suffix("")
    # `x.tasklog.json.html` may be next to the result with the same name.
    return out.with_name(f"{out.name}-pages") if folder == out or folder.is_file() else folder


def _pages(blocks: Blocks, largest: int) -> Iterator[list[Block]]:
    """Yield the blocks of each page: all blocks on one page, or rows on the first page and samples on the
    others.
    """
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
