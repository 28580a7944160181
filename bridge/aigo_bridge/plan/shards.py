"""Shards: a plan's rows in N parts that follow each other, each run by a process of its own.

Which rows a shard has follows from their number alone, so that machines need not talk to each other. The plan
stays the whole one, with its digest, its ids and its order: a shard is a selection of its rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

MOST_SHARDS = 100_000
"""Each has a folder of its own."""

_WRITTEN = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """One part of a plan's rows."""

    number: int
    """From 1."""
    of: int
    """Number of parts."""

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """Name of the folder that has what became of it; names sort as the shards do."""
        return f"shard-{self.number:0{len(str(self.of))}}-of-{self.of}"

    def bounds(self, total: int) -> tuple[int, int]:
        """First row, from 0, and the one behind the last; the sizes of shards differ by one at most, and
        where there are fewer rows than shards, some have none.
        """
        return total * (self.number - 1) // self.of, total * self.number // self.of


@dataclass(frozen=True)
class ShardRows:
    """The rows of a plan that a shard has."""

    shard: Shard
    total: int
    """Rows of the whole plan."""

    @property
    def bounds(self) -> tuple[int, int]:
        """See `Shard.bounds`."""
        return self.shard.bounds(self.total)

    def to_json(self) -> list[int]:
        """As it stands in a native log."""
        return [self.shard.number, self.shard.of, self.total]

    @staticmethod
    def from_json(stored: object) -> ShardRows | None:
        """Back from `to_json`; `None` stays that.

        Raises:
            ValueError: it is something else.
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
    """`3/16` as a shard.

    Raises:
        UsageError: the text is no shard.
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
