"""Commands that tests run, and paths of their inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from tests.support.plugins import hide_benchmarks

REPOSITORY = Path(__file__).resolve().parents[2]
TASKS = REPOSITORY / "tasks" / "aigo_tasks"
hide_benchmarks()
ENVIRONMENT = dict(os.environ)
"""That of the tests, before any of them or what they load has changed it."""


@dataclass(frozen=True)
class Finished:
    """Finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the output as JSON."""
        return orjson.loads(self.out)


Run = Callable[..., Finished]
"""Runs a command: `aigo("run", …)` in this process, `command("aigo-bridge", "run", …)` in one of its own."""


def called(*args: object) -> Finished:
    """Return the outcome of `aigo-bridge` in this process."""
    from typer.testing import CliRunner

    from aigo_bridge.cli import app

    result = CliRunner().invoke(app, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Finished(result.exit_code, result.stdout, result.stderr)
