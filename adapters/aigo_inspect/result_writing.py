"""An open log → its result file, sample by sample, by one process or by several.

Each process takes runs of samples, and what they write is joined in the order of the log, so the file does not depend on
how many there are.
"""

from __future__ import annotations

import gc
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

from .archive import Damage
from .carried import carried_frame, carried_samples, carries_evidence
from .encoded import sample_pieces
from .encoding import dumps
from .frame import Totals, frame_of
from .import_settings import ImportSettings
from .loss import LossReport
from .output import PartWriter, append_file, open_draft
from .reading import LogReader, SampleRef, open_log
from .samples import grouped, read_trials
from .scores import aggregated_scores

_WORTH_A_PROCESS = 24 << 20
"""Unpacked bytes of samples for which a second process pays for its start."""


def write_json(reader: LogReader, output: Path, settings: ImportSettings, loss: LossReport) -> Totals:
    """Write the result file of an open log; returns what its samples add up to."""
    totals = Totals()
    if carries_evidence(reader):
        return _write_carried(reader, output, settings, loss)
    refs = reader.sample_refs("sample")
    reductions = aggregated_scores(reader.reductions(), loss) if reader.has_epochs else {}
    runs = _runs(reader, refs, settings.jobs)
    with open_draft(output) as file:
        _part(file, settings, b'{"evidence":{"samples":[')
        if len(runs) < 2:
            writer = PartWriter(file, settings.output_format)
            _write_samples(reader, refs, reductions, writer, settings, totals, loss)
            writer.finish()
        else:
            _write_in_processes(reader, runs, reductions, file, settings, totals, loss)
        frame = frame_of(reader.header, totals, reader.damage, loss)
        evidence = dumps(frame.pop("evidence"))
        _part(file, settings, b"\n]," + evidence[1:] + b"," + dumps(frame)[1:] + b"\n")
    loss.changed.update(reader.changes)
    return totals


def _write_carried(reader: LogReader, output: Path, settings: ImportSettings, loss: LossReport) -> Totals:
    """The log was written from evidence and not changed since: that evidence."""
    totals = Totals()
    with open_draft(output) as file:
        writer = PartWriter(file, settings.output_format)
        writer.write([b'{"evidence":{"samples":['])
        for sample in carried_samples(reader):
            trials = sample.get("trials") or [sample]
            writer.write([b",\n" if totals.samples else b"\n", dumps(sample)])
            totals.samples += 1
            totals.trials += len(trials)
            totals.failed += any(trial.get("errors") for trial in trials)
            loss.kept["sample"] += len(trials)
        frame = carried_frame(reader)
        evidence = {
            key: value for key, value in (frame.pop("evidence", None) or {}).items() if key != "samples"
        }
        writer.write(
            [b"\n]," + dumps(evidence)[1:] if evidence else b"\n]}", b"," + dumps(frame)[1:] + b"\n"]
        )
        writer.finish()
    return totals


def _part(file: Any, settings: ImportSettings, data: bytes) -> None:
    writer = PartWriter(file, settings.output_format)
    writer.write([data])
    writer.finish()


def _write_samples(
    reader: LogReader,
    refs: list[SampleRef],
    reductions: dict[str, list[dict[str, Any]]],
    writer: PartWriter,
    settings: ImportSettings,
    totals: Totals,
    loss: LossReport,
) -> None:
    trials = read_trials(reader, refs, keep=settings.keep, loss=loss)
    separator = b",\n" if totals.samples else b"\n"
    with _no_cycle_collection():
        for group in grouped(trials):
            totals.count(group)
            writer.write([separator])
            writer.write(sample_pieces(group, reductions.get(str(group[0].sample_id)), settings.context))
            separator = b",\n"


@contextmanager
def _no_cycle_collection() -> Iterator[None]:
    """Samples are trees and die with their last reference; looking for cycles among them costs a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# Several processes


def _runs(reader: LogReader, refs: list[SampleRef], jobs: int) -> list[list[SampleRef]]:
    """Cut the samples into runs of about equal bytes, never between the epochs of one sample."""
    sizes = [reader.sample_size(ref) for ref in refs]
    total = sum(sizes)
    if jobs < 2 or reader.format != "eval" or total < 2 * _WORTH_A_PROCESS:
        return [refs]
    # More runs than processes, so that none waits long for another; few enough that files stay few.
    share = max(total / (8 * jobs), _WORTH_A_PROCESS / 4)
    runs: list[list[SampleRef]] = [[]]
    filled = 0
    for position, (ref, size) in enumerate(zip(refs, sizes, strict=True)):
        if filled >= share and ref.id_text != refs[position - 1].id_text:
            runs.append([])
            filled = 0
        runs[-1].append(ref)
        filled += size
    return runs


@dataclass(frozen=True)
class _RunResult:
    totals: Totals
    loss: LossReport
    damage: list[Damage]
    redacted: Counter[str]
    changes: Counter[str]


def _write_in_processes(
    reader: LogReader,
    runs: list[list[SampleRef]],
    reductions: dict[str, list[dict[str, Any]]],
    file: Any,
    settings: ImportSettings,
    totals: Totals,
    loss: LossReport,
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix=".aigo-import-", dir=Path(file.name).parent) as folder,
        ProcessPoolExecutor(min(settings.jobs, len(runs)) - 1, mp_context=_processes()) as pool,
    ):
        # The others begin with the last run and this process with the first: what is written here is in its place, and
        # only what the others write has to be copied there.
        parts: list[tuple[Path, Future[_RunResult]]] = []
        for number, run in reversed(list(enumerate(runs))):
            wanted = {ref.id_text for ref in run}
            own = {key: value for key, value in reductions.items() if key in wanted}
            part = Path(folder) / str(number)
            parts.append((part, pool.submit(_write_run, reader.location, run, own, part, settings)))
        for run, (part, future) in zip(runs, reversed(parts), strict=True):
            if future.cancel():
                writer = PartWriter(file, settings.output_format)
                _write_samples(reader, run, reductions, writer, settings, totals, loss)
                writer.finish()
                continue
            done = future.result()
            if done.totals.samples:
                if totals.samples:
                    _part(file, settings, b",")
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
        context.set_forkserver_preload(["aigo_inspect.result_writing"])
    return context


def _write_run(
    location: str,
    refs: list[SampleRef],
    reductions: dict[str, list[dict[str, Any]]],
    part: Path,
    settings: ImportSettings,
) -> _RunResult:
    """In a process of its own: write the samples of one run to a file."""
    totals, loss = Totals(), LossReport()
    with open_log(location, bounds=settings.bounds, redaction=settings.redaction()) as reader:
        # The parent counts what concerns the log as a whole.
        reader.damage.clear()
        reader.changes.clear()
        reader.redaction.found.clear()
        with part.open("xb", buffering=1 << 20) as file:
            writer = PartWriter(file, settings.output_format)
            _write_samples(reader, refs, reductions, writer, settings, totals, loss)
            writer.finish()
        return _RunResult(totals, loss, reader.damage, reader.redaction.found, reader.changes)
