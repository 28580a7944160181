"""What a reader of a page does: types its commands, one after the other, in one shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_LASTING = ("source ", "export ")
"""Commands that change the shell, and so everything that is typed later."""


class Reader:
    """Somebody with a shell in a folder."""

    def __init__(
        self, folder: Path, *, activated: bool = True, elsewhere: Mapping[str, str] | None = None, **env: str
    ):
        """Args:
        folder: where the commands are typed.
        activated: whether the commands of this environment are found, as after `source .venv/bin/activate`.
        elsewhere: texts of commands that mean something of the reader's own, such as the address of a server, and what he types instead.
        env: further variables.
        """
        self._folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}" if activated else ""
        outside = [
            each for each in os.environ["PATH"].split(os.pathsep) if each != str(Path(sys.executable).parent)
        ]
        self._env = {**os.environ, **env, "PATH": path + os.pathsep.join(outside)}
        self._elsewhere = elsewhere or {}
        self._lasting: list[str] = []

    def run(self, command: str) -> str:
        """What a command prints. It has to succeed."""
        for text, own in self._elsewhere.items():
            command = command.replace(text, own)
        if command.startswith(_LASTING):
            self._lasting.append(command)
        script = "\n".join(["set -eo pipefail", *self._lasting, command])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    def python(self, code: str) -> str:
        """What a program prints."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def squeezed(text: str) -> list[str]:
    """Lines without the padding of tables."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
