"""Golden files on disk, and the description of a difference."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

GOLDENS = Path(__file__).parent / "goldens"

LARGE = 24_000
"""Longer texts are stored compressed."""

SHOWN = 400
"""Maximum number of characters shown from a line."""


def place(name: str, text: str | None = None) -> Path:
    """Return the path of a case's golden, present or for this text."""
    plain = GOLDENS / f"{name}.txt"
    packed = GOLDENS / f"{name}.txt.gz"
    if text is None:
        return packed if packed.exists() else plain
    return packed if len(text) > LARGE else plain


def load(name: str) -> str | None:
    """Return the golden of a case; `None` if there is none."""
    file = place(name)
    if not file.exists():
        return None
    content = file.read_bytes()
    return (gzip.decompress(content) if file.suffix == ".gz" else content).decode("utf-8")


def store(name: str, text: str) -> None:
    """Write a golden if its text changed."""
    if load(name) == text:
        return
    place(name).unlink(missing_ok=True)
    file = place(name, text)
    file.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode("utf-8")
    file.write_bytes(gzip.compress(content, mtime=0) if file.suffix == ".gz" else content)


def stored() -> set[str]:
    """Return the names of the cases that have a golden."""
    files = [path for path in GOLDENS.rglob("*.txt*") if path.is_file()]
    return {str(path.relative_to(GOLDENS)).removesuffix(".gz").removesuffix(".txt") for path in files}


def difference(expected: str, found: str) -> str:
    """Describe the first difference of two texts and the number of others; empty if they are equal."""
    if expected == found:
        return ""
    left, right = expected.split("\n"), found.split("\n")
    number = next(at for at, (one, other) in enumerate(zip_longest(left, right)) if one != other)
    one, other = (lines[number] if number < len(lines) else "(the end)" for lines in (left, right))
    column = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return "\n".join(
        [
            f"first difference: {_where(left, number)}, column {column + 1}",
            *(f"    {line[:SHOWN]}" for line in left[max(0, number - 3) : number]),
            f"  - {_around(one, column)}",
            f"  + {_around(other, column)}",
            *(f"    {line[:SHOWN]}" for line in right[number + 1 : number + 3]),
            *_others(expected, found),
        ]
    )


def _where(lines: list[str], number: int) -> str:
    """Return the file or command that contains a line, and the line number there."""
    for at in range(min(number, len(lines) - 1), -1, -1):
        if lines[at].startswith(("=== ", "$ ", "--- ")):
            command = next((line for line in reversed(lines[: at + 1]) if line.startswith("$ ")), "")
            of = f" of '{command}'" if lines[at].startswith("--- ") else ""
            return f"{lines[at]}{of}, line {number - at}"
    return f"line {number + 1}"


def _around(line: str, column: int) -> str:
    begin = max(0, column - SHOWN // 2)
    return ("…" if begin else "") + line[begin : begin + SHOWN] + ("…" if len(line) > begin + SHOWN else "")


def _sections(text: str) -> dict[str, str]:
    parts = ("\n" + text).split("\n=== ")
    files = {name: rest for name, _, rest in (part.partition("\n") for part in parts[1:])}
    return {"what the commands print": parts[0], **files}


def _others(expected: str, found: str) -> Iterator[str]:
    """Return the names of changed, missing and new files."""
    left, right = _sections(expected), _sections(found)
    for name in {**left, **right}:
        if left.get(name) != right.get(name):
            state = "missing" if name not in right else "new" if name not in left else "differs"
            yield f"  {state}: {name}"
