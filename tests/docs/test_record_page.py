"""`docs/guides/resume-cache-and-replay.md`: commands print the shown output."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page

PAGE = page(REPOSITORY / "docs" / "guides" / "resume-cache-and-replay.md")


def sized(text: str) -> list[str]:
    """Return lines without the last digit of the cassette size, which depends on call times."""
    return [re.sub(r"\(0\.[67] kB\)", "(0.7 kB)", line) for line in squeezed(text)]


@pytest.mark.xdist_group("lighteval")
@pytest.mark.timeout(400)
def test_commands_print_the_shown_output(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    (prices,) = [block for block in PAGE.blocks if block.kind.startswith("yaml")]
    (tmp_path / "prices.yaml").write_text(prices.text)
    reader = Reader(tmp_path)
    commands = [command for block in PAGE.blocks if block.kind == "console" for command in block.commands]

    for command, shown in commands:
        assert sized(reader.run(command)) == sized(shown), command
    assert len(commands) == 8
