"""Environment that wrote a result: packages, platform, command line and git state of the task folder."""

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

from aigo_bridge.process import DISTRIBUTION
from aigo_bridge.redaction.rules import redaction
from aigo_bridge.redaction.secrets import MASK, SECRET_NAMES, redact
from aigo_bridge.version import __version__

_NAME = re.compile(r"[\w.-]+")
_FOR_TESTS = re.compile(r"""extra\s*==\s*["']test["']""")
_GIT_SECONDS = 5.0
_HARMLESS_SECTIONS = re.compile(r'(core|remote ".*"|branch ".*"|user|init|gc|pull|push|fetch|submodule ".*")')
_HARMFUL_KEYS = frozenset({"fsmonitor", "hookspath", "sshcommand", "worktree", "gitproxy", "attributesfile"})
"""Keys of the `core` section that start programs or redirect git to other files."""


def environment() -> dict[str, Any]:
    """Return the packages and the platform of this process."""
    return {
        "bridge": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "packages": _packages(),
    }


@cache
def _packages() -> dict[str, str]:
    """Return the installed version of each declared dependency of aigo-bridge."""
    import importlib.metadata

    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return {}  # running from source, without an installed package
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
    """Return the command line of this process without secrets; `None` if it is not an aigo-bridge command."""
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
    """Return the commit of the repository that contains a folder, and whether tracked files were changed.

    The change flag is `None` if unknown. The result is `None` outside a repository or without git. The
    configuration of an untrusted repository can make git start programs. Git is therefore called only if the
    configuration starts nothing.
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
    """Return whether the repository's configuration contains only harmless sections."""
    place = root / ".git"
    try:
        if place.is_file():  # a git worktree
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
    """Return the output of a git command; `None` if it fails."""
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
