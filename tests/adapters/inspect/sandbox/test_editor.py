"""Text editor tool of agents."""

from __future__ import annotations

import pytest
from inspect_ai.tool import ToolError

from aigo_inspect.sandbox.editor import inserted, numbered, replaced


def test_lines_are_shown_with_line_numbers() -> None:
    assert numbered("a\nb\n") == "     1\ta\n     2\tb"
    assert numbered("a\nb\nc\n", [2, 9]) == "     2\tb\n     3\tc\n(of 3 lines)"
    assert numbered("") == ""
    assert numbered("x\n" * 2001).endswith("\n(of 2001 lines)")


@pytest.mark.parametrize("lines", [[0, 1], [2, 1], [1], [1, 2, 3]])
def test_a_line_range_requires_two_numbers(lines: list[int]) -> None:
    with pytest.raises(ToolError, match="expected the first and the last line"):
        numbered("a\nb\n", lines)


def test_a_text_is_replaced_if_it_occurs_once() -> None:
    assert replaced("a b a", "b", "c") == "a c a"
    assert replaced("a b", "b", "") == "a "
    for old, count in (("a", 2), ("x", 0), ("", 0)):
        with pytest.raises(ToolError, match=f"occurs {count} times"):
            replaced("a b a", old, "c")


def test_lines_are_inserted_after_a_line() -> None:
    assert inserted("a\nb\n", 1, "x") == "a\nx\nb\n"
    assert inserted("a\nb", 2, "x\n") == "a\nb\nx\n"
    assert inserted("a\n", 0, "x") == "x\na\n"
    assert inserted("", 0, "x") == "x\n"
    for line in (-1, 3):
        with pytest.raises(ToolError, match="expected 0 to 2"):
            inserted("a\nb\n", line, "x")
