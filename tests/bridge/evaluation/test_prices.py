"""Price files: entries are looked up in order, and every error has a position."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    assert [line for line, _ in issues] == [1, 1, 4, 3, 3, 5, 5, 5, 6, 6, 6] or {
        line for line, _ in issues
    } == {1, 3, 4, 5, 6}
    assert (1, "'curency' is unknown; expected currency, models") in issues
    assert (4, "'a' is in the table twice") in issues
    assert (3, "'output': found '-1', expected a price per million tokens (a number of at least 0)") in issues
    assert (
        6,
        "'output': found nothing, expected a price per million tokens (a number of at least 0)",
    ) in issues


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
    with pytest.raises(SpecError, match="cannot be read"):
        read_prices(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="not UTF-8"):
        read_prices(file)
    file.write_bytes(b"#" * 1_000_001)
    with pytest.raises(SpecError, match="at most"):
        read_prices(file)
