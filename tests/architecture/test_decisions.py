"""Each page of docs/adr has a date, the alternatives, and measured figures or a note that there are none."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from tests.architecture.sources import ROOT

PAGES = sorted((ROOT / "docs/adr").glob("*.md"))
CHAPTERS = {"Context", "Decision", "Alternatives", "Figures"}


def chapters(text: str) -> dict[str, str]:
    """Return the text of each chapter by name."""
    parts = re.split(r"^\*\*([A-Z][a-z]+)\.\*\*", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_decision_has_a_date_alternatives_and_figures(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith(f"# {int(path.name[:4])}. ")
    (day,) = re.findall(r"^Date: (\S+)$", text, re.MULTILINE)
    assert date.fromisoformat(day) >= date(2026, 11, 21)
    written = chapters(text)
    assert written.keys() >= CHAPTERS
    assert all(written.values())
    assert re.search(
        r"\d|`|^None[:;] |^No ", written["Figures"]
    )  # a figure, where it is measured, or why there is none


def test_decision_numbers_are_unique() -> None:
    numbers = [path.name[:4] for path in PAGES]
    assert len({*numbers}) == len(numbers)


def test_empty_chapter_is_found() -> None:
    assert chapters("# 1. A\n\n**Context.** B\n\n**Figures.**\n") == {"Context": "B", "Figures": ""}
