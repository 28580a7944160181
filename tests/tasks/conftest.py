"""Print the number of comparisons with published definitions at the end of `make published`."""

from __future__ import annotations

import os

import pytest
from tests.tasks.published import COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each test that compares answers."""
    compared = {test: count for test, count in COUNTS.items() if not test.startswith("test_published.py")}
    if not compared or "AIGO_FUZZ_EXAMPLES" not in os.environ:
        return
    terminalreporter.section("answers compared with published definitions")
    terminalreporter.write_line(f"{'pairs':>8}{'different':>11}{'no answer':>11}  test")
    for test, count in compared.items():
        terminalreporter.write_line(f"{count.pairs:>8}{count.different:>11}{count.unanswered:>11}  {test}")
