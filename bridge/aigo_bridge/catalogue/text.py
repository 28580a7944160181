"""Markdown text of a catalogue entry, for the terminal and the docs."""

from __future__ import annotations

from collections.abc import Iterator

from aigo_bridge.catalogue.entry import CatalogueEntry, Example

SHOWN = 400
"""Maximum number of file characters in an example."""


def page(entry: CatalogueEntry, said: str | None = None) -> str:
    """Return the page of an error code, with the output of the example command unless it is `None`."""
    parts = [f"# {entry.code}: {entry.title}", entry.meaning, f"**Fix:** {entry.remedy}"]
    if entry.example is not None:
        parts += ["## Example", *_example(entry.example)]
        command = f"$ aigo-bridge {entry.example.command}"
        parts.append(f"```console\n{command}\n{'' if said is None else said.rstrip() + chr(10)}```")
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> Iterator[str]:
    if example.right is not None:
        yield f"In [examples/capitals](../../examples/capitals), change `{example.file}`:"
        yield f"```diff\n{_marked('-', example.right)}{_marked('+', example.wrong)}```"
    elif not example.files:
        yield "In [examples/capitals](../../examples/capitals):"
    for name, text in example.files.items():
        source = text.removeprefix("COPY ")
        if source != text:
            yield f"Copy `{source}` to `{name}`:"
        else:
            yield f"Create `{name}`:"
            yield f"```text\n{text.encode('unicode_escape').decode() if not text.isascii() else text}```"


def _marked(sign: str, text: str) -> str:
    return "".join(f"{sign} {line}\n" for line in text.strip("\n").split("\n") if line)
