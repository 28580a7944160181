"""Shards: N consecutive parts of the rows of a plan, each run by a separate process.

The rows of a shard follow from its number alone, so machines need not communicate. The plan keeps its
digest, its ids and its order; a shard only selects rows from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

MOST_SHARDS = 100_000
"""Maximum number of shards. Each shard has a separate folder."""

_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """Part of the rows of a plan."""

    number: int
    """Number of the shard, from 1."""
    of: int
    """Total number of shards."""

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """Name of the folder for the results of the shard. Names sort in the same order as the shards."""
        return f"shard-{self.number:0{len(str(self.of))}}-of-{self.of}"

    def bounds(self, total: int) -> tuple[int, int]:
        """Return the number of the first row, from 0, and the number after the last row. Shard sizes differ
        by at most one; with fewer rows than shards, some shards are empty.
        """
        return total * (self.number - 1) // self.of, total * self.number // self.of


@dataclass(frozen=True)
class ShardRows:
    """Rows of a plan that belong to a shard."""

    shard: Shard
    total: int
    """Number of rows in the whole plan."""

    @property
    def bounds(self) -> tuple[int, int]:
        """Bounds of the shard (see `Shard.bounds`)."""
        return self.shard.bounds(self.total)

    def to_json(self) -> list[int]:
        """Return the shard in the form of a native log."""
        return [self.shard.number, self.shard.of, self.total]

    @staticmethod
    def from_json(stored: object) -> ShardRows | None:
        """Convert the output of `to_json` into shard rows; `None` stays `None`.

        Raises:
            ValueError: the value has another form.
        """
        if stored is None:
            return None
        if not isinstance(stored, list) or len(stored) != 3 or not all(type(part) is int for part in stored):
            raise ValueError(f"its shard is {stored!r:.80}")
        number, of, total = stored
        if not (1 <= number <= of <= MOST_SHARDS and total >= 0):
            raise ValueError(f"its shard is {stored!r:.80}")
        return ShardRows(Shard(number, of), total)


def parse_shard(text: str) -> Shard:
    """Convert a text such as `3/16` into a shard.

    Raises:
        UsageError: the text does not describe a shard.
    """
    match = _WRITTEN.fullmatch(text)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of <= MOST_SHARDS:
        most = f", and at most {MOST_SHARDS:,} shards" if of > MOST_SHARDS else ""
        raise UsageError(
            f"--shard: found {text!r}, expected K/N with K from 1 to N{most}, e.g. 3/16 for the third of 16",
            code=Code.WRONG_OPTION,
        )
    return Shard(number, of)
