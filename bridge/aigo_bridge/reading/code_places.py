"""Where the author's code stands, so that errors in it name a file and a line to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aigo_bridge.reading.document import Document


def snippet_place(document: Document[Any], path: tuple[str | int, ...], code: str) -> tuple[str, int] | None:
    """File and first line (from 1) of the code under a path, or `None` when its lines are not those of a file.

    They are not in texts with escaped or folded line ends, and where a config value brought lines of its own. The file is named
    relative to the document's folder, by its name alone when it lies elsewhere: evidence tells nothing of the machine.

    Args:
        document: what was read.
        path: path in its data.
        code: what runs: the text under that path, config bound.
    """
    written = text_at(document.data, path)
    if written is None or code.count("\n") != written.count("\n") or document.is_hidden(path):
        return None
    place = document.locate(path, line=1)
    lines = written.split("\n")
    there = document.texts.get(place.file, "").split("\n")[place.line - 1 :]
    if len(lines) > len(there) or not all(map(_holds, there, lines)):
        return None
    return _short(place.file, document.file.parent), place.line


def _holds(line: str, code: str) -> bool:
    return code.strip() in line


def text_at(data: Any, path: tuple[str | int, ...]) -> str | None:
    """The text under a path; `None` where a config value stands for a whole part of the document."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data if isinstance(data, str) else None


def _short(file: str, folder: Path) -> str:
    relative = Path(os.path.relpath(file, folder))
    return relative.name if relative.parts[0] == ".." else relative.as_posix()
