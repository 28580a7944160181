"""Releases of lighteval, and of what it leans on, that work together; found out without importing any of
them.

lighteval 0.13 installs cleanly beside releases with which it then fails: `xxhash` is imported but not
declared, and an argument that its task files use is gone from `huggingface_hub` 2. pyarrow, which reads
details, is asked for when there are details to be read, and not earlier.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aigo_bridge.errors import MissingEngineError
from aigo_bridge.process import install_command, pip_install

OLDEST = (0, 13)
BEYOND = (0, 14)
"""Releases from `OLDEST` on, before `BEYOND`, are the ones that this adapter was written for."""

PACKAGES = ("lighteval", "torch", "transformers", "datasets", "pyarrow", "huggingface_hub", "xxhash")
"""What a run needs; the order in which they are shown."""


@dataclass(frozen=True)
class Problem:
    """An installed release that does not work, or a package that is missing."""

    message: str
    remedy: str
    """The command that mends it."""
    fatal: bool = True
    """Whether runs of this adapter fail; else only lighteval's own commands do."""

    def __str__(self) -> str:
        return f"{self.message}; run: {self.remedy}"


@dataclass(frozen=True)
class _Rule:
    package: str
    below: tuple[int, ...]
    consequence: str
    fatal: bool


_RULES: Sequence[_Rule] = (
    _Rule("xxhash", (4,), "lighteval hashes texts, which it no longer takes", True),
    _Rule(
        "huggingface_hub",
        (2,),
        "lighteval's own commands and built-in tasks use an argument that it no longer has",
        False,
    ),
)


def installed_versions() -> dict[str, str | None]:
    """Release of every package that a run needs; `None` for those that are not installed."""
    return {package: _version(package) for package in PACKAGES}


def problems(versions: Mapping[str, str | None] | None = None) -> list[Problem]:
    """What keeps lighteval from working here; empty when nothing does.

    Args:
        versions: package → release; `None`: the installed ones.
    """
    versions = installed_versions() if versions is None else versions
    lighteval = versions.get("lighteval")
    if lighteval is None:
        return [Problem("lighteval is not installed", _command())]
    faults: list[Problem] = []
    if not OLDEST <= numbers(lighteval) < BEYOND:
        wanted = f"{_dotted(OLDEST)} or later, before {_dotted(BEYOND)}"
        faults.append(
            Problem(f"lighteval {lighteval} does not suit, this release needs {wanted}", _command())
        )
    for rule in _RULES:
        version = versions.get(rule.package)
        if version is not None and numbers(version) >= rule.below:
            remedy = pip_install(f"{rule.package}<{_dotted(rule.below)}")
            faults.append(Problem(f"{rule.package} {version}: {rule.consequence}", remedy, fatal=rule.fatal))
    missing = [package for package in PACKAGES if package in versions and versions[package] is None]
    if missing:
        faults.append(Problem(f"{', '.join(missing)} not installed", _command()))
    return faults


def require() -> None:
    """Make sure that runs can work.

    Raises:
        MissingEngineError: they cannot; the message has the command that mends it.
    """
    fatal = [problem for problem in problems() if problem.fatal]
    if fatal:
        raise MissingEngineError("; ".join(str(problem) for problem in fatal))


def prepare_imports(setenv: Callable[[str, str], object] = os.environ.setdefault) -> None:
    """Set what lighteval reads from the environment while it is imported, unless the user has set it.

    Without a `git` executable its logging could not be imported, and litellm, where it is installed, would
    ask the network for prices.
    """
    setenv("GIT_PYTHON_REFRESH", "quiet")
    setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    setenv("TOKENIZERS_PARALLELISM", "false")


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a release: `0.13.1.dev0` → (0, 13, 1)."""
    leading: list[int] = []
    for part in version.split("+", 1)[0].split("."):
        if not part.isdigit():
            break
        leading.append(int(part))
    return tuple(leading)


def _command() -> str:
    """The command that installs lighteval with what it needs beside it."""
    return install_command("lighteval") or pip_install(f"lighteval>={_dotted(OLDEST)},<{_dotted(BEYOND)}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def require_parquet(location: str) -> None:
    """Make sure that details can be read.

    Raises:
        MissingEngineError: they cannot; the message has the command that mends it.
    """
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingEngineError(
            f"{location!r}: details of lighteval are Parquet files, and pyarrow is not installed;"
            f" run: {install_command('parquet')}"
        ) from error
