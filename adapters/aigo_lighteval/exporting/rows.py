"""The rows of an exported task as lighteval loads them: numbers, with what they were exported from.

lighteval loads rows with a library that guesses types of columns, and that keeps a copy which it takes for current when the file has changed.
So rows are numbers of samples, and each says of which export.
"""

from __future__ import annotations

import json
from pathlib import Path

from aigo_bridge.exporting.manifest import Manifest

FOLDER = "rows"
SPLIT = "test"
EXAMPLES = "train"
"""Split of the examples: lighteval takes the first ones of it, in order."""


def write_numbers(folder: Path, manifest: Manifest, num_examples: int) -> None:
    """Write the rows of an export and of its examples."""
    place = folder / FOLDER
    place.mkdir()
    for split, number in ((SPLIT, manifest.num_samples), (EXAMPLES, num_examples)):
        if number or split == SPLIT:
            lines = (json.dumps({"sample": row, "export": mark(manifest)}) + "\n" for row in range(number))
            (place / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")


def mark(manifest: Manifest) -> str:
    """What rows say of their export."""
    return manifest.digest[:16]


def version(digest: str) -> int:
    """A plan's version in lighteval, whose cache of answers goes by it."""
    return int(digest[:7], 16)
