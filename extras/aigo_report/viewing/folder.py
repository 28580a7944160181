"""Items to view in a folder: results, evaluations, engine logs and runs in progress.

An item is requested by an ID derived from its name. Only items found by scanning the folder can be requested.
Links are followed inside the folder only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aigo_bridge.access.file_kinds import LOG_SUFFIXES
from aigo_bridge.access.opening import is_below
from aigo_bridge.engine.engine import RunState
from aigo_bridge.engine.registry import engine_class, engine_names, load_logs
from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.sources import EVALUATION, YAML_SUFFIXES, is_result, links_results, sources_of
from aigo_bridge.results.superseded_results import STATUS, superseded_by
from aigo_bridge.results.values import Json, mappings, member, number_text
from aigo_report.page.summary import dataset_name

MOST_FILES = 50_000
"""Maximum number of files and folders to scan."""
MOST_ENTRIES = 2_000
MOST_LINKS = 20
"""Maximum number of external links to list."""

Kind = Literal["result", "evaluation", "log"]


@dataclass(frozen=True)
class FolderItem:
    """Item to view."""

    id: str
    kind: Kind
    path: Path
    name: str
    """Path relative to the folder."""
    stamp: str
    """Version stamp that changes with the file."""
    size: int
    modified: float
    """Modification time in seconds since 1970."""
    engine: str | None = None
    """Engine of a log."""
    run: RunState | None = None
    """State of a run in progress."""
    reference: Path | None = None
    """Task specification of a run file that links the result: `run.yaml#quiz`."""


@dataclass(frozen=True)
class FolderListing:
    """Content of a folder at one moment."""

    entries: dict[str, FolderItem]
    links: tuple[str, ...] = ()
    """Links out of the folder, which are not followed."""
    cut: bool = False
    """Whether the folder contains more files than the limit."""


@dataclass
class Folder:
    """Folder that may change."""

    root: Path
    """Absolute path with links resolved."""
    _logs: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """Engine of a log file, by name and stamp."""
    _heads: dict[tuple[str, str], Json] = field(default_factory=dict)
    _linked: dict[tuple[str, str], Mapping[Path, Path] | None] = field(default_factory=dict)
    """Linked results of a run file with their references, by name and stamp; `None` for other YAML files."""

    def listing(self) -> FolderListing:
        """Return the current content."""
        entries: list[FolderItem] = []
        links: list[str] = []
        cut = False
        references: dict[Path, Path] = {}
        for number, (path, status) in enumerate(_files(self.root, links)):
            if number >= MOST_FILES or len(entries) >= MOST_ENTRIES:
                cut = True
                break
            entry = self._entry(path, status, references)
            if entry is not None:
                entries.append(entry)
        self._logs = {key: engine for key, engine in self._logs.items() if Path(self.root, key[0]).exists()}
        return FolderListing({entry.id: entry for entry in entries}, tuple(links[:MOST_LINKS]), cut)

    def _entry(self, path: Path, status: os.stat_result, references: dict[Path, Path]) -> FolderItem | None:
        name = path.relative_to(self.root).as_posix()
        stamp = stamp_of(status)
        engine = None
        kind: Kind
        if path.name == EVALUATION:
            kind = "evaluation"
        elif path.name.lower().endswith(YAML_SUFFIXES):
            linked = self._links(path, name, stamp)
            if linked is None:
                return None
            references |= {result: linked[result] for result in linked.keys() - references.keys()}
            kind = "evaluation"
        elif path in references or is_result(path.name):
            kind = "result"
        elif path.name.endswith(LOG_SUFFIXES) and (engine := self._engine(path, name, stamp)) is not None:
            kind = "log"
        else:
            return None
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        run = None if engine is None else _run_state(engine, path)
        reference = references.get(path)
        if reference is not None:
            name = reference.relative_to(self.root).as_posix()
        size, modified = status.st_size, status.st_mtime
        return FolderItem(digest, kind, path, name, stamp, size, modified, engine, run, reference)

    def _links(self, path: Path, name: str, stamp: str) -> Mapping[Path, Path] | None:
        key = (name, stamp)
        if key not in self._linked:
            if len(self._linked) > 2 * MOST_ENTRIES:
                self._linked.clear()
            self._linked[key] = _linked_by(path, self.root)
        return self._linked[key]

    def _engine(self, path: Path, name: str, stamp: str) -> str | None:
        key = (name, stamp)
        if key not in self._logs:
            self._logs[key] = _engine_of(path)
        return self._logs[key]

    def head(self, entry: FolderItem) -> Json:
        """Return the basic facts of a result, if available without reading its samples; otherwise an empty
        dictionary.
        """
        if entry.kind != "result":
            return {}
        key = (entry.id, entry.stamp)
        if key not in self._heads:
            if len(self._heads) > 2 * MOST_ENTRIES:
                self._heads.clear()
            self._heads[key] = _head_of(entry.path, self.root)
        return self._heads[key]


def stamp_of(status: os.stat_result) -> str:
    """Return a stamp that identifies a version of a file."""
    return f"{status.st_dev}.{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def stamp_at(path: Path) -> str | None:
    """Return the stamp of a file; `None` if missing."""
    try:
        return stamp_of(path.stat())
    except OSError:
        return None


def _files(root: Path, links: list[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the regular files below a folder, sorted by name. Hidden files and duplicate folders are
    skipped.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
            names = sorted(os.listdir(folder), key=_run_files_first)  # noqa: PTH208  # names, not paths
        except OSError:
            continue
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        folders = []
        for name in names:
            if name.startswith("."):
                continue
            path = folder / name
            try:
                if path.is_symlink() and not is_below(path, root):
                    links.append(path.relative_to(root).as_posix())
                    continue
                if path.is_dir():
                    folders.append(path)
                elif path.is_file():
                    yield path, path.stat()
            except OSError:
                continue
        waiting += reversed(folders)


def _run_files_first(name: str) -> tuple[bool, str]:
    """Return a sort key that puts run files first, because they name the results in their folder."""
    return not name.lower().endswith(YAML_SUFFIXES), name


def _linked_by(file: Path, root: Path) -> Mapping[Path, Path] | None:
    """Return the results that a YAML file links; `None` for other YAML files."""
    if not links_results(file, root):
        return None
    try:
        sources = sources_of([file], root)
    except BridgeError:
        return {}  # the page of the run file displays the problem
    return {
        Path(os.path.realpath(source.path)): Path(source.label)
        for source in sources
        if source.path is not None
    }


def _engine_of(path: Path) -> str | None:
    for name in engine_names():
        try:
            if load_logs(name).files(str(path)):
                return name
        except (BridgeError, OSError, ValueError):
            continue
    return None


def _run_state(engine: str, path: Path) -> RunState | None:
    running = engine_class(engine).capabilities.running
    return None if running is None else running().state(path)


def _head_of(path: Path, root: Path) -> Json:
    try:
        part = LogReader(path, root=root).quick_frame()
    except EvidenceError:
        return {}
    if part is None:
        return {}
    frame = part.value
    config = member(frame, "specification", "config")
    return {
        "title": _text(member(frame, "specification", "display_name")),
        "task": _text(member(frame, "specification", "task", "key")),
        "dataset": dataset_name(member(frame, "specification") or {}),
        "started": member(frame, "execution", "started_at"),
        "seconds": member(frame, "execution", "runtime"),
        "samples": member(frame, "evidence", "failures", "num_total"),
        "model": _text(member(frame, "specification", "evaluated_entity", "display_name")),
        "status": _text(frame.get("status")) if superseded_by(config or {}) is None else STATUS,
        "metrics": [
            [_text(metric.get("scorer_key")), str(name), number_text(value)]
            for metric in mappings(member(frame, "evidence", "metrics"))
            for name, value in (metric.get("values") or {}).items()
            if isinstance(value, (int, float))
        ][:6],
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
