"""The wheel, and clean virtual environments that have it: by uv where it can be had (seconds), else by pip (minutes).

Indexes and wheels come from where pip is set up to take them.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
PLUGIN = REPOSITORY / "tests" / "support" / "plugin"
KNOWN = REPOSITORY / "constraints.txt"
"""The versions that are known to work together."""

_UV = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
}
"""pip's setting → uv's environment variable, and what stands between its values."""


class CommandError(Exception):
    """A command failed; the message contains its output."""


@dataclass(frozen=True)
class Environment:
    """Definition of an environment."""

    name: str
    extras: tuple[str, ...] = ()
    constraints: Path = KNOWN
    python: str = sys.executable
    editable: bool = False
    """Whether it is made by `make install`, as the README says, in place of a wheel."""
    plugin: bool = False
    """Whether the example plug-in is also installed, as a wheel."""

    @property
    def has(self) -> frozenset[str]:
        """Return the extras whose packages are installed, including those of other extras."""
        brought = {"parquet", "huggingface", "openai", "stats"} if "lighteval" in self.extras else set()
        return frozenset({*self.extras, *brought, *(("plugin",) if self.plugin else ())})


@dataclass(frozen=True)
class Tools:
    """Tools for making environments."""

    wheel: Path
    plugin: Path
    """Wheel of the example plug-in."""
    pip: Path
    uv: Path | None
    """`None` where it cannot be had."""

    def make(self, environment: Environment, folder: Path) -> Path:
        """Make an environment; returns its folder of commands.

        Raises:
            CommandError: it cannot be installed.
        """
        if environment.editable:
            return _editable(environment, folder)
        extras = f"[{','.join(environment.extras)}]" if environment.extras else ""
        wanted = [
            f"aigo-bridge{extras} @ {self.wheel.as_uri()}",
            *([self.plugin] if environment.plugin else []),
        ]
        python = folder / "bin" / "python"
        if self.uv is None:
            call([environment.python, "-m", "venv", folder])
            call(
                [python, "-m", "pip", "install", "--quiet", "--constraint", environment.constraints, *wanted]
            )
        else:
            variables = {**os.environ, **uv_settings(pip_settings(self.pip))}
            call([self.uv, "venv", "--quiet", "--python", environment.python, folder], env=variables)
            fixed = ["--constraint", environment.constraints]
            call([self.uv, "pip", "install", "--quiet", "--python", python, *fixed, *wanted], env=variables)
        return folder / "bin"


def tools(folder: Path, *, with_uv: bool = True) -> Tools:
    """Build the wheel and find uv in a temporary folder."""
    call([sys.executable, "-m", "venv", folder / "tools"])
    pip = folder / "tools" / "bin" / "pip"
    wheel, plugin = (
        _wheel(pip, source, folder / name) for name, source in (("wheel", REPOSITORY), ("plugin", PLUGIN))
    )
    uv: Path | None = None
    if with_uv:
        try:
            call([pip, "install", "--quiet", "uv"])
            uv = pip.with_name("uv")
        except CommandError:
            print("uv cannot be had; pip takes minutes for what it does in seconds", flush=True)
    return Tools(wheel, plugin, pip, uv)


def _wheel(pip: Path, source: Path, folder: Path) -> Path:
    call([pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source])
    (wheel,) = folder.glob("*.whl")
    return wheel


def _editable(environment: Environment, folder: Path) -> Path:
    """Return a copy of the tracked files, installed by its own Makefile."""
    copy = folder / "checkout"
    copy.mkdir(parents=True)
    listed = call(["git", "-C", REPOSITORY, "ls-files", "--cached", "--others", "--exclude-standard", "-z"])
    for name in filter(None, listed.split("\0")):
        if (source := REPOSITORY / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(source.read_bytes())
    # Called by a Makefile itself, maybe: its variables are not for this one.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    wanted = [f"EXTRAS={','.join(environment.extras)}", f"PYTHON={environment.python}"]
    call(["make", "-C", copy, "install", *wanted], env=clean)
    return copy / ".venv" / "bin"


def pip_settings(pip: Path) -> dict[str, list[str]]:
    """Return pip's package sources by setting; environment variables come before files."""
    found: dict[str, list[str]] = {}
    lines = call([pip, "config", "list"]).splitlines()
    for line in sorted(lines, key=lambda line: (line.startswith(":env:"), line.startswith("install."))):
        name, _, value = line.partition("=")
        section, _, setting = name.rpartition(".")
        if section in ("global", "install", ":env:") and setting in _UV:
            found[setting] = str(ast.literal_eval(value)).split()
    return found


def uv_settings(settings: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the same sources as environment variables of uv, which also takes the best version of all indexes."""
    variables = {_UV[name][0]: _UV[name][1].join(values) for name, values in settings.items() if values}
    return {**variables, "UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}


def project() -> dict[str, Any]:
    """Return the table `project` of pyproject.toml."""
    loaded: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return loaded


def call(command: Sequence[object], env: Mapping[str, str] | None = None) -> str:
    """Run a command that has to work; returns what it printed.

    Raises:
        CommandError: it failed.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-3000:]
        raise CommandError(f"{' '.join(words)}: exit code {done.returncode}\n{said}")
    return done.stdout
