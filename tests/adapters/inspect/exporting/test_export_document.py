"""docs/export.md is executed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.commands import REPOSITORY

DOCUMENT = (REPOSITORY / "docs" / "export.md").read_text()
COMMANDS = [
    (command, expected)
    for block in re.findall(r"^```console\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
    for command, expected in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


def test_commands_work_as_shown(tmp_path: Path) -> None:
    """One after the other, as a reader would."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    for command, expected in COMMANDS:
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path, "INSPECT_DISPLAY": "none"},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert done.stdout.startswith(expected), command

    assert len(COMMANDS) == 5
    assert len(list((tmp_path / "evidence").glob("*.tasklog.json"))) == 1
    assert len(list((tmp_path / "logs-for-you").glob("*.eval"))) == 1
