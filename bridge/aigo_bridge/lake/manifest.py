"""What a lake says it holds: a log's entry, a compaction's base, and the state that they add up to.

The state is a function of the entries that are there, in whatever order they came: of the results of one run
the better one counts, and the others do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.lake.layout import KEYS, MANIFEST, base_name, entry_name, part_name
from aigo_bridge.lake.stores import Store
from aigo_bridge.storage.mirrored import named

_TRIES = 5


class DataFile(msgspec.Struct, frozen=True):
    """A Parquet file."""

    table: str
    name: str
    rows: int
    size: int


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A result of a log."""

    key: str
    """Digest of the log and number of the result in it: the column `log`."""
    run_id: str
    task: str | None
    model: str | None
    status: str
    samples: int
    failed: int
    started_at: str | None
    ended_at: str | None
    suffix: str
    """Ends the name of the result log that it is written as."""
    files: tuple[DataFile, ...] = ()
    """Its own; in a base: none, where it was compacted."""

    @property
    def rank(self) -> tuple[int, int, str, str]:
        """Of two results of one run the greater counts: the one with more samples without an error, then with
        more samples, then the one that ended later; of equal ones either, but everywhere the same.
        """
        return self.samples - self.failed, self.samples, self.ended_at or "", self.key

    @property
    def run(self) -> tuple[str, str | None, str | None]:
        """What there is one result of."""
        return self.run_id, self.task, self.model

    @property
    def run_name(self) -> str:
        """`run` as one text."""
        return "\0".join(part or "" for part in self.run)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A log that is committed."""

    digest: str
    location: str
    mark: str
    """Changes with the content, where a storage says so; else `""`."""
    status: str
    results: tuple[Result, ...]
    damage: tuple[str, ...] = ()
    lost: int = 0
    """Things that the import dropped."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """Files that hold the rows of many results of one task and model."""

    task: str | None
    model: str | None
    keys: tuple[str, ...]
    files: tuple[DataFile, ...]


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction: everything that was committed until then."""

    number: int
    entries: tuple[Entry, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Selection:
    """Which partitions of a lake are meant; `None`: all."""

    task: str | None = None
    model: str | None = None
    run: str | None = None

    def has(self, result: Result) -> bool:
        """Whether a result is meant."""
        return all(
            wanted is None or wanted == part_name(value)
            for wanted, value in (
                (self.task, result.task),
                (self.model, result.model),
                (self.run, result.run_id),
            )
        )

    @property
    def path(self) -> str:
        """As it is written behind a lake."""
        parts = zip(KEYS, (self.task, self.model, self.run), strict=True)
        return "".join(f"/{key}={value}" for key, value in parts if value is not None)


@dataclass(frozen=True)
class Source:
    """A data file, and which of its results count."""

    file: DataFile
    task: str | None
    model: str | None
    keys: frozenset[str]
    """Of results in it that are meant."""
    others: frozenset[str] = frozenset()
    """Of all others in it."""

    @property
    def is_whole(self) -> bool:
        """Whether all that it has is meant."""
        return not self.others


@dataclass(frozen=True)
class State:
    """What a lake holds."""

    number: int
    """Of the newest compaction; 0: there was none."""
    entries: Mapping[str, Entry]
    """Digest → log."""
    cells: tuple[Cell, ...]
    uncompacted: frozenset[str]
    """Digests of logs since that compaction."""
    leftover: tuple[str, ...] = ()
    """Names in the manifest that count no more."""
    counting: Mapping[str, Result] = field(default_factory=dict)
    """Key → result, of those that count; by task, model and run."""

    @property
    def superseded(self) -> list[Result]:
        """Results that an improved log has replaced."""
        return [
            result
            for entry in self.entries.values()
            for result in entry.results
            if result.key not in self.counting
        ]

    def results(self, selection: Selection | None = None) -> list[Result]:
        """The results that count, and are meant."""
        selection = selection or Selection()
        return [result for result in self.counting.values() if selection.has(result)]

    def sources(self, table: str, selection: Selection | None = None) -> Iterator[Source]:
        """The files of a table that hold rows of the results that are meant."""
        meant = {result.key: result for result in self.results(selection)}
        for cell in self.cells:
            keys = frozenset(cell.keys) & meant.keys()
            for file in cell.files if keys else ():
                if file.table == table:
                    yield Source(file, cell.task, cell.model, keys, frozenset(cell.keys) - keys)
        for result in meant.values():
            for file in result.files:
                if file.table == table:
                    yield Source(file, result.task, result.model, frozenset((result.key,)))

    @property
    def files(self) -> set[str]:
        """Names of all data files that belong to it, those of superseded results left out."""
        own = {file.name for result in self.counting.values() for file in result.files}
        return own | {file.name for cell in self.cells for file in cell.files}


def load_state(store: Store) -> State:
    """What a lake holds at this moment.

    Raises:
        EvidenceError: its manifest is damaged.
        StorageError: it cannot be read.
    """
    for _ in range(_TRIES):
        names = store.names(MANIFEST)
        bases = sorted(name for name in names if name.startswith(f"{MANIFEST}/base-"))
        logs = [name for name in names if name.startswith(f"{MANIFEST}/log-")]
        contents = store.read([*bases[-1:], *logs])
        if len(contents) == len(bases[-1:]) + len(logs):
            return _state(store, contents, bases, logs)
        # A compaction has come between the listing and the reading.
    raise EvidenceError(
        [
            Issue(
                "its manifest changes again and again while it is read",
                file=str(store),
                code=Code.CHANGED_SINCE,
            )
        ]
    )


def _state(store: Store, contents: Mapping[str, bytes], bases: Sequence[str], logs: Sequence[str]) -> State:
    base = Base(number=0, entries=(), cells=())
    if bases:
        base = _decoded(store, bases[-1], contents[bases[-1]], Base)
    entries = {entry.digest: entry for entry in base.entries}
    leftover, fresh = list(bases[:-1]), set[str]()
    for name in logs:
        entry = _decoded(store, name, contents[name], Entry)
        if entry.digest in entries:
            leftover.append(name)
        else:
            entries[entry.digest] = entry
            fresh.add(entry.digest)
    best: dict[tuple[str, str | None, str | None], Result] = {}
    for entry in entries.values():
        for result in entry.results:
            other = best.get(result.run)
            if other is None or other.rank < result.rank:
                best[result.run] = result
    ordered = sorted(best.values(), key=lambda one: (one.task or "", one.model or "", one.run_id))
    counting = {result.key: result for result in ordered}
    return State(base.number, entries, base.cells, frozenset(fresh), tuple(leftover), counting)


def _decoded(store: Store, name: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        place = f"{named(str(store))}/{name}"
        raise EvidenceError(
            [
                Issue(
                    f"found no entry of a manifest: {error}",
                    file=place,
                    hint="it was cut off, or changed",
                    code=Code.DAMAGED_RESULT,
                )
            ]
        ) from error


def commit_log(store: Store, entry: Entry) -> None:
    """Have a log be part of a lake from one moment to the next; its files are there.

    Raises:
        StorageError: it cannot be written.
    """
    with store.new(entry_name(entry.digest), clean=True) as file:
        file.write(msgspec.json.encode(entry) + b"\n")


def commit_base(store: Store, base: Base) -> None:
    """Have a compaction take the place of what it holds.

    Raises:
        StorageError: it cannot be written.
    """
    with store.new(base_name(base.number), clean=True) as file:
        file.write(msgspec.json.encode(base) + b"\n")


def without_files(entry: Entry) -> Entry:
    """An entry whose results were compacted."""
    return replace_results(entry, tuple(_bare(result) for result in entry.results))


def replace_results(entry: Entry, results: tuple[Result, ...]) -> Entry:
    """An entry with other results."""
    return msgspec.structs.replace(entry, results=results)


def _bare(result: Result) -> Result:
    return msgspec.structs.replace(result, files=())
