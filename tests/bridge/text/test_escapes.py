from __future__ import annotations

import re

import pytest

from aigo_bridge.text.escapes import in_json, ranges, undone


@pytest.mark.parametrize(
    ("escape", "character"), [("b", "\b"), ("f", "\f"), ("n", "\n"), ("r", "\r"), ("t", "\t"), ("/", "/")]
)
def test_single_letter_escape_is_decoded(escape: str, character: str) -> None:
    assert undone(f"a\\{escape}b") == f"a{character}b"


def test_multi_line_secret_is_found_with_escaped_line_breaks() -> None:
    text = "key: begin\\nend, and more"
    assert ranges(text, re.compile("begin\nend"), [(0, len(text))], 9) == [(5, 15)]


def test_json_pattern_matches_an_escaped_line_break() -> None:
    assert re.search(in_json("begin\nend"), '{"key": "begin\\nend"}') is not None
