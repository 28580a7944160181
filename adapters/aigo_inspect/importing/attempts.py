"""Detection of logs that a later attempt at the same task has replaced.

Inspect's `eval_set` and `eval-retry` run a failed task again. Each attempt writes a log with the same
`task_id` and a new `eval_id`, which includes all samples of the previous attempt. In the folder of an eval
set, `logs.json` contains the headers of all logs, and `eval-set.json` contains the tasks. A copy of a log has
the same `eval_id` and does not count as another attempt.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from aigo_bridge.access.file_kinds import LOG_SUFFIXES
from aigo_bridge.errors import BridgeError
from aigo_bridge.results.superseded_results import superseded_mark
from aigo_inspect.logs.parsing import unix_seconds
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.sources import is_log_file, local_path

Json = dict[str, Any]
_NAMED = re.compile(r"_([A-Za-z0-9]{22})(?:-[^.]*)?\.(?:eval|json)$")
"""File name of an Inspect log, which ends with the task id."""
_MOST_BYTES = 256 << 20
"""Maximum size of a `logs.json` file that is read, in bytes."""


@dataclass(frozen=True, order=True)
class _Attempt:
    """A log of a task. Later attempts compare as greater."""

    created: int
    started: int
    ended: int
    changed: int
    name: str
    identity: tuple[str, str, str]
    """`eval_id`, `run_id` and creation time, which are the same in copies of a log."""


def superseded(log: InspectLogReader) -> Json:
    """Return the entries of `specification.config` that name a later attempt; empty for the latest one."""
    place = local_path(log.address)
    if place is None:
        return {}
    path = Path(place)
    header = log.header
    if not _text(header["eval"], "task_id"):
        # The header of a damaged log is incomplete.
        header = _listed(path.parent, _stamp(path.parent / "logs.json")).get(path.name, header)
    task_id = _text(header["eval"], "task_id")
    if not task_id:
        return {}
    own = _attempt(path, header)
    latest = max((each for each in _attempts(path, task_id) if each.identity != own.identity), default=own)
    if latest <= own:
        return {}
    set_id = _text(header["eval"], "eval_set_id") or _text(
        _read(path.parent / "eval-set.json"), "eval_set_id"
    )
    return superseded_mark(log.redaction.text(latest.name), task_id=task_id, eval_set_id=set_id)


def _attempts(path: Path, task_id: str) -> Iterator[_Attempt]:
    """Yield the other logs of the task in the same folder."""
    folder = path.parent
    listed = _listed(folder, _stamp(folder / "logs.json"))
    changed = _stamp(folder)
    # Within some seconds after a change, another change may leave the stamp as it is.
    by_task = (_names if time.time_ns() - changed > 3e9 else _names.__wrapped__)(folder, changed)
    for name in {*by_task.get(task_id, ()), *by_task.get("", ())} - {path.name}:
        header = listed.get(name) or _header(file := f"{folder}{os.sep}{name}", _stamp(file))
        if header is not None and _text(header["eval"], "task_id") == task_id:
            yield _attempt(folder / name, header)


@lru_cache(maxsize=16)
def _names(folder: Path, stamp: int) -> Mapping[str, Sequence[str]]:
    """Return the log names in a folder by the task id in the name; other names by an empty id."""
    names: dict[str, list[str]] = {}
    with suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208  # a folder may have thousands of logs
            if name.endswith(LOG_SUFFIXES):
                named = _NAMED.search(name)
                names.setdefault(named[1] if named else "", []).append(name)
    return names


def _attempt(path: Path, header: Mapping[str, Any]) -> _Attempt:
    spec, stats = header["eval"], header.get("stats")
    stats = stats if isinstance(stats, dict) else {}
    created = _text(spec, "created")
    return _Attempt(
        unix_seconds(created) or 0,
        unix_seconds(_text(stats, "started_at")) or 0,
        unix_seconds(_text(stats, "completed_at")) or 0,
        _stamp(path),
        path.name,
        (_text(spec, "eval_id"), _text(spec, "run_id"), created),
    )


@lru_cache(maxsize=16)
def _listed(folder: Path, stamp: int) -> Mapping[str, Json]:
    """Return the headers in `logs.json` by log name."""
    headers = _read(folder / "logs.json") if stamp else {}
    headers = {name: header for name, header in headers.items() if isinstance(header, dict)}
    return {name: _slim(header) for name, header in headers.items() if isinstance(header.get("eval"), dict)}


@lru_cache(maxsize=4096)
def _header(path: str, stamp: int) -> Json | None:
    """Return the header of a log; `None` for any other file."""
    if not stamp or not is_log_file(Path(path)):
        return None
    try:
        with open_log(path) as reader:
            return _slim(reader.header)
    except (BridgeError, OSError, ValueError):
        return None


def _slim(header: Mapping[str, Any]) -> Json:
    return {"eval": header["eval"], "stats": header.get("stats")}


def _read(path: Path) -> Json:
    """Return the JSON object in a file; empty if it cannot be read."""
    try:
        is_small = path.is_file() and path.stat().st_size <= _MOST_BYTES
        content = json.loads(path.read_bytes()) if is_small else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _stamp(path: str | Path) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  # a folder may have thousands of logs
    except OSError:
        return 0


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
