"""Compatible releases of lighteval and its dependencies, checked without importing them.

lighteval 0.13 can be installed together with releases that break it. For example, it imports `xxhash` without
declaring it, and `huggingface_hub` 2 has removed an argument that its task files use. pyarrow is only checked
when details are read.
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
"""First unsupported release. The adapter supports releases from `OLDEST` up to this one, exclusive."""

PACKAGES = ("lighteval", "torch", "transformers", "datasets", "pyarrow", "huggingface_hub", "xxhash")
"""Packages that a run needs, in display order."""


@dataclass(frozen=True)
class Problem:
    """Incompatible or missing package."""

    message: str
    remedy: str
    """Command that fixes the problem."""
    fatal: bool = True
    """Whether runs of this adapter fail. Otherwise only lighteval's own commands fail."""

    def __str__(self) -> str:
        return f"{self.message}; run: {self.remedy}"


@dataclass(frozen=True)
class _Rule:
    package: str
    below: tuple[int, ...]
    consequence: str
    fatal: bool


_RULES: Sequence[_Rule] = (
    _Rule("xxhash", (4,), "lighteval passes text to it, which this version no longer accepts", True),
    _Rule(
        "huggingface_hub",
        (2,),
        "lighteval's own commands and built-in tasks use an argument that this version no longer has",
        False,
    ),
)


def installed_versions() -> dict[str, str | None]:
    """Return the release of every package that a run needs; `None` if it is not installed."""
    return {package: _version(package) for package in PACKAGES}


def problems(versions: Mapping[str, str | None] | None = None) -> list[Problem]:
    """Return the problems that keep lighteval from working; empty if it works.

    Args:
        versions: releases by package; `None`: the installed ones.
    """
    versions = installed_versions() if versions is None else versions
    lighteval = versions.get("lighteval")
    if lighteval is None:
        return [Problem("lighteval is not installed", _command())]
    faults: list[Problem] = []
    if not OLDEST <= numbers(lighteval) < BEYOND:
        wanted = f"{_dotted(OLDEST)} or later, before {_dotted(BEYOND)}"
        faults.append(
            Problem(f"lighteval {lighteval} is not supported, this release needs {wanted}", _command())
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
    """Check that lighteval can run.

    Raises:
        MissingEngineError: it cannot run. The message contains the command that fixes it.
    """
    fatal = [problem for problem in problems() if problem.fatal]
    if fatal:
        raise MissingEngineError("; ".join(str(problem) for problem in fatal))


def prepare_imports(setenv: Callable[[str, str], object] = os.environ.setdefault) -> None:
    """Set environment variables that lighteval reads when it is imported, unless the user has set them.

    Without a `git` executable, lighteval's logging module cannot be imported. An installed litellm would
    download prices.
    """
    setenv("GIT_PYTHON_REFRESH", "quiet")
    setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    setenv("TOKENIZERS_PARALLELISM", "false")


def numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a release: `0.13.1.dev0` → (0, 13, 1)."""
    leading: list[int] = []
    for part in version.split("+", 1)[0].split("."):
        if not part.isdigit():
            break
        leading.append(int(part))
    return tuple(leading)


def _command() -> str:
    """Return the command that installs lighteval and its dependencies."""
    return install_command("lighteval") or pip_install(f"lighteval>={_dotted(OLDEST)},<{_dotted(BEYOND)}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def require_parquet(location: str) -> None:
    """Check that pyarrow is installed, which reads details.

    Raises:
        MissingEngineError: it is not installed. The message contains the install command.
    """
    try:
        importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingEngineError(
            f"{location!r}: lighteval details are Parquet files, and pyarrow is not installed;"
            f" run: {install_command('parquet')}"
        ) from error
