"""The oldest versions that pyproject.toml allows, as files: `make oldest` writes them, `make environments` installs them.

They are files so that CI installs the same today and tomorrow. Only the project's own requirements are old; what those need is new.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.environments.installing import FOLDER, KNOWN, Tools, call, pip_settings, project, uv_settings

FILES = {
    "oldest.txt": ("parquet", "huggingface", "openai", "anthropic", "stats"),
    # Apart, because lighteval asks for newer releases of some packages of the core.
    "oldest-lighteval.txt": ("parquet", "huggingface", "openai", "anthropic", "lighteval"),
}
"""File → the extras that it is for."""

MADE_FROM = "# for "


def write(tools: Tools) -> None:
    """Find the oldest versions and write the files.

    Raises:
        RuntimeError: there is no uv, and pip finds newest versions only.
        CommandError: no set of versions satisfies the bounds.
    """
    if tools.uv is None:
        raise RuntimeError("the oldest versions are found by uv, which cannot be had here")
    variables = {**os.environ, **uv_settings(pip_settings(tools.pip))}
    # The one release of torch whose plain wheel is for the CPU.
    torch = tools.wheel.parent / "torch.txt"
    torch.write_text(re.findall(r"^torch==.*$", KNOWN.read_text(), re.MULTILINE)[0])
    for name, extras in FILES.items():
        wanted = [word for extra in extras for word in ("--extra", extra)]
        how = ["--resolution", "lowest-direct", "--python-version", "3.11", "--no-header", "--no-annotate"]
        project_file = FOLDER.parents[1] / "pyproject.toml"
        found = call(
            [tools.uv, "pip", "compile", "--quiet", *how, "--constraint", torch, *wanted, project_file],
            env=variables,
        )
        # Which build of a release it is, depends on the machine.
        pins = re.sub(r"\+.*$", "", found, flags=re.MULTILINE)
        head = "# The oldest versions that pyproject.toml allows; made by `make oldest`.\n"
        (FOLDER / name).write_text(head + "".join(f"{line}\n" for line in made_from(extras)) + pins)


def made_from(extras: tuple[str, ...]) -> list[str]:
    """Return the requirements of a file as lines of its head."""
    declared = project()
    groups = [declared["dependencies"], *(declared["optional-dependencies"][extra] for extra in extras)]
    return [f"{MADE_FROM}{requirement}" for group in groups for requirement in group]


def outdated() -> list[Path]:
    """Return files that were made from other requirements."""
    return [
        FOLDER / name
        for name, extras in FILES.items()
        if not (FOLDER / name).is_file()
        or [line for line in (FOLDER / name).read_text().splitlines() if line.startswith(MADE_FROM)]
        != made_from(extras)
    ]
