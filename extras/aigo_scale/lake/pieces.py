"""Log files for an import, listed by name and size only, and logs that arrive later."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.access.file_kinds import BESIDE_RESULTS, LOG_SUFFIXES, expanded
from aigo_bridge.access.object_addresses import is_address, parse
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.results.sources import (
    is_result,
    linked_sources,
    names_results,
    require_result,
    sources_of,
)

MOST_TOGETHER, MOST_BYTES = 16, 4 << 20
"""Maximum number and total bytes of small logs that one call imports. A larger log is imported alone."""


@dataclass(frozen=True)
class LogCandidate:
    """File that may be a log."""

    location: str
    """Path or address for messages."""
    size: int
    mark: str
    """Version of the content in the storage; empty if unknown."""
    modified: float
    named: bool
    """Whether the user named the file itself. In that case it must be a log."""
    result: str | None = None
    """Name of a result that a run file links, for example `export/run.yaml#quiz`."""

    @property
    def name(self) -> str:
        """Return the name of the log in the lake."""
        return self.location if self.result is None else self.result


def pieces_at(locations: Iterable[str]) -> list[LogCandidate]:
    """Return the files with log names at some locations, without duplicates.

    Raises:
        UsageError: a location is empty.
        StorageError: a storage cannot be listed.
    """
    pieces: dict[str, LogCandidate] = {}
    for location in locations:
        found = list(_remote(location) if is_address(location) else _local(location))
        if not found:
            raise UsageError(
                f"no logs at {location!r} (expected files *.eval, *.json or *.tasklog.jsonl; the "
                "last two also as .gz and .zst)",
                code=Code.NO_LOGS,
            )
        for piece in found:
            pieces.setdefault(piece.location, piece)
    return list(pieces.values())


def _local(location: str) -> Iterator[LogCandidate]:
    if names_results(location):
        for source in sources_of([location]):
            if source.path is not None:
                require_result(source)
                yield _file(str(source.path), named=True, result=source.label)
        return
    for place in expanded(location):
        if not os.path.isdir(place):  # noqa: PTH112  # keep names as the user wrote them
            if Path(place).is_file() and (place == location or _may_be_log(Path(place).name)):
                yield _file(place, named=place == location)
            continue
        linked: dict[str, str] = {}
        for folder, folders, names in os.walk(place):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for source in linked_sources(Path(folder)):
                linked.setdefault(os.path.realpath(str(source.path)), source.label)
            for path in (os.path.join(folder, name) for name in sorted(names)):  # noqa: PTH118  # keep names as the user wrote them
                result = linked.get(os.path.realpath(path)) if linked else None
                if result is not None or _may_be_log(os.path.basename(path)):  # noqa: PTH119  # keep names as the user wrote them
                    yield _file(path, result=result)


def _file(path: str, *, named: bool = False, result: str | None = None) -> LogCandidate:
    status = os.stat(path)  # noqa: PTH116  # keep names as the user wrote them
    return LogCandidate(path, status.st_size, "", status.st_mtime, named, result)


def _remote(location: str) -> Iterator[LogCandidate]:
    from aigo_scale.storage.objects import find, look

    address = parse(location)
    one = None if address.is_pattern else look(address)
    for stored in find(address) if one is None else [one]:
        if one is not None or _may_be_log(stored.key.rpartition("/")[2]):
            place = f"{address.scheme.name}://{stored.key}"
            yield LogCandidate(place, stored.size, stored.mark, stored.modified, one is not None)


def _may_be_log(name: str) -> bool:
    if name.startswith(".") or name.endswith(BESIDE_RESULTS):
        return False
    return name.endswith(LOG_SUFFIXES) or is_result(name)


def together(pieces: Sequence[LogCandidate], jobs: int) -> list[tuple[LogCandidate, ...]]:
    """Group small files, so that few calls are needed but every process has work until the end."""
    groups: list[tuple[LogCandidate, ...]] = []
    group: list[LogCandidate] = []
    size = 0
    for number, piece in enumerate(pieces):
        # The last groups are small, so that all processes end at about the same time.
        most = max(1, min(MOST_TOGETHER, (len(pieces) - number + len(group)) // (4 * jobs)))
        if group and (len(group) >= most or size + piece.size > MOST_BYTES):
            groups.append(tuple(group))
            group, size = [], 0
        group.append(piece)
        size += piece.size
    return [*groups, tuple(group)] if group else groups


def not_known(pieces: Iterable[LogCandidate], known: Collection[tuple[str, str]]) -> list[LogCandidate]:
    """Return the files, except files that are unchanged according to the storage.

    Args:
        pieces: all files.
        known: locations and versions that a lake already has.
    """
    return [piece for piece in pieces if not piece.mark or (piece.location, piece.mark) not in known]


# Arrivals


@dataclass
class Arrivals:
    """Watcher for new or changed files."""

    locations: Sequence[str]
    _given: dict[str, tuple[int, float, str]] = field(default_factory=dict)
    _growing: dict[str, tuple[int, float, str]] = field(default_factory=dict)

    def look(self) -> list[LogCandidate]:
        """Return complete new files: objects in a storage, and local files that are unchanged since the last
        look.

        Raises:
            StorageError: a storage cannot be listed.
        """
        arrived: list[LogCandidate] = []
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

    def _pieces(self) -> Iterator[LogCandidate]:
        for location in self.locations:
            try:
                yield from pieces_at([location])
            except UsageError:  # the location is still empty
                continue


def watch(
    locations: Sequence[str],
    every: float,
    take: Callable[[list[LogCandidate]], None],
    *,
    rest: Callable[[float], None] = time.sleep,
) -> None:
    """Pass on arriving files until the process is stopped.

    Args:
        locations: paths and addresses, which may be empty at first.
        every: seconds between two looks.
        take: callback for new files.
        rest: function that waits.
    """
    arrivals = Arrivals(locations)
    while True:
        arrived = arrivals.look()
        if arrived:
            take(arrived)
        rest(every)
