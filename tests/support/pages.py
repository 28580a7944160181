"""Parser for the Markdown pages of this repository: sections, code blocks, links."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support.commands import REPOSITORY

DOCS = REPOSITORY / "docs"
FOLDERS = ("guides", "reference")
PAGES = (
    REPOSITORY / "README.md",
    *sorted(DOCS.glob("*.md")),
    *(path for folder in FOLDERS for path in sorted((DOCS / folder).rglob("*.md"))),
)
"""What users read."""

_FENCE = re.compile(r"^```(\w*)[^\n`]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Fenced code block."""

    kind: str
    """The word behind the fence."""
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Return the text after each `$` with the lines shown below it."""
        return _COMMAND.findall(self.text)


@dataclass(frozen=True)
class Section:
    """Heading and its text up to the next heading of any level."""

    title: str
    level: int
    body: str
    chapter: str = ""
    """Title of the section of the second level that this one belongs to; its own where it is one."""
    blocks: tuple[Block, ...] = field(default=())

    @property
    def prose(self) -> str:
        """Return the body without code blocks."""
        return _FENCE.sub("", self.body)


@dataclass(frozen=True)
class Page:
    """Markdown page."""

    path: Path
    text: str

    @property
    def blocks(self) -> list[Block]:
        """All blocks, in order."""
        return [Block(kind, text) for kind, text in _FENCE.findall(self.text)]

    @property
    def links(self) -> list[str]:
        """Return the targets of all links outside of code."""
        return _LINK.findall(re.sub(r"`[^`\n]*`", "", _FENCE.sub("", self.text)))

    @property
    def anchors(self) -> set[str]:
        """Return the heading anchors that GitHub makes."""
        names: dict[str, int] = {}
        found = set()
        for _, title in _HEADING.findall(_FENCE.sub("", self.text)):
            name = _slug(title)
            number = names.get(name, 0)
            names[name] = number + 1
            found.add(f"{name}-{number}" if number else name)
        return found

    def anchor(self, title: str) -> str:
        """Return the anchor of a heading."""
        return _slug(title)

    @property
    def sections(self) -> list[Section]:
        """Return all sections in order."""
        # A comment in a block of code is no heading: fences are blanked, character by character, to find the places.
        blank = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), self.text)
        places = list(_HEADING.finditer(blank))
        found, chapter = [], ""
        for number, match in enumerate(places):
            end = places[number + 1].start() if number + 1 < len(places) else len(self.text)
            body = self.text[match.end() : end]
            level, title = len(match.group(1)), match.group(2)
            chapter = title if level <= 2 else chapter
            blocks = tuple(Block(kind, text) for kind, text in _FENCE.findall(body))
            found.append(Section(title, level, body, chapter, blocks))
        return found

    def section(self, title: str, chapter: str | None = None) -> Section:
        """Return the section with this title, in a chapter if one is given."""
        (found,) = [each for each in self.sections if each.title == title and chapter in (None, each.chapter)]
        return found


def _slug(title: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@cache
def page(path: Path) -> Page:
    """Read the page of a file."""
    return Page(path, path.read_text(encoding="utf-8"))
