"""An entry of the catalogue as a text in Markdown, for the terminal and the pages."""

from __future__ import annotations

from collections.abc import Iterator

from aigo_bridge.catalogue.entry import Entry, Example

SHOWN = 400
"""Characters of a file that are shown."""


def page(entry: Entry, said: str | None = None) -> str:
    """What is said of a code.

    Args:
        entry: the code's.
        said: what the example's command says; `None`: it is not shown.
    """
    parts = [f"# {entry.code}: {entry.title}", entry.meaning, f"**What to do:** {entry.remedy}"]
    if entry.example is not None:
        parts += ["## Example", *_example(entry.example)]
        command = f"$ aigo-bridge {entry.example.command}"
        parts.append(f"```console\n{command}\n{'' if said is None else said.rstrip() + chr(10)}```")
    return "\n\n".join(parts) + "\n"


def _example(example: Example) -> Iterator[str]:
    if example.right is not None:
        yield f"In the folder [examples/capitals](../../examples/capitals), with a change of `{example.file}`:"
        yield f"```diff\n{_marked('-', example.right)}{_marked('+', example.wrong)}```"
    elif not example.files:
        yield "In the folder [examples/capitals](../../examples/capitals):"
    for name, text in example.files.items():
        source = text.removeprefix("COPY ")
        if source != text:
            yield f"With a copy of `{source}` as `{name}`:"
        else:
            yield f"With a file `{name}`:"
            yield f"```text\n{text.encode('unicode_escape').decode() if not text.isascii() else text}```"


def _marked(sign: str, text: str) -> str:
    return "".join(f"{sign} {line}\n" for line in text.strip("\n").split("\n") if line)
