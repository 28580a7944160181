"""Guides to viewing and querying results: commands print the shown output."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.forked import start
from tests.support.pages import page

GUIDES = REPOSITORY / "docs" / "guides"
PAGES = {GUIDES / "look-at-results.md": 6, GUIDES / "query-results-with-sql.md": 6}
"""Page → number of its commands."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_commands_print_the_shown_output(tmp_path: Path, path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    reader = Reader(tmp_path)
    commands = [
        command for block in page(path).blocks if block.kind == "console" for command in block.commands
    ]

    for command, shown in commands:
        if command.startswith("aigo-bridge view"):
            assert squeezed(served(command, tmp_path)) == squeezed(shown), command
        else:
            assert squeezed(reader.run(command)) == squeezed(shown), command
    assert len(commands) == PAGES[path]


def served(command: str, folder: Path) -> str:
    """Return the output of a server until it is stopped, with the port and token of the page."""
    with start(command.split(), cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    return re.sub(r":\d+/\?token=[\w-]{43}$", ":43121/?token=bV0…", "".join(lines), flags=re.MULTILINE)
