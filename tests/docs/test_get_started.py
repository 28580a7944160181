""" "Get started" pages: the shown messages, extras and exit codes match the program."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, type_in
from tests.support.pages import DOCS, Section, page

from aigo_bridge.exit_codes import ExitCode

TROUBLES = [each for each in page(DOCS / "troubleshooting.md").sections if each.blocks]


@cache
def texts(folder: str, pattern: str) -> str:
    """Return all texts of a folder, with the parts of a string literal joined."""
    joined = "".join(path.read_text("utf-8") for path in sorted((REPOSITORY / folder).rglob(pattern)))
    return re.sub(r'"\n? *f?"', "", joined)


def messages() -> str:
    return "".join([texts("docs/errors", "*.md"), *(texts(each, "*.py") for each in ("bridge", "extras"))])


def test_fifteen_messages_are_explained() -> None:
    assert len(TROUBLES) == 15


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda each: each.title)
def test_explained_message_is_in_the_source(trouble: Section) -> None:
    if trouble.title in FOREIGN:
        return
    (block,) = trouble.blocks
    text = messages()
    for part in filter(None, (part.strip() for part in re.split("'?…'?", block.text))):
        assert part in text, part


FOREIGN = {"No API key", "No connection"}
"""Sections whose message is Inspect's or the HTTP client's."""


def test_every_extra_is_in_the_table() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    table = page(DOCS / "installation.md").section("Add extras").body
    cells = re.findall(r"^\| (`[a-z0-9`, ]+`) \|", table, re.MULTILINE)
    named = {name.strip("` ") for cell in cells for name in cell.split(",")}
    assert named == extras.keys() - {"test"}


def test_installation_check_prints_the_shown_output(tmp_path: Path) -> None:
    text = page(DOCS / "installation.md").text
    blocks = "".join(re.findall(r"^```console\n.*?^```\n", text, re.DOTALL | re.MULTILINE))
    assert type_in(blocks, Reader(tmp_path), tmp_path) == 1


def test_exit_codes_match_the_program() -> None:
    table = page(DOCS / "concepts.md").section("Exit codes").body
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert codes == {code for code in ExitCode if code < 128}
