"""Samples in progress, which Inspect keeps in a database until they are written to the log.

```text
<user data>/inspect_ai/samplebuffer/<sha256 of the folder's URL>/<name of the log>.<process>.db
```

The database is opened read-only. Source of the layout: Inspect AI, `log/_recorders/buffer/database.py`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.results.counts import RUNNING

_PATIENCE = 2.0
"""Maximum wait for a locked database, in seconds."""


@dataclass(frozen=True)
class LiveSample:
    """Current state of a sample in progress."""

    id_text: str
    epoch: int
    fields: bytes
    """JSON object with all fields except events, attachments and pools."""

    @property
    def member(self) -> str:
        """Name of its future member in the log."""
        return f"samples/{self.id_text}_epoch_{self.epoch}.json"


def find_database(log: Path) -> Path | None:
    """Return the database of a log in progress, or of a killed run; `None` if it does not exist.

    If there are several, for example after resuming a run, the newest is returned.
    """
    # Inspect uses the folder path as given, with or without resolved links.
    folders = {os.path.abspath(log.parent), os.path.realpath(log.parent)}  # noqa: PTH100  # must not resolve links
    databases: list[tuple[int, Path]] = []
    for folder in folders:
        place = _data_folder() / hashlib.sha256(f"file://{folder}".encode()).hexdigest()
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            databases += [
                (entry.stat(follow_symlinks=False).st_mtime_ns, Path(entry.path))
                for entry in entries
                if entry.is_file(follow_symlinks=False) and _process_of(entry.name, log.name) is not None
            ]
    return max(databases, default=(0, None))[1]


def is_alive(database: Path, log: Path) -> bool:
    """Return whether the process that writes a database is running."""
    process = _process_of(database.name, log.name)
    try:
        os.kill(process or 0, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return process is not None


def _process_of(name: str, log: str) -> int | None:
    if not (name.startswith(f"{log}.") and name.endswith(".db")):
        return None
    digits = name[len(log) + 1 : -len(".db")]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 11 else None


def _data_folder() -> Path:
    """Return Inspect's folder for these databases, the same as in
    `platformdirs.user_data_path("inspect_ai")`.
    """
    if sys.platform == "darwin":
        data = Path.home() / "Library" / "Application Support"
    else:
        given = os.environ.get("XDG_DATA_HOME", "")
        data = Path(given) if given.strip() else Path.home() / ".local" / "share"
    return data / "inspect_ai" / "samplebuffer"


def version(database: Path) -> str:
    """Return a text that changes with every write to a database."""
    with _opened(database) as connection:
        (number,) = connection.execute("SELECT max(version) FROM task_database").fetchone()
    return str(number)


class Buffer:
    """Samples in a database at one moment."""

    def __init__(self, connection: sqlite3.Connection, bounds: Bounds):
        self._connection = connection
        self._bounds = bounds
        rows = connection.execute("SELECT id, epoch, data FROM samples ORDER BY epoch, rowid")
        self.samples = [
            LiveSample(id_text, epoch, data.encode())
            for id_text, epoch, data in rows
            if isinstance(id_text, str) and isinstance(epoch, int) and isinstance(data, str)
        ]

    def write(self, sample: LiveSample, archive: zipfile.ZipFile) -> None:
        """Add a sample to an archive in the form that it will have in its log.

        If a sample is larger than the bounds allow, it is added without its events.
        """
        fields = _as_sample(orjson.loads(sample.fields))
        whole = self._size(sample) <= self._bounds.member_bytes
        with archive.open(sample.member, "w", force_zip64=True) as file:
            # Texts in the summary are shortened. The first event of the sample contains the full texts.
            file.write(orjson.dumps({**fields, **self._beginning(sample)})[:-1])
            file.write(b',"messages":[],"events":[')
            _write_list(file, self._events(sample) if whole else iter(()))
            file.write(b'],"attachments":{')
            _write_list(file, self._attachments(sample) if whole else iter(()))
            file.write(b'},"events_data":{"messages":[')
            _write_list(file, self._texts(_MESSAGES, sample) if whole else iter(()))
            file.write(b'],"calls":[')
            _write_list(file, self._texts(_CALLS, sample) if whole else iter(()))
            file.write(b"]}}")

    def _size(self, sample: LiveSample) -> int:
        """Return the number of characters in all data of a sample."""
        return sum(
            self._connection.execute(query, (sample.id_text, sample.epoch)).fetchone()[0] for query in _SIZES
        )

    def _beginning(self, sample: LiveSample) -> dict[str, object]:
        for text in self._events(sample):
            with contextlib.suppress(ValueError, AttributeError):
                event = orjson.loads(text)
                if event.get("event") == "sample_init" and isinstance(event.get("sample"), dict):
                    return {name: event["sample"][name] for name in _OF_ROW if name in event["sample"]}
        return {}

    def _events(self, sample: LiveSample) -> Iterator[bytes]:
        # An event may be written several times (a model call and its answer). The last version counts.
        yield from self._texts(
            """SELECT e.data FROM (SELECT min(id) AS first, max(id) AS last FROM events
                 WHERE sample_id = ? AND sample_epoch = ? GROUP BY coalesce(nullif(event_id, ''), id)) AS one
               JOIN events e ON e.id = one.last ORDER BY one.first""",
            sample,
        )

    def _texts(self, query: str, sample: LiveSample) -> Iterator[bytes]:
        for (data,) in self._connection.execute(query, (sample.id_text, sample.epoch)):
            yield str(data).encode("utf-8", "surrogatepass")

    def _attachments(self, sample: LiveSample) -> Iterator[bytes]:
        query = "SELECT hash, content FROM attachments WHERE sample_id = ? AND sample_epoch = ? ORDER BY id"
        for name, content in self._connection.execute(query, (sample.id_text, sample.epoch)):
            yield orjson.dumps(str(name)) + b":" + orjson.dumps(str(content))


_SIZES = (
    "SELECT coalesce(sum(length(data)), 0) FROM events WHERE sample_id = ? AND sample_epoch = ?",
    "SELECT coalesce(sum(length(content)), 0) FROM attachments WHERE sample_id = ? AND sample_epoch = ?",
    "SELECT coalesce(sum(length(data)), 0) FROM message_pool WHERE sample_id = ? AND sample_epoch = ?",
    "SELECT coalesce(sum(length(data)), 0) FROM call_pool WHERE sample_id = ? AND sample_epoch = ?",
)
_MESSAGES = "SELECT data FROM message_pool WHERE sample_id = ? AND sample_epoch = ? ORDER BY id"
_CALLS = "SELECT data FROM call_pool WHERE sample_id = ? AND sample_epoch = ? ORDER BY id"

_OF_ROW = ("input", "choices", "target", "metadata", "files", "setup")
"""Fields of the dataset row whose full values are in the first event of a sample."""


_OF_SUMMARY = ("completed", "limit", "message_count", "retries")
"""Fields of a summary that a sample does not have, or has in another form."""


def _as_sample(summary: dict[str, Any]) -> dict[str, Any]:
    """Convert a summary to a sample. Its error becomes an object, and an unfinished sample gets a special
    error.
    """
    fields = {name: value for name, value in summary.items() if name not in _OF_SUMMARY}
    error = fields.get("error")
    if not error and summary.get("completed") is not True:
        error = f"{RUNNING}()"
    if isinstance(error, str) and error:
        fields["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    return fields


def _write_list(file: IO[bytes], texts: Iterator[bytes]) -> None:
    for number, text in enumerate(texts):
        file.write(b"," + text if number else text)


@contextmanager
def open_buffer(database: Path, bounds: Bounds) -> Iterator[Buffer]:
    """Open a database at one moment. Raise `sqlite3.Error` if it does not exist or is not a database."""
    with _opened(database) as connection:
        connection.execute("BEGIN")
        yield Buffer(connection, bounds)


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(
        sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=_PATIENCE, isolation_level=None)
    ) as connection:
        # The file may be untrusted, so its triggers and views with functions are disabled.
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection
