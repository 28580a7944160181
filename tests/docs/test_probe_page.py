"""`docs/guides/test-a-scorer.md`: commands print the shown output, and the table matches the code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page

from aigo_trust.probing.registry import PERTURBATIONS
from aigo_trust.verbs.probes import EXPECTED

PAGE = page(REPOSITORY / "docs" / "guides" / "test-a-scorer.md")


@pytest.mark.timeout(600)
def test_commands_print_the_shown_output(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    reader = Reader(tmp_path)
    commands = [command for block in PAGE.blocks if block.kind == "console" for command in block.commands]

    for command, shown in commands:
        assert squeezed(reader.run(command)) == squeezed(shown), command
    assert len(commands) == 2


def test_table_matches_the_code() -> None:
    rows = [
        f"| `{each.name}` | {each.does}{' (judges only)' if each.judges_only else ''} | {EXPECTED[each.expectation]} |"
        for each in PERTURBATIONS
    ]
    table = "\n".join(["| name | change | expected |", "|---|---|---|", *rows])
    assert table in (REPOSITORY / "docs" / "guides" / "test-a-scorer.md").read_text("utf-8"), table
