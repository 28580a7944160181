"""Documentation site: every page is on it, every link has a target, and no file comes from a network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.pages import DOCS, PAGES, page
from tools.site.__main__ import address, build, titles

import aigo_bridge
from aigo_bridge.cli import VERBS

REDIRECTS = DOCS / "redirects.json"
"""Moved page → page that replaces it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Site built once; a broken link fails the build."""
    return build(tmp_path_factory.mktemp("site"))


def test_every_page_is_on_the_site_and_in_the_navigation(site: Path) -> None:
    pages = site.parent / "pages"
    named = {name for name, _, _ in titles(pages)}
    written = {path.relative_to(REPOSITORY).as_posix() for path in PAGES if path != REPOSITORY / "README.md"}
    assert written <= named
    assert [name for name in named if not (site / address(name)).is_file()] == []


def test_old_addresses_redirect_to_the_new_pages(site: Path) -> None:
    moved = json.loads(REDIRECTS.read_text("utf-8"))
    assert list(moved) == sorted(moved)
    for old, new in {"README.md": "docs/README.md", **moved}.items():
        source, target = site / address(old), page(REPOSITORY / new.partition("#")[0])
        (link,) = re.findall(r'<a href="([^"]+)">', source.read_text("utf-8"))
        name, _, anchor = link.partition("#")
        assert (source.parent / name).resolve() == site / address(
            target.path.relative_to(REPOSITORY).as_posix()
        )
        assert not anchor or anchor in target.anchors


def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]+"')
    assert {
        path.name: tags for path in site.rglob("*.html") if (tags := fetched.findall(path.read_text("utf-8")))
    } == {}
    assert [
        path.name
        for path in site.rglob("*.css")
        if re.search(r"(@import|url\() *[\"']?https?:", path.read_text("utf-8"))
    ] == []


def test_reference_is_complete(site: Path) -> None:
    command_line = (site / "reference" / "cli.html").read_text("utf-8")
    assert [verb for verb in VERBS if f'id="{verb}"' not in command_line] == []
    assert "--num-samples" in command_line
    functions = (site / "reference" / "api.html").read_text("utf-8")
    names = [name for name in aigo_bridge.__all__ if not name.startswith("_")]
    assert [name for name in names if f'id="aigo_bridge.{name}"' not in functions] == []


def test_pages_are_listed_for_language_models_and_search(site: Path) -> None:
    listed = (site / "llms.txt").read_text("utf-8")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)$", listed, re.MULTILINE)
    assert len(links) > 25
    assert [link for link in links if not (site / link).is_file()] == []
    assert "# Quickstart" in (site / "llms-full.txt").read_text("utf-8")
    assert '"text"' in (site / "search.json").read_text("utf-8")
