"""Reader of a page who types its commands in one shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.forked import BIN, finished
from tests.support.shells import exchange

_STEP = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A fenced block: its kind, the file that it shows, its text."""

_PLAIN = re.compile(
    r"(?P<words>(?:aigo-bridge|inspect eval) (?:[^][|&;<>()$`\\\\*?~#{}!\"']|'[^']*')*?)(?: > (?P<file>[\w.]+))?"
)
"""A command of this project in whose words a shell would change nothing, and the file that its output goes to."""

_OF_ENVIRONMENTS = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PS1")
"""Variables that activating an environment sets, for shells."""

_LASTING = ("source ", "export ")
"""Commands that change the shell, and so everything that is typed later."""


class Reader:
    """Reader with a shell in a folder."""

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
        self._forked = {**os.environ, **env} if activated else None
        self._env = {**os.environ, **env, "PATH": path + os.pathsep.join(outside)}
        self._elsewhere = elsewhere or {}
        self._lasting: list[str] = []
        self._has_typed = False
        """Whether a command of this project was typed; later ones are forked."""

    def run(self, command: str) -> str:
        """Return the output of a command that must succeed."""
        for text, own in self._elsewhere.items():
            command = command.replace(text, own)
        if command.startswith(_LASTING):
            self._lasting.append(command)
        plain = _PLAIN.fullmatch(command)
        if plain is not None and self._forked is not None and not self._lasting:
            done = finished(shlex.split(plain["words"]), cwd=self._folder, env=self._forked)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
            if plain["file"] is None:
                return done.stdout
            (self._folder / plain["file"]).write_text(done.stdout, encoding="utf-8")
            return ""
        lines = ["set -eo pipefail", *self._lasting]
        with exchange(*_OF_ENVIRONMENTS) as commands:
            if self._forked is not None or (plain is not None and self._has_typed):
                # Where nothing was activated beforehand, that the shell finds the command of this environment.
                lines += [f'test "$(command -v aigo-bridge)" -ef {shlex.quote(str(BIN / "aigo-bridge"))}']
                lines += [f'PATH="{commands}:$PATH"']
            self._has_typed |= plain is not None
            done = subprocess.run(
                ["bash", "-c", "\n".join([*lines, command])],
                cwd=self._folder,
                env=self._env,
                capture_output=True,
                text=True,
                timeout=120,
            )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout

    def python(self, code: str) -> str:
        """Return the output of a program."""
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
    """Return lines without the padding of tables."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def type_in(text: str, reader: Reader, folder: Path, *, task: Path | None = None) -> int:
    """Do as a page says: write each file that it shows, type each command, and see what it prints.

    Args:
        text: the page.
        reader: who types.
        folder: where files are written.
        task: the file whose scorers a block of YAML without a name replaces.

    Returns: how many commands there were.
    """
    number = 0
    for kind, file, body in _STEP.findall(text):
        if file:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(body)
        elif kind == "yaml":
            assert task is not None
            head, scorers, _ = task.read_text().partition("  scorers:\n")
            assert scorers
            task.write_text(head + body)
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
            assert _timeless(reader.run(command)) == _timeless(shown), command
            number += 1
    return number


def _timeless(text: str) -> list[str]:
    """Return the output without values that differ in every run."""
    lines = [line for line in text.splitlines() if not line.startswith(("seconds per sample", "native log"))]
    return squeezed("\n".join(lines))
