"""Logs of runs in progress: samples in the log file, and samples in Inspect's buffer database."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.access.opening import open_regular
from aigo_bridge.engine.engine import RunState
from aigo_bridge.errors import EvidenceError
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.buffer import LiveSample, find_database, is_alive, open_buffer, version
from aigo_inspect.logs.sources import open_source
from aigo_inspect.logs.zip_members import Member

_HEADER = "header.json"
"""Last member that Inspect writes to a log."""
_START = "_journal/start.json"
"""First member that Inspect writes to a log."""
_LONGEST_START = 8_000_000


class InspectRuns:
    """Reader of Inspect runs in progress; see `RunningLogs`."""

    def state(self, log: Path) -> RunState | None:
        """Return the state of a run in progress; see `RunningLogs.state`."""
        database = find_database(log)
        if database is None:
            return None
        try:
            alive = is_alive(database, log)
            return RunState(f"{database.name}:{version(database)}:{alive}", alive, _planned_trials(log))
        except sqlite3.Error:  # removed a moment ago, or not a database
            return None

    def snapshot(
        self, log: Path, copy: Path, root: Path, bounds: Bounds = DEFAULT_BOUNDS
    ) -> Sequence[tuple[str, int]]:
        """Copy the log and add samples from the buffer; see `RunningLogs.snapshot`."""
        database = find_database(log)
        try:
            if database is None:
                _copy(log, copy, root)
                return []
            # Open the database first: a sample that leaves it in the meantime is then in the log.
            with open_buffer(database, bounds) as buffer:
                _copy(log, copy, root)
                if not zipfile.is_zipfile(copy):
                    return []
                with zipfile.ZipFile(copy, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                    members = set(archive.namelist())
                    if _HEADER in members:
                        return []
                    live = [sample for sample in buffer.samples if not _stands_in(sample, members)]
                    for sample in live:
                        buffer.write(sample, archive)
        except (sqlite3.Error, zipfile.BadZipFile, ValueError):
            # The run has ended and removed the database, or its format is from another release. Only the log
            # is used.
            _copy(log, copy, root)
            return []
        return [(sample.id_text, sample.epoch - 1) for sample in live]


def _planned_trials(log: Path) -> int | None:
    """Return the number of planned trials from the start of the log; `None` if it is unknown."""
    try:
        with closing(open_source(log)) as source:
            archive = Archive(source)
            plan = json.loads(archive.read(_START))["eval"] if _is_short(archive.members[_START]) else {}
        samples = plan["dataset"].get("sample_ids")
        number = len(samples) if isinstance(samples, list) else plan["dataset"]["samples"]
        return int(number) * int(plan.get("config", {}).get("epochs") or 1)
    except (EvidenceError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _is_short(member: Member) -> bool:
    return 0 <= member.size <= _LONGEST_START


def _copy(log: Path, copy: Path, root: Path) -> None:
    # Inspect replaces the log file, so an open file does not change.
    with open_regular(log, root) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _stands_in(sample: LiveSample, members: set[str]) -> bool:
    shell = sample.member.removesuffix(".json") + "/sample.json"
    return sample.member in members or shell in members
