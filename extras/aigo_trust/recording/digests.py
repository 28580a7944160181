"""Digests of the lines of a cassette: one SHA-256 for each plan and one checksum for each line.

The checksums locate a modified line. A provenance file contains the digests of the cassette that the run was
recorded in or answered from.
"""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

FIELDS = ("run", "call", "lost")
"""Kinds of lines that belong to a plan. The head and end lines belong to the file."""


def task_of_line(line: Mapping[str, Any]) -> str | None:
    """Return the name of the plan that a line belongs to; `None` for a line of the file."""
    for field in FIELDS:
        place = line.get(field)
        if isinstance(place, Mapping):
            task = place.get("task")
            return task if isinstance(task, str) else None
    return None


class LineDigests:
    """Digests of the lines of a cassette, in order and grouped by plan. Each line uses four bytes of
    memory.
    """

    def __init__(self) -> None:
        self._digests: dict[str, Any] = {}
        self._checksums: dict[str, array[int]] = {}

    def add(self, task: str, content: bytes, checksum: int | None = None) -> None:
        """Add a line of a plan.

        Args:
            task: name of the plan.
            content: JSON bytes of the line, as written in the file.
            checksum: CRC-32 of the line; `None` to compute it.
        """
        digest = self._digests.get(task)
        if digest is None:
            digest = self._digests[task] = hashlib.sha256()
            self._checksums[task] = array("I")
        digest.update(content + b"\n")
        self._checksums[task].append(zlib.crc32(content) if checksum is None else checksum)

    def tasks(self) -> list[str]:
        """Return the names of all plans with lines."""
        return list(self._digests)

    def checksums(self, task: str) -> list[int]:
        """Return the checksums of all lines of a plan."""
        return list(self._checksums.get(task, ()))

    def sha256(self, task: str) -> str:
        """Return the SHA-256 of a plan's lines, each followed by a line feed."""
        digest = self._digests.get(task)
        return (hashlib.sha256() if digest is None else digest).hexdigest()

    def to_json(self, tasks: Iterable[str]) -> list[dict[str, Any]]:
        """Return plain data for a provenance file. Checksums are hexadecimal, with eight digits for each
        line.
        """
        return [
            {
                "name": task,
                "lines": len(self._checksums.get(task, ())),
                "sha256": self.sha256(task),
                "checksums": "".join(f"{checksum:08x}" for checksum in self.checksums(task)),
            }
            for task in tasks
        ]
