"""The documentation as a site that needs no network: `python -m tools.site [FOLDER]`.

Pages are those of the repository, at their places, so that a link is right in both. What describes code is
made from it: the command line, the public functions. `llms.txt` lists all pages, `llms-full.txt` holds them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).parent / "zensical.toml"
TARGET = ROOT / "out" / "site"
TOP = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
FOLDERS = ("docs", "examples/capitals")
_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
"""A block of code with the file that it stands for."""
_SHIM = re.compile(r'<script src="https://[^"]*iframe-worker[^>]*></script>')
"""Lets older browsers search from `file://`; it would be fetched."""


def main() -> int:
    """Build the site; the exit code of the generator."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    build(target)
    sys.stdout.write(f"{target / 'html' / 'index.html'}\n")
    return 0


def build(target: Path) -> Path:
    """Write pages and site into a folder of their own; the folder of the site.

    Raises:
        subprocess.CalledProcessError: a link leads nowhere, or a page cannot be built.
    """
    shutil.rmtree(target, ignore_errors=True)
    pages = target / "pages"
    pages.mkdir(parents=True)
    for name in TOP:
        shutil.copy(ROOT / name, pages)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, pages / name)
    for page in pages.rglob("*.md"):
        page.write_text(_FENCE.sub(r'```\1 title="\2"', page.read_text("utf-8")), "utf-8")
    (pages / "reference").mkdir()
    (pages / "reference" / "cli.md").write_text(command_line(), "utf-8")
    (pages / "reference" / "api.md").write_text(public_functions(), "utf-8")
    shutil.copy(CONFIG, target)
    for sources in ("bridge", "adapters", "extras"):
        (target / sources).symlink_to(ROOT / sources)
    # Its cache is not where it is told by `--clean`, so every build has a folder of its own.
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", CONFIG.name]
    subprocess.run(command, cwd=target, check=True)
    site = target / "html"
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        page.write_text(_SHIM.sub("", text), "utf-8")
    listed = [*titles(pages)]
    (site / "llms.txt").write_text(index(listed), "utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(text for _, _, text in listed), "utf-8")
    return site


def titles(pages: Path) -> Iterator[tuple[str, str, str]]:
    """Name, title and text of each page, in the order of the navigation."""
    for section in tomllib.loads(CONFIG.read_text("utf-8"))["project"]["nav"]:
        for names in section.values():
            for name in names:
                text = (pages / name).read_text("utf-8")
                yield name, text.partition("\n")[0].removeprefix("# "), text


def index(listed: list[tuple[str, str, str]]) -> str:
    """The text of `llms.txt` (llmstxt.org): a title, a summary, a list of links."""
    summary = tomllib.loads(CONFIG.read_text("utf-8"))["project"]["site_description"]
    lines = [
        f"- [{title}]({name.removesuffix('.md').replace('README', 'index')}.html)"
        for name, title, _ in listed
    ]
    return "\n".join(["# aigo-bridge", "", f"> {summary}", "", "## Pages", "", *lines, ""])


def command_line() -> str:
    """Every verb with its arguments and options, as `--help` has them."""
    from typer.main import get_command

    from aigo_bridge.cli import VERBS, app

    group: Any = get_command(app)
    parts = ["# Command line", "Made from the code; `aigo-bridge VERB --help` says the same."]
    context = group.context_class(group, info_name="aigo-bridge")
    for verb in VERBS:
        command = group.get_command(context, verb)
        parts += _verb(command, command.context_class(command, info_name=verb, parent=context))
    return "\n\n".join(parts) + "\n"


def _verb(command: Any, context: Any) -> Iterator[str]:
    yield f"## {context.info_name}"
    yield f"`{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}`"
    if command.help:
        yield _escaped(command.help)
    rows = [row for parameter in command.params if (row := _parameter(parameter, context))]
    if rows:
        yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def _parameter(parameter: Any, context: Any) -> str | None:
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, meaning = record
    return f"| `{names}` | {_escaped(meaning)} |"


def _escaped(text: str) -> str:
    """Help as Markdown, in which nothing but code between backticks stands for something else."""
    paragraphs = (" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))
    return "\n\n".join(
        "".join(
            part if part.startswith("`") else re.sub(r"([*_|\[\]])", r"\\\1", part.replace("<", "&lt;"))
            for part in re.split(r"(`[^`]*`)", paragraph)
        )
        for paragraph in paragraphs
    )


def public_functions() -> str:
    """The names of `aigo_bridge.__all__`, for mkdocstrings."""
    import aigo_bridge

    names = [name for name in aigo_bridge.__all__ if not name.startswith("_")]
    parts = [f"::: aigo_bridge.{name}" for name in names]
    return "\n\n".join(["# Functions and types", "`from aigo_bridge import …`", *parts]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
