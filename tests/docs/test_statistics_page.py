"""`docs/reference/statistics.md`: commands print the shown output, and the coverage is that of the benchmark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from benchmarks.coverage import scenarios
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page

PAGE = page(REPOSITORY / "docs" / "reference" / "statistics.md")
COVERAGE = REPOSITORY / "benchmarks" / "coverage.md"


def timeless(text: str) -> list[str]:
    """Return the text without the line that differs in every run."""
    lines = [line for line in text.splitlines() if not line.startswith("seconds per sample")]
    return squeezed("\n".join(lines))


@pytest.mark.timeout(400)
def test_commands_print_the_shown_output(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    reader = Reader(tmp_path)
    commands = [command for block in PAGE.blocks if block.kind == "console" for command in block.commands]

    for command, shown in commands:
        assert timeless(reader.run(command)) == timeless(shown), command
    assert len(commands) == 7


def test_table_has_the_benchmark_rows_and_the_promised_coverage() -> None:
    table = {}
    for line in COVERAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[1].endswith("%"):
            name = re.sub(r" \([\d.]+% without an interval\)$", "", cells[0])
            table[name.removesuffix(" \\*")] = float(cells[1].rstrip("%"))
    promised = [table[scenario.name] for scenario in scenarios() if scenario.promised]
    others = sorted(table[scenario.name] for scenario in scenarios() if not scenario.promised)

    assert set(table) == {scenario.name for scenario in scenarios()}
    assert [coverage for coverage in promised if not 93.5 <= coverage <= 96.5] == []
    for text in (
        f"of {len(table)} kinds of evaluations",
        f"For {len(promised)} kinds,",
        f"{min(promised)} to {max(promised)} % were measured",
        f"({others[0]} to {max(each for each in others if each < 95)} %)",
        f"({min(each for each in others if each > 95)} to {others[-1]} %)",
    ):
        assert text in PAGE.text, text
