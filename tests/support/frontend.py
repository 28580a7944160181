"""Parts of the front end from npm; tests that need them are skipped with a reason if they are missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY

FRONTEND = REPOSITORY / "frontend"
REQUIRED = os.environ.get("AIGO_FRONTEND") == "required"
"""Whether a test may not be skipped for want of them."""


def node() -> str:
    """Return the Node command if the parts are installed."""
    command = shutil.which("node")
    if command is None:
        _missing("there is no Node here")
    part("esbuild")
    return str(command)


def part(name: str) -> Path:
    """Return a file or folder installed by npm."""
    path = FRONTEND / "node_modules" / name
    if not path.exists():
        _missing(f"{name} is not installed: `make frontend` installs the parts of the page")
    return path


def _missing(reason: str) -> None:
    assert not REQUIRED, reason
    pytest.skip(reason)
