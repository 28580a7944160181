"""An open log → its result file, sample by sample."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.encoding import dumps
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import PartWriter, open_draft, packed

from .carried import carried_frame, carried_samples, carries_evidence
from .encoded import SAMPLE_END, sample_start, trial_pieces
from .frame import Totals, frame_of
from .import_settings import ImportSettings
from .reading import LogReader
from .sample_refs import SampleRef
from .samples import marked
from .scores import REDUCED, aggregated_scores
from .trials import read_trials

_WORTH_A_PROCESS = 12 << 20
"""Unpacked bytes of samples for which a process pays for its start."""
_RUN = 2 << 20
"""Unpacked bytes of samples that are written as one part of the file: few enough that no process waits long for another."""
_MOST_RUNS = 1000


def write_json(reader: LogReader, output: Path, settings: ImportSettings, loss: LossReport) -> Totals:
    """Write the result file of an open log; returns what its samples add up to."""
    totals = Totals()
    if carries_evidence(reader):
        try:
            return _write_carried(reader, output, settings, loss)
        except EvidenceError as error:
            # Inspect's members are sound all the same.
            reader.note("_aigo/", error)
            loss.clear()
    refs = reader.sample_refs("sample")
    reductions = aggregated_scores(reader.reductions(), loss) if reader.has_epochs else {}
    sizes = [reader.sample_size(ref) for ref in refs]
    runs = _runs(refs, sizes)
    # Where several processes cannot write into one file, as on Windows, one does it all.
    together = reader.format == "eval" and hasattr(os, "pwritev")
    jobs = min(settings.jobs, sum(sizes) // _WORTH_A_PROCESS, len(runs)) if together else 1
    comma = packed(b",", settings.output_format)
    with open_draft(output) as file, no_cycle_collection():
        file.write(packed(b'{"evidence":{"samples":[', settings.output_format))
        if jobs < 2:
            write_runs(reader, runs, reductions, file, settings, totals, loss)
        else:
            # Late: most logs need no second process, and what makes processes takes its time to load.
            from .result_processes import write_in_processes

            write_in_processes(reader, runs, reductions, file, settings, totals, loss, jobs)
        if totals.samples:
            file.seek(-len(comma), os.SEEK_END)
            file.truncate()
        frame = frame_of(reader.header, totals, reader.damage, loss)
        evidence = dumps(frame.pop("evidence"))
        end = b"\n]," + evidence[1:] + b"," + dumps(frame)[1:] + b"\n"
        file.write(packed(end, settings.output_format))
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


def write_runs(
    reader: LogReader,
    runs: list[list[SampleRef]],
    reductions: dict[str, list[dict[str, Any]]],
    file: BinaryIO,
    settings: ImportSettings,
    totals: Totals,
    loss: LossReport,
) -> None:
    """Write runs of samples one after the other, each with a comma behind it."""
    for run in runs:
        writer = PartWriter(file, settings.output_format)
        found = write_run(reader, run, reductions, writer, settings, loss)
        if found.samples:
            writer.finish()
            file.write(packed(b",", settings.output_format))
        totals.add(found)
        if len(reader.damage) > reader.bounds.damaged:
            break


def write_run(
    reader: LogReader,
    refs: list[SampleRef],
    reductions: dict[str, list[dict[str, Any]]],
    writer: PartWriter,
    settings: ImportSettings,
    loss: LossReport,
) -> Totals:
    """Write samples, each on a line of its own; returns what they add up to."""
    totals = Totals()
    trials = read_trials(reader, refs, keep=settings.keep, loss=loss)
    _keep_freed_memory()
    for trial, first in marked(trials):
        if first:
            end = SAMPLE_END + b",\n" if totals.samples else b"\n"
            reduced = reductions.get(str(trial.sample_id))
            if reduced:
                loss.kept[REDUCED] += len(reduced)
            writer.write([end, sample_start(trial.sample_id, reduced)])
        else:
            writer.write([b","])
        totals.count_trial(trial, first=first)
        writer.write(trial_pieces(trial, settings.context))
        # Freed before the next one is made, not after.
        del trial
    if totals.samples:
        writer.write([SAMPLE_END])
    return totals


_LARGE_BLOCK = 31 << 20
"""Bytes; glibc learns from freed blocks of up to 32 MiB."""


@cache
def _keep_freed_memory() -> None:
    """Let glibc keep what a sample frees for the next one.

    It returns freed memory to the system, page by page, until it has seen a larger block freed; the pages that every sample
    then had to be given again took a tenth of the time. The block is never touched, so it costs no memory; a second one, out of
    what glibc has kept, would be.
    """
    bytes(_LARGE_BLOCK)


@contextmanager
def no_cycle_collection() -> Iterator[None]:
    """Samples are trees and die with their last reference; looking for cycles among them costs a quarter of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _runs(refs: list[SampleRef], sizes: list[int]) -> list[list[SampleRef]]:
    """Cut the samples into runs of about equal bytes, never between the epochs of one sample."""
    share = max(_RUN, sum(sizes) / _MOST_RUNS)
    runs: list[list[SampleRef]] = []
    filled = share
    for position, (ref, size) in enumerate(zip(refs, sizes, strict=True)):
        if not runs or (filled >= share and ref.id_text != refs[position - 1].id_text):
            runs.append([])
            filled = 0
        runs[-1].append(ref)
        filled += size
    return runs
