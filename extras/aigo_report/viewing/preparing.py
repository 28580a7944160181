"""Preparation of an item for its page. It runs in another process, because untrusted content may crash it.

Files written to the server's private folder for each item:

| file | content |
|---|---|
| `summary` | data of the first view: gzipped JSON |
| `blocks` | samples and table rows: gzipped blocks |
| `logs/` | results of imported logs |
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.access.opening import is_below, open_regular, outside
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import engine_class, load_logs
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.redaction.secrets import learn_environment, redact, redact_json
from aigo_bridge.results.counts import UNFINISHED_RUNS
from aigo_bridge.results.sources import ResultSource, sources_of
from aigo_bridge.results.values import json_line
from aigo_report.page.packing import Blocks, read_result, summary_of
from aigo_report.page.pages import zipped
from aigo_report.viewing.folder import FolderItem, stamp_at

SUMMARY = "summary"
BLOCKS = "blocks"
_TRIES = 3
_ENDING = frozenset({"Ended", "Took"})
"""Facts of a result that a run in progress does not have yet."""
_DEPTH = 12
"""Number of parent folders that importers search for related files. All of them belong to the server."""


class ChangedError(BridgeError):
    """File changed repeatedly while it was read."""

    usual_code = Code.UNREADABLE_LOG


@dataclass(frozen=True)
class PageData:
    """Data of a page, on disk."""

    folder: Path
    stamps: tuple[tuple[Path, str | None], ...]
    """Files that were read, with their stamps."""
    run: str | None
    """Progress of a run; `None` for a finished run."""
    blocks: dict[str, tuple[int, int]]
    """Position in the block file for each block name."""
    results: tuple[Path | None, ...]
    """Result log of each result on the page."""
    seconds: float
    """Duration in seconds."""
    problem: str | None = None
    """Reason why there is no content to display."""

    @property
    def is_current(self) -> bool:
        """Return whether the files are unchanged."""
        return all(stamp_at(path) == stamp for path, stamp in self.stamps)


def prepare(entry: FolderItem, root: Path, folder: Path) -> PageData:
    """Prepare an item.

    Args:
        entry: item of the folder.
        root: the folder. No file outside is read.
        folder: new folder for the output.
    """
    learn_environment()
    began = time.monotonic()
    try:
        folder.mkdir()
        prepared = _prepared(entry, root, folder)
    except (BridgeError, OSError) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        stamps = ((entry.path, stamp_at(entry.path)),)
        run = None if entry.run is None else entry.run.version
        prepared = PageData(folder, stamps, run, {}, (), 0, redact(text))
    return replace(prepared, seconds=time.monotonic() - began)


def _prepared(entry: FolderItem, root: Path, folder: Path) -> PageData:
    if entry.kind == "log":
        return _of_log(entry, root, folder)
    for _ in range(_TRIES):
        stamps = {entry.path: stamp_at(entry.path)}
        sources = sources_of([entry.reference or entry.path], root)
        stamps |= {source.path: stamp_at(source.path) for source in sources if source.path is not None}
        try:
            blocks = _write(sources, folder, None)
        except (BridgeError, OSError):
            if not _changed(stamps):
                raise
            continue
        if not _changed(stamps):
            results = tuple(source.path for source in sources)
            return PageData(folder, tuple(stamps.items()), None, blocks, results, 0)
    raise ChangedError("the file changed while it was read")


def _changed(stamps: dict[Path, str | None]) -> bool:
    return any(stamp_at(path) != stamp for path, stamp in stamps.items())


def _of_log(entry: FolderItem, root: Path, folder: Path) -> PageData:
    assert entry.engine is not None
    logs = load_logs(entry.engine)
    mirror = folder.joinpath("log", *"x" * _DEPTH)
    live: Sequence[tuple[str, int]] = ()
    running = engine_class(entry.engine).capabilities.running
    if entry.run is not None and running is not None:
        stamps = {entry.path: stamp_at(entry.path)}
        log = mirror / entry.path.name
        mirror.mkdir(parents=True)
        live = running().snapshot(entry.path, log, root)
    else:
        stamps = _mirrored(logs.parts(str(entry.path)), root, mirror)
        log = mirror / entry.path.relative_to(root)
    reports: list[ImportReport] = []
    # Use this process only.
    logs.import_logs([str(log)], folder / "logs", ImportOptions(jobs=1), reports.append)
    files = [report.output for report in reports if report.output is not None]
    if not files:
        reasons = "; ".join(report.reason or "nothing could be read" for report in reports)
        raise EvidenceError(reasons.replace(f"{mirror}{os.sep}", ""), code=Code.UNREADABLE_LOG)
    shutil.rmtree(folder / "log")
    sources = sources_of(files)
    state = (
        None
        if entry.run is None
        else {"alive": entry.run.alive, "live": len(live), "total": entry.run.trials}
    )
    blocks = _write(sources, folder, state)
    run = None if entry.run is None else entry.run.version
    return PageData(folder, tuple(stamps.items()), run, blocks, tuple(files), 0)


def _mirrored(files: Sequence[str], root: Path, mirror: Path) -> dict[Path, str | None]:
    """Copy the files of a log, each at one moment. Files outside the folder are skipped.

    Returns:
        Stamps of the files.

    Raises:
        OSError: the log itself cannot be read, or is outside the folder.
    """
    stamps: dict[Path, str | None] = {}
    for number, name in enumerate(files):
        path = Path(os.path.abspath(name))  # noqa: PTH100  # keeps links
        inside = path.is_relative_to(root) and is_below(path, root)
        if not inside:
            if number == 0:
                raise EvidenceError([outside(repr(path.name), path, root)])
            continue
        copy = mirror / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        stamps[path] = _copy(path, copy, root)
    return stamps


def _copy(path: Path, copy: Path, root: Path) -> str | None:
    for _ in range(_TRIES):
        stamp = stamp_at(path)
        with open_regular(path, root) as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        if stamp_at(path) == stamp:
            return stamp
    raise ChangedError("the file changed while it was read")


def _write(sources: list[ResultSource], folder: Path, run: Any) -> dict[str, tuple[int, int]]:
    from aigo_bridge import verify

    problems: list[str] = []
    with (folder / BLOCKS).open("wb") as file:
        blocks = Blocks(file, zipped)
        results = [
            read_result(source, number, blocks, problems, verify) for number, source in enumerate(sources)
        ]
    if run is not None:
        counts = [result["counts"] for result in results if result.get("counts")]
        run["done"] = sum(each["trials"] - each["unfinished_trials"] for each in counts)
    if run is not None and run["alive"]:
        for result in results:
            # An import reports a log without an end as a failure, but this run has not ended yet.
            result["status"] = "running"
            result["errors"] = [
                error for error in result.get("errors", ()) if error["type"] not in UNFINISHED_RUNS
            ]
            result["facts"] = [fact for fact in result.get("facts", ()) if fact[0] not in _ENDING]
            # These values would cover only the samples that happened to finish first.
            result["metrics"] = []
            result["seconds"] = None
    summary = {**summary_of(sources, results), "run": run}
    (folder / SUMMARY).write_bytes(zipped(redact_json(json_line(summary))))
    return {block.name: (block.place, block.size) for block in (*blocks.rows, *blocks.parts)}


def compared(base: Path, new: Path, root: Path) -> bytes:
    """Return the comparison of two results as JSON.

    Args:
        base: path of a result log in the folder, or of one that the server imported.
        new: path of the other result log.
        root: the folder.

    Raises:
        BridgeError: the results cannot be compared, or change during the comparison.
    """
    learn_environment()
    from aigo_report.page.pairs import comparison_content
    from aigo_stats.comparison.columns import read_columns
    from aigo_stats.comparison.comparing import compare
    from aigo_stats.statistics.quantiles import require_scipy

    require_scipy()
    for _ in range(_TRIES):
        stamps = {path: stamp_at(path) for path in (base, new)}
        if None in stamps.values():
            raise UsageError("a result no longer exists", code=Code.NOTHING_THERE)
        content = comparison_content(compare(read_columns(base), read_columns(new)))
        if not _changed(stamps):
            return redact_json(orjson.dumps(content))
    raise ChangedError("a result changed while it was read")
