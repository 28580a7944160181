"""docs/guides/export-a-task.md is executed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader

DOCUMENT = (REPOSITORY / "docs" / "guides" / "export-a-task.md").read_text()
COMMANDS = [
    (command, expected)
    for block in re.findall(r"^```console\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_commands_work_as_shown(tmp_path: Path) -> None:
    """One after the other, as a reader would."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    reader = Reader(tmp_path, INSPECT_DISPLAY="none")

    for command, expected in COMMANDS:
        assert reader.run(command).startswith(expected), command

    assert len(COMMANDS) == 5
    assert len(list((tmp_path / "evidence").glob("*.tasklog.json"))) == 1
    assert len(list((tmp_path / "logs-for-you").glob("*.eval"))) == 1
