"""Price files: entries are looked up in order, and every error has a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.errors import SpecError
from aigo_bridge.evaluation.prices import read_prices


def test_first_matching_price_is_used(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "currency: USD\nmodels:\n  openai/a: {input: 0.1, output: 4}\n  openai/*: {input: 1e3, output: 0}\n"
    )
    table = read_prices(file)
    assert table.currency == "USD"
    (exact, pattern) = table.prices
    assert (exact.input, pattern.input) == (0.1, 1000.0)
    assert table.price("openai/a") is exact
    assert table.price("anthropic/x", "openai/b") is pattern
    assert table.price("anthropic/x", None, "") is None


def test_all_errors_in_a_price_file_are_reported_with_their_positions(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "curency: USD\nmodels:\n  a: {input: x, output: -1}\n  a: {input: 1, output: 1}\n  b: 3\n  c: {input: .nan, outputs: 1}\n"
    )
    with pytest.raises(SpecError) as raised:
        read_prices(file)
    issues = [(issue.line, issue.message) for issue in raised.value.issues]
    assert issues == [
        (1, "unknown key 'curency'"),
        (3, "'input': found 'x', expected a number"),
        (3, "'output': found the number -1, expected 0.0 or more"),
        (4, "key 'a' is given twice; the first is in line 3"),
        (5, "'b': found the number 3, expected a mapping"),
        (6, "'input': found the number nan, expected a finite number"),
        (6, "unknown key 'outputs'"),
    ]
    assert {issue.code for issue in raised.value.issues} == {Code.WRONG_PRICE}


@pytest.mark.parametrize(
    "text", ["", "a: [", "- 1\n", "\x00", "currency: USD\n", "a: &a [*a]\n", "!!python/object:os.system {}\n"]
)
def test_a_value_that_is_not_a_table_is_reported(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    with pytest.raises(SpecError):
        read_prices(file)


def test_missing_binary_or_huge_price_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    with pytest.raises(SpecError, match="does not exist"):
        read_prices(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8"):
        read_prices(file)
    file.write_bytes(b"#" * 17_000_000)
    with pytest.raises(SpecError, match="larger than"):
        read_prices(file)
