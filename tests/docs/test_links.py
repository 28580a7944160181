"""Every link of the pages has a target, and every page can be reached from the README."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.commands import REPOSITORY
from tests.support.pages import PAGES, Page, page

MARKDOWN = sorted({*PAGES, *REPOSITORY.glob("*.md")})
DOCS = REPOSITORY / "docs"


def broken(of: Page) -> list[str]:
    """Return relative links without an existing file or heading."""
    found = []
    for link in of.links:
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (of.path.parent / name).resolve() if name else of.path
        if not target.exists() or (anchor and anchor not in page(target).anchors):
            found.append(link)
    return found


def test_every_link_has_an_existing_file_and_heading() -> None:
    assert {path.name: links for path in MARKDOWN if (links := broken(page(path)))} == {}


def test_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A `b` (c)\n\n```sh\n# no heading\n```\n")
    text = "[a](there.md#a-b-c) [b](there.md#no-heading) [c](not-there.md) `[d](code.md)` [e](#f)\n"

    assert broken(Page(tmp_path / "x.md", text)) == ["there.md#no-heading", "not-there.md", "#f"]


def test_readme_links_the_index_and_the_index_every_page() -> None:
    assert "docs/README.md" in page(REPOSITORY / "README.md").links
    listed = {
        link.partition("#")[0] for link in page(DOCS / "README.md").links if not re.search(r"\.\.|://", link)
    }
    pages = {path.relative_to(DOCS).as_posix() for path in PAGES if path.is_relative_to(DOCS)}
    assert listed - {"adr/"} == pages - {"README.md"}
