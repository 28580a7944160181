"""What tells the lines of a cassette from any others: a digest for each plan, and a checksum for each line,
so that the place of an alteration has a name.

A provenance keeps them of the cassette that a run was recorded in, or was answered from.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

FIELDS = ("run", "call", "lost")
"""Kinds of lines that belong to a plan; those of head and end belong to the file."""


def task_of_line(line: Mapping[str, Any]) -> str | None:
    """The plan that a line belongs to; `None`: to none."""
    for field in FIELDS:
        place = line.get(field)
        if isinstance(place, Mapping):
            task = place.get("task")
            return task if isinstance(task, str) else None
    return None


class LineDigests:
    """The lines of a cassette, plan by plan, in their order: four bytes in memory for each."""

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}
        self._checksums: dict[str, array[int]] = {}

    def add(self, task: str, content: bytes, checksum: int | None = None) -> None:
        """Take in a line of a plan, JSON as it stands in the file.

        Args:
            task: the plan's name.
            content: the line.
            checksum: its CRC-32; `None`: not known yet.
        """
        digest = self._digests.get(task)
        if digest is None:
            digest = self._digests[task] = hashlib.sha256()
            self._checksums[task] = array("I")
        digest.update(content + b"\n")
        self._checksums[task].append(zlib.crc32(content) if checksum is None else checksum)

    def tasks(self) -> list[str]:
        """Names of all plans that it has lines of."""
        return list(self._digests)

    def checksums(self, task: str) -> list[int]:
        """The checksum of each line of a plan."""
        return list(self._checksums.get(task, ()))

    def sha256(self, task: str) -> str:
        """The digest of a plan's lines, each with a line feed behind it."""
        digest = self._digests.get(task)
        return (hashlib.sha256() if digest is None else digest).hexdigest()

    def to_json(self, tasks: Iterable[str]) -> list[dict[str, Any]]:
        """As a provenance has it; checksums as hexadecimal digits, eight for each line."""
        return [
            {
                "name": task,
                "lines": len(self._checksums.get(task, ())),
                "sha256": self.sha256(task),
                "checksums": "".join(f"{checksum:08x}" for checksum in self.checksums(task)),
            }
            for task in tasks
        ]
