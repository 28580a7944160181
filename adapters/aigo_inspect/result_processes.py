"""The samples of one log written by several processes.

Each process takes runs of samples, and what they write is joined in the order of the log, so the file does not depend on
how many there are.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import PartWriter, append_file

from .frame import Totals
from .import_settings import ImportSettings
from .reading import LogReader, open_log
from .result_writing import write_part, write_samples
from .sample_refs import SampleRef
from .sources import local_path


@dataclass(frozen=True)
class _RunResult:
    totals: Totals
    loss: LossReport
    damage: list[Damage]
    redacted: Counter[str]
    changes: Counter[str]


@contextmanager
def _kept_open(reader: LogReader, settings: ImportSettings) -> Iterator[None]:
    """Let forks use the log that is open already. What is far away is read through a connection, which two cannot share."""
    key = reader.address, settings
    if local_path(reader.address) is not None:
        _opened[key] = reader
    try:
        yield
    finally:
        _opened.pop(key, None)


def write_in_processes(
    reader: LogReader,
    runs: list[list[SampleRef]],
    reductions: dict[str, list[dict[str, Any]]],
    file: Any,
    settings: ImportSettings,
    totals: Totals,
    loss: LossReport,
) -> None:
    """Write runs of samples to `file`, several at the same time; what each run adds up to is added to the totals."""
    with (
        _kept_open(reader, settings),
        tempfile.TemporaryDirectory(prefix=".aigo-import-", dir=Path(file.name).parent) as folder,
        ProcessPoolExecutor(min(settings.jobs, len(runs)) - 1, mp_context=_processes()) as pool,
    ):
        # The others begin with the last run and this process with the first: what is written here is in its place, and
        # only what the others write has to be copied there.
        parts: list[tuple[Path, Future[_RunResult]]] = []
        for number, run in reversed(list(enumerate(runs))):
            wanted = {ref.id_text for ref in run} if reductions else set()
            own = {key: value for key, value in reductions.items() if key in wanted}
            part = Path(folder) / str(number)
            parts.append((part, pool.submit(_write_run, reader.address, run, own, part, settings)))
        for run, (part, future) in zip(runs, reversed(parts), strict=True):
            if future.cancel():
                writer = PartWriter(file, settings.output_format)
                write_samples(reader, run, reductions, writer, settings, totals, loss)
                writer.finish()
                continue
            done = future.result()
            if done.totals.samples:
                if totals.samples:
                    write_part(file, settings, b",")
                append_file(part, file)
            part.unlink()
            totals.add(done.totals)
            loss.add(done.loss)
            reader.damage += done.damage
            reader.redaction.found.update(done.redacted)
            reader.changes.update(done.changes)


def _processes() -> BaseContext:
    """How processes are started: a fork is ready at once, but safe only where no other thread can hold a lock."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return get_context("fork")
    context = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload(["aigo_inspect.result_processes"])
    return context


_opened: dict[tuple[str, ImportSettings], LogReader] = {}
"""Logs that are open: in a process of its own a log is opened once for all its runs."""


def _reader(location: str, settings: ImportSettings) -> LogReader:
    key = location, settings
    if key not in _opened:
        _opened[key] = open_log(location, bounds=settings.bounds, redaction=settings.redaction())
    return _opened[key]


def _write_run(
    location: str,
    refs: list[SampleRef],
    reductions: dict[str, list[dict[str, Any]]],
    part: Path,
    settings: ImportSettings,
) -> _RunResult:
    """In a process of its own: write the samples of one run to a file."""
    reader = _reader(location, settings)
    # The parent counts what concerns the log as a whole, and the runs before are counted.
    reader.damage.clear()
    reader.changes.clear()
    reader.redaction.found.clear()
    totals, loss = Totals(), LossReport()
    with part.open("xb") as file:
        writer = PartWriter(file, settings.output_format)
        write_samples(reader, refs, reductions, writer, settings, totals, loss)
        writer.finish()
    return _RunResult(
        totals, loss, list(reader.damage), Counter(reader.redaction.found), Counter(reader.changes)
    )
