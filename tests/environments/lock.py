"""The environment of the tests with the digest of every file: `make lock` writes `requirements.lock`, `make locked` installs it.

Versions are chosen in `constraints.txt`; this file adds what that one cannot say: which files those versions are, so that an index cannot
give others. It is for Linux and Python 3.11, where CI runs. Torch has no digest: which build of it a machine has, depends on its processors.
"""

from __future__ import annotations

import os
import sys

from tests.environments.installing import KNOWN, REPOSITORY, Tools, call, pip_settings, uv_settings
from tests.environments.oldest import MADE_FROM, made_from

LOCK = REPOSITORY / "requirements.lock"
EXTRAS = (
    "parquet",
    "lake",
    "huggingface",
    "lighteval",
    "stats",
    "xlsx",
    "plot",
    "sql",
    "attest",
    "sigstore",
    "lsp",
    "s3",
    "hf",
    "ray",
    "test",
)
"""`test`, and those that it brings."""
UNHASHED = "torch"


def write(tools: Tools) -> None:
    """Find the files of the versions that are known to work together.

    Raises:
        RuntimeError: there is no uv, and pip writes no digests.
        CommandError: the versions of `constraints.txt` do not answer the requirements.
    """
    if tools.uv is None:
        raise RuntimeError("digests are written by uv, which cannot be had here")
    variables = {**os.environ, **uv_settings(pip_settings(tools.pip))}
    form = [
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--no-emit-find-links",
    ]
    scope = ["--python", sys.executable, "--extra", "test", "--no-emit-package", UNHASHED]
    project_file = REPOSITORY / "pyproject.toml"
    command = [tools.uv, "pip", "compile", "--quiet", *form, *scope, "--constraint", KNOWN, project_file]
    head = [
        "# The files of constraints.txt's versions; made by `make lock`, installed by `make locked`.",
        *_head(),
    ]
    LOCK.write_text("\n".join([*head, call(command, env=variables)]))


def _head() -> list[str]:
    return [line for line in made_from(EXTRAS) if not line.startswith(f"{MADE_FROM}aigo-bridge")]


def versions(text: str) -> dict[str, str]:
    """Return the version by package of a requirements file, with normalized names."""
    pairs = (line.split()[0].partition("==") for line in text.splitlines() if "==" in line.partition(" ")[0])
    return {name.partition("[")[0].lower().replace("_", "-"): version for name, _, version in pairs}


def problems() -> list[str]:
    """Return why the file does not match the current requirements and versions."""
    if not LOCK.is_file():
        return [f"there is no {LOCK.name}"]
    text = LOCK.read_text("utf-8")
    chosen = versions(KNOWN.read_text("utf-8"))
    head = [line for line in text.splitlines() if line.startswith(MADE_FROM)]
    return [
        *(["made from other requirements than those of pyproject.toml"] if head != _head() else []),
        *(
            f"{name}: {version} here, {chosen[name]} in {KNOWN.name}"
            for name, version in versions(text).items()
            if name in chosen and chosen[name] != version
        ),
    ]
