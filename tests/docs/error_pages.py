"""Generate the error pages from the catalogue and the output of its examples.

python -m tests.docs.error_pages          writes the pages
python -m tests.docs.error_pages --check  checks that the pages are current
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from tests.support.commands import REPOSITORY
from tests.support.forked import finished
from typer.testing import CliRunner

from aigo_bridge.catalogue import CATALOGUE, FAMILIES, CatalogueEntry, family_of
from aigo_bridge.catalogue.text import page
from aigo_bridge.cli import app

DOCS = REPOSITORY / "docs"
PROJECT = REPOSITORY / "examples" / "capitals"
RUN = "run task.yaml --model scripted/answers.jsonl"
_MOST_LINES = 8
_CHANGING = re.compile(r"\d{4}-\d\d-\d\dT[\w-]+|(?<=digest )[0-9a-f]{12,}")
"""Times and the like, which differ from run to run."""


def base(folder: Path) -> Path:
    """Copy `examples/capitals` and its result into the folder that examples change."""
    project = folder / "capitals"
    shutil.copytree(PROJECT, project)
    run = project / "run.yaml"
    run.write_text(
        run.read_text("utf-8")
        .replace("scripted/examples/capitals/", "scripted/")
        .replace("examples-capitals-", "")
    )
    text = said(project, f"{RUN} --out ../out")
    assert "4 of 4 samples scored" in text, text
    shutil.copy(folder / "out" / "capitals.tasklog.json", project / "result.tasklog.json")
    return project


def made(entry: CatalogueEntry, project: Path, folder: Path) -> Path:
    """Apply the mistake of an entry in its own folder."""
    example = entry.example
    assert example is not None
    place = folder / entry.code.lower() / "capitals"
    shutil.copytree(project, place)
    (place.parent / "pyproject.toml").write_text("")
    for name, text in example.files.items():
        target = place / name
        target.parent.mkdir(parents=True, exist_ok=True)
        kind, _, source = text.partition(" ")
        target.write_text((project / source).read_text("utf-8") if kind == "COPY" else text, "utf-8")
    if example.right is not None:
        file = place / example.file
        text = file.read_text("utf-8")
        assert text.count(example.right) >= 1, (entry.code, example.right)
        file.write_text(text.replace(example.right, example.wrong, 1), "utf-8")
    return place


def said(place: Path, command: str) -> str:
    """Run a command in this process, which does not load lighteval for it, and return both output streams."""
    if "lighteval" in command:
        done = finished(["aigo-bridge", *shlex.split(command)], cwd=place)
        return done.stdout + done.stderr
    with chdir(place):
        result = CliRunner().invoke(app, shlex.split(command))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def output(entry: CatalogueEntry, place: Path) -> str:
    """Return the output of the example without folder names."""
    assert entry.example is not None
    text = said(place, entry.example.command).replace(f"{place}{os.sep}", "").replace(str(place), ".")
    text = text.replace(str(place.parent), "..")
    return _CHANGING.sub("…", text)


def part(entry: CatalogueEntry, text: str) -> str:
    """Return the paragraph with the code; for a run it is one line."""
    for paragraph in text.split("\n\n"):
        if f"[{entry.code}]" in paragraph:
            lines = paragraph.rstrip().split("\n")
            if len(lines) > _MOST_LINES:
                lines = [line for line in lines if f"[{entry.code}]" in line]
            return "\n".join(lines)
    return f"the output lacks {entry.code}:\n{text}"


def pages(folder: Path) -> Iterator[tuple[Path, str]]:
    """Return every page with its text."""
    project = base(folder)
    for entry in CATALOGUE.values():
        shown = None if entry.example is None else part(entry, output(entry, made(entry, project, folder)))
        yield DOCS / "errors" / f"{entry.code}.md", page(entry, shown)
    yield DOCS / "errors.md", index()


def index() -> str:
    """Return the page that lists all codes."""
    parts = [HEAD]
    for family in FAMILIES.values():
        rows = [
            f"| [{entry.code}](errors/{entry.code}.md) | {entry.title} |"
            for entry in sorted(CATALOGUE.values(), key=lambda entry: entry.code)
            if family_of(entry.code) == family
        ]
        parts += [f"## {family}", "\n".join(["| code | error |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


HEAD = """# Errors

Every error and warning ends with a code such as `[AB116]`. You can search for the code, because it stays the same when the wording of a message changes.

Programs can also rely on it. You find the code in:

- `code` in the output of `validate --format json`,
- the title of GitHub annotations,
- the diagnostics of the language server,
- `error.code` in Python.

To read an explanation without network access, run:

```console
$ aigo-bridge error AB116
```

The examples start from `examples/capitals` and the result of its run, `result.tasklog.json`. The tests execute all of them.

Evidence records the errors of samples with an `error_type`. Summaries also show the code."""


def main() -> int:
    """Write the pages, or print the outdated ones."""
    is_check = "--check" in sys.argv
    stale = []
    with tempfile.TemporaryDirectory() as folder:
        for path, text in pages(Path(folder)):
            if not path.exists() or path.read_text("utf-8") != text:
                stale.append(path.name)
                if not is_check:
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text, "utf-8")
    sys.stdout.write(f"{'not current' if is_check else 'written'}: {', '.join(stale) or 'none'}\n")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
