"""Build the documentation site, which needs no network: `python -m tools.site [FOLDER]`.

Pages keep their places in the repository, so that links work in both. The navigation is the list of pages
in docs/README.md. The command line and the public functions are written from the code. `llms.txt` lists all
pages, `llms-full.txt` contains them. A page that has moved keeps its old address (docs/redirects.json).
"""

from __future__ import annotations

import itertools
import json
import os.path
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).parent / "zensical.toml"
TARGET = ROOT / "out" / "site"
HOME = "docs/README.md"
TOP = ("ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE")
FOLDERS = ("docs", "examples/capitals")
GENERATED = {"Programs and settings": ["reference/cli.md", "reference/api.md"]}
"""Group of the navigation → pages that are written from the code."""
_FENCE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
"""Start of a code block that names the file of its text."""
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_GROUP = re.compile(r"^### ([^\n]*)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+\.md)(?:#[^)]*)?\)")
_SHIM = re.compile(r'<script src="https://[^"]*iframe-worker[^>]*></script>')
"""Script for searching from `file://` in older browsers; it would be downloaded."""
_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<title>{target}</title>
<link rel="canonical" href="{target}">
<meta http-equiv="refresh" content="0; url={target}">
<script>location.replace("{target}" + location.hash)</script>
<a href="{target}">This page has moved.</a>
"""


def main() -> int:
    """Build the site and return the exit code."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    build(target)
    sys.stdout.write(f"{target / 'html' / 'index.html'}\n")
    return 0


def build(target: Path) -> Path:
    """Write the pages and the site into a new folder, and return the folder of the site.

    Raises:
        subprocess.CalledProcessError: a link is broken, or a page cannot be built.
    """
    shutil.rmtree(target, ignore_errors=True)
    pages = target / "pages"
    _write_pages(pages)
    settings = CONFIG.read_text("utf-8").replace(
        "[project]\n", f"[project]\nnav = {_toml(navigation())}\n", 1
    )
    (target / CONFIG.name).write_text(settings, "utf-8")
    for sources in ("bridge", "adapters", "extras"):
        (target / sources).symlink_to(ROOT / sources)
    # `--clean` misses the cache, so every build has its own folder.
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", CONFIG.name]
    subprocess.run(command, cwd=target, check=True)
    site = target / "html"
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        page.write_text(_SHIM.sub("", text), "utf-8")
    for old, new in redirects().items():
        place = site / old
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_REDIRECT.format(target=new), "utf-8")
    listed = [*titles(pages)]
    (site / "llms.txt").write_text(index(listed), "utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(text for _, _, text in listed), "utf-8")
    return site


def _write_pages(pages: Path) -> None:
    pages.mkdir(parents=True)
    # Builders expect a page here; its address redirects to the home page.
    (pages / "README.md").write_text(f"# aigo-bridge\n\n[Documentation]({HOME})\n", "utf-8")
    for name in TOP:
        shutil.copy(ROOT / name, pages)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, pages / name)
    for page in pages.rglob("*.md"):
        page.write_text(_FENCE.sub(r'```\1 title="\2"', page.read_text("utf-8")), "utf-8")
    (pages / "reference").mkdir()
    (pages / "reference" / "cli.md").write_text(command_line(), "utf-8")
    (pages / "reference" / "api.md").write_text(public_functions(), "utf-8")


def navigation() -> dict[str, dict[str, list[str]]]:
    """Return section → group → pages of docs/README.md, as paths in the repository, without repetitions.

    Pages of a section that are in no group are in the group `""`.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    seen = {HOME}
    for title, text in _SECTION.findall((ROOT / HOME).read_text("utf-8")):
        groups = sections[title] = {"": [] if sections else [HOME]}
        for group, links in _GROUP.findall(f"### \n{text}"):
            pages = (os.path.normpath(f"docs/{link}") for link in _LINK.findall(links) if "://" not in link)
            new = [page for page in dict.fromkeys(pages) if page not in seen]
            seen.update(new)
            groups[group] = groups.get(group, []) + new + GENERATED.get(group, [])
    return sections


def _toml(sections: dict[str, dict[str, list[str]]]) -> str:
    def tables(names: Iterable[str]) -> str:
        return f"[{', '.join(names)}]"

    return tables(
        f"{{{json.dumps(title)} = "
        + tables(
            text
            for group, pages in groups.items()
            for text in (
                map(json.dumps, pages)
                if not group
                else [f"{{{json.dumps(group)} = {tables(map(json.dumps, pages))}}}"]
            )
        )
        + "}"
        for title, groups in sections.items()
    )


def redirects() -> dict[str, str]:
    """Return the old addresses of the site, each with the relative address of the page that replaces it."""
    moved: dict[str, str] = json.loads((ROOT / "docs" / "redirects.json").read_text("utf-8"))
    addresses = {}
    for old, new in {"README.md": HOME, **moved}.items():
        page, hash_, anchor = new.partition("#")
        folder = PurePosixPath(address(old)).parent
        addresses[address(old)] = os.path.relpath(address(page), folder) + hash_ + anchor
    return addresses


def address(page: str) -> str:
    """Return the address of a page on the site."""
    return re.sub(r"README\.md$", "index.md", page).removesuffix(".md") + ".html"


def titles(pages: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, title and text of each page, in the order of the navigation."""
    for groups in navigation().values():
        for name in itertools.chain.from_iterable(groups.values()):
            text = (pages / name).read_text("utf-8")
            yield name, text.partition("\n")[0].removeprefix("# "), text


def index(listed: list[tuple[str, str, str]]) -> str:
    """Return the text of `llms.txt` (llmstxt.org): a title, a summary, a list of links."""
    summary = tomllib.loads(CONFIG.read_text("utf-8"))["project"]["site_description"]
    lines = [f"- [{title}]({address(name)})" for name, title, _ in listed]
    return "\n".join(["# aigo-bridge", "", f"> {summary}", "", "## Pages", "", *lines, ""])


def command_line() -> str:
    """Return every command with its arguments and options, as `--help` shows them."""
    from typer.main import get_command

    from aigo_bridge.cli import VERBS, app

    group: Any = get_command(app)
    parts = ["# Command line", "Written from the code. `aigo-bridge COMMAND --help` prints the same text."]
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
    """Return help as Markdown, escaped except for code between backticks."""
    paragraphs = (" ".join(part.split()) for part in text.replace("\b", "").split("\n\n"))
    return "\n\n".join(
        "".join(
            part if part.startswith("`") else re.sub(r"([*_|\[\]])", r"\\\1", part.replace("<", "&lt;"))
            for part in re.split(r"(`[^`]*`)", paragraph)
        )
        for paragraph in paragraphs
    )


def public_functions() -> str:
    """Return the page of the names in `aigo_bridge.__all__`, for mkdocstrings."""
    import aigo_bridge

    names = [name for name in aigo_bridge.__all__ if not name.startswith("_")]
    parts = [f"::: aigo_bridge.{name}" for name in names]
    return "\n\n".join(["# Functions and types", "`from aigo_bridge import …`", *parts]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
