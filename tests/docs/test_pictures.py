"""Pictures of results are made by the tool, are small, and are shown where they are explained."""

from __future__ import annotations

import re

from tests.support.pages import PAGES
from tools import gallery
from tools.pictures import PICTURES, STATES, STATES_FOLDER, TARGET

LARGEST = 100_000


def test_pictures_are_current() -> None:
    assert {path.stem for path in TARGET.glob("*.png")} == set(PICTURES)
    assert {path.stem for path in (TARGET / STATES_FOLDER).iterdir()} == set(STATES)
    names = {exhibit.name for exhibit in gallery.exhibits()}
    assert {path.stem for path in gallery.PICTURES.iterdir()} == names


def test_the_pictures_are_small() -> None:
    assert [path.name for path in TARGET.rglob("*.png") if path.stat().st_size > LARGEST] == []


def test_every_picture_is_shown() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    shown = set(re.findall(r"\]\([\w./]*pictures/([\w-]+)\.png\)", text))
    assert set(PICTURES) - shown == set()
    states = set(re.findall(r"\]\([\w./]*pictures/states/([\w-]+)\.png\)", text))
    assert states == set(STATES)
    assert len(STATES) == 12


def test_gallery_is_current() -> None:
    assert (gallery.PAGE).read_text("utf-8") == gallery.page(), "make gallery"
