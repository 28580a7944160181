"""What wrote a result: packages, platform, the state of the task's repository, the command line."""

from __future__ import annotations

import configparser
import os
import platform
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from aigo_bridge.importing.redaction import redaction
from aigo_bridge.process import DISTRIBUTION
from aigo_bridge.redaction.secrets import MASK, SECRET_NAMES, redact
from aigo_bridge.version import __version__

_NAME = re.compile(r"[\w.-]+")
_FOR_TESTS = re.compile(r"""extra\s*==\s*["']test["']""")
_GIT_SECONDS = 5.0
_HARMLESS_SECTIONS = re.compile(r'(core|remote ".*"|branch ".*"|user|init|gc|pull|push|fetch|submodule ".*")')
_HARMFUL_KEYS = frozenset({"fsmonitor", "hookspath", "sshcommand", "worktree", "gitproxy", "attributesfile"})
"""Of `core`: they start programs, or have git look elsewhere."""


def environment() -> dict[str, Any]:
    """What this process is made of."""
    return {
        "bridge": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "packages": _packages(),
    }


@cache
def _packages() -> dict[str, str]:
    """Version of each package that aigo-bridge is declared to use, as far as it is installed."""
    import importlib.metadata

    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}  # the source alone, without an installation
    names = {
        match[0]
        for line in requirements
        if (match := _NAME.match(line)) is not None and not _FOR_TESTS.search(line)
    }
    versions: dict[str, str] = {}
    for name in sorted(names - {DISTRIBUTION}):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def command_line() -> list[str] | None:
    """The command that this process was started with, without what is secret; `None`: it is no command of
    ours.
    """
    program = Path(sys.argv[0]).name if sys.argv else ""
    if not (program.startswith("aigo-bridge") or sys.argv[0].endswith("aigo_bridge/__main__.py")):
        return None
    secrets = redaction(())
    words: list[str] = ["aigo-bridge"]
    for word in sys.argv[1:]:
        name, equals, value = word.partition("=")
        if equals and value and SECRET_NAMES.search(name.lstrip("-")):
            words.append(f"{name}={MASK}")
        else:
            words.append(secrets.text(redact(word)))
    return words


def repository_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the repository that a folder is in, and whether files of the folder that git knows differ
    from it (`None`: not known); `None`: it is in none, or there is no git.

    Git does what the configuration of a repository says, and a repository may be a stranger's: it is asked
    only where that configuration starts nothing.
    """
    root = _repository(folder)
    if root is None:
        return None
    return _state(root, folder.resolve())


def _repository(folder: Path) -> Path | None:
    folder = folder.resolve()
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


@cache
def _state(root: Path, folder: Path) -> dict[str, Any] | None:
    git = shutil.which("git")
    if git is None or not _starts_nothing(root):
        return None
    commit = _asked(git, root, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    changes = _asked(git, root, "status", "--porcelain", "--untracked-files=no", "--", str(folder))
    return {"commit": commit.strip(), "dirty": None if changes is None else bool(changes.strip())}


def _starts_nothing(root: Path) -> bool:
    """Whether the repository's own configuration has nothing but harmless sections."""
    place = root / ".git"
    try:
        if place.is_file():  # a worktree
            place = (root / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
            common = place / "commondir"
            if common.is_file():
                place = (place / common.read_text(encoding="utf-8").strip()).resolve()
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True, interpolation=None)
        parser.read_string((place / "config").read_text(encoding="utf-8"))
    except (OSError, ValueError, configparser.Error):
        return False
    return all(_HARMLESS_SECTIONS.fullmatch(section) for section in parser.sections()) and not (
        parser.has_section("core") and _HARMFUL_KEYS & set(parser.options("core"))
    )


def _asked(git: str, root: Path, *arguments: str) -> str | None:
    """What git says; `None` where it fails."""
    try:
        done = subprocess.run(
            [git, "-C", str(root), "-c", "core.fsmonitor=false", "--no-optional-locks", *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout if done.returncode == 0 else None
