"""The pictures of what results look like: those that the tool makes, small, and shown where they are explained."""

from __future__ import annotations

from tests.support.commands import REPOSITORY
from tools.pictures import PICTURES, TARGET

LARGEST = 100_000


def test_the_pictures_are_those_of_the_tool() -> None:
    assert {path.stem for path in TARGET.iterdir()} == set(PICTURES)


def test_the_pictures_are_small() -> None:
    assert [path.name for path in TARGET.iterdir() if path.stat().st_size > LARGEST] == []


def test_every_picture_is_shown() -> None:
    text = "".join(page.read_text("utf-8") for page in (REPOSITORY / "docs").glob("*.md"))
    assert [name for name in PICTURES if f"](pictures/{name}.png)" not in text] == []
