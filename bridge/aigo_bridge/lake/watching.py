"""What arrives at some places, looked for again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from aigo_bridge.errors import UsageError
from aigo_bridge.lake.pieces import Piece, pieces_at
from aigo_bridge.storage.addresses import is_address


@dataclass
class Arrivals:
    """Files that are new, or have changed, since they were given out."""

    locations: Sequence[str]
    _given: dict[str, tuple[int, float, str]] = field(default_factory=dict)
    _growing: dict[str, tuple[int, float, str]] = field(default_factory=dict)

    def look(self) -> list[Piece]:
        """Those that are whole: in a storage each is; of this machine one that has not changed since it was
        last looked at.

        Raises:
            StorageError: a storage cannot be listed.
        """
        arrived: list[Piece] = []
        for piece in self._pieces():
            now = (piece.size, piece.modified, piece.mark)
            if self._given.get(piece.location) == now:
                continue
            if not is_address(piece.location) and self._growing.get(piece.location) != now:
                self._growing[piece.location] = now
                continue
            self._growing.pop(piece.location, None)
            self._given[piece.location] = now
            arrived.append(piece)
        return arrived

    def _pieces(self) -> Iterator[Piece]:
        for location in self.locations:
            try:
                yield from pieces_at([location])
            except UsageError:  # nothing is there yet
                continue


def watch(
    locations: Sequence[str],
    every: float,
    take: Callable[[list[Piece]], None],
    *,
    rest: Callable[[float], None] = time.sleep,
) -> None:
    """Give out what arrives, until somebody stops it.

    Args:
        locations: places; there may be nothing yet.
        every: seconds between two looks.
        take: is given what has arrived.
        rest: waits.
    """
    arrivals = Arrivals(locations)
    while True:
        arrived = arrivals.look()
        if arrived:
            take(arrived)
        rest(every)
