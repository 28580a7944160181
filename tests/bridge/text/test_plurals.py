"""Numbers with their nouns."""

from __future__ import annotations

import re

import pytest
from tests.support.commands import REPOSITORY

from aigo_bridge.text.plurals import plural

PLURAL = re.compile(
    r"\{(?:len\([\w.]+\)|[\w.]+)(?::,)?\} (?:samples|trials|files|rows|results|tasks|logs|calls|gaps|parts)\b"
)
GUARDED = re.compile(r"more than|at most|, expected |of which|== 1 else|_MOST|MOST_|SHOWN")
"""Sentences about a bound, or a number next to another one."""


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 samples"), (1, "1 sample"), (2, "2 samples"), (1234, "1234 samples")]
)
def test_noun_follows_its_number(count: int, words: str) -> None:
    assert plural(count, "sample") == words


def test_verbs_and_irregular_nouns_follow_the_number() -> None:
    assert plural(1, "reply was", "replies were") == "1 reply was"
    assert plural(1200, "reply was", "replies were", form=",") == "1,200 replies were"


def test_messages_never_use_a_fixed_plural_after_a_number() -> None:
    sources = [
        *(REPOSITORY / "bridge").rglob("*.py"),
        *(REPOSITORY / "adapters").rglob("*.py"),
        *(REPOSITORY / "extras").rglob("*.py"),
    ]
    lines = [
        f"{path.name}: {line.strip()}"
        for path in sources
        for line in path.read_text("utf-8").splitlines()
        if (PLURAL.search(line) or ("(s)" in line and 'f"' in line)) and not GUARDED.search(line)
    ]
    assert lines == []
