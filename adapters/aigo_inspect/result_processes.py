"""The samples of one log written by several processes.

All write into the same file. Each takes the next run of samples, makes of it a part of the file in memory, and tells the others
how long the part is: where it begins is known as soon as the lengths of all before are, however late those are written. So
nothing is written twice, and the file does not depend on how many processes there are.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from functools import partial
from multiprocessing import current_process, get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkContext, ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, BinaryIO, Self

from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import HeldPart, packed

from .frame import Totals
from .import_settings import ImportSettings
from .reading import LogReader, open_log
from .result_writing import no_cycle_collection, write_run, write_runs
from .sample_refs import SampleRef
from .sources import local_path

_Context = ForkContext | ForkServerContext | SpawnContext
_MOST_HELD = 32 << 20
"""Bytes of parts that a process holds before it waits for their places."""
_PAUSE = 0.0005
"""Seconds between two looks at what the other processes have told."""
_NUMBER = 2
"""Bytes of a run's number in the pipe, which takes those of all runs at once."""
_LENGTH = 8


@dataclass(frozen=True)
class _Work:
    """What every process knows."""

    address: str
    runs: list[list[SampleRef]]
    reductions: dict[str, list[dict[str, Any]]]
    settings: ImportSettings
    output: Path
    """The file that all write into."""
    begin: int
    """Where its first part begins."""
    lengths: Path
    """A file with the lengths of the parts that are made (see `_Places`)."""
    numbers: Connection
    """Gives the numbers of the runs that nobody has taken yet."""


@dataclass(frozen=True)
class _RunResult:
    number: int
    totals: Totals
    loss: LossReport
    damage: list[Damage]
    redacted: Counter[str]
    changes: Counter[str]


def write_in_processes(
    reader: LogReader,
    runs: list[list[SampleRef]],
    reductions: dict[str, list[dict[str, Any]]],
    file: BinaryIO,
    settings: ImportSettings,
    totals: Totals,
    loss: LossReport,
    jobs: int,
) -> None:
    """Write runs of samples as `write_runs` does, by this process and `jobs - 1` others.

    Raises:
        MemoryError: a process was ended from outside, as systems do that run out of memory.
        OSError: the file cannot be written.
    """
    if current_process().daemon:
        # Such a process may not start others.
        write_runs(reader, runs, reductions, file, settings, totals, loss)
        return
    file.flush()
    begin = file.tell()
    before = _taken(reader, 0, Totals(), LossReport())
    with tempfile.NamedTemporaryFile(prefix="aigo-import-") as lengths:
        # All of it at once: where there is no room, that is told here.
        lengths.write(bytes(_LENGTH * len(runs)))
        lengths.flush()
        context = _processes()
        numbers, sender = context.Pipe(duplex=False)
        with numbers, _Others(context) as others:
            with sender:
                os.write(sender.fileno(), b"".join(n.to_bytes(_NUMBER, "little") for n in range(len(runs))))
            work = _Work(
                *(reader.address, runs, reductions, settings),
                *(Path(file.name), begin, Path(lengths.name), numbers),
            )
            for _ in range(jobs - 1):
                others.start(work, reader)
            try:
                results = _write_parts(work, reader, others.check)
                results += others.results()
            finally:
                _forget(reader)
                _give_back(reader, before)
    file.seek(0, os.SEEK_END)
    damaged = len(before.damage) + sum(len(result.damage) for result in results)
    if damaged > reader.bounds.damaged:
        # One process alone does not read on: where it stops, only it can tell.
        file.seek(begin)
        file.truncate()
        write_runs(reader, runs, reductions, file, settings, totals, loss)
        return
    for result in sorted(results, key=lambda result: result.number):
        totals.add(result.totals)
        loss.add(result.loss)
        _give_back(reader, result)


class _Others:
    """The other processes. None of them outlives the block."""

    def __init__(self, context: _Context):
        self._context = context
        self._working: dict[Connection, BaseProcess] = {}
        self._results: list[_RunResult] = []
        self._started: list[BaseProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Killed, not asked: they own nothing that has to be put in order.
        for process in self._started:
            process.kill()
        for process in self._started:
            process.join()
        for answers in self._working:
            answers.close()

    def start(self, work: _Work, reader: LogReader) -> None:
        # A fork has the open log already. What is far away is read through a connection, which two cannot share.
        forked = self._context.get_start_method() == "fork" and local_path(reader.address) is not None
        answers, sender = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work_for_another, args=(work, sender, reader if forked else None), daemon=True
        )
        with sender, _interrupts_held_back():
            process.start()
            self._started.append(process)
        self._working[answers] = process

    def check(self) -> None:
        """Raise what another process has raised."""
        for answers in wait(list(self._working), timeout=0):
            self._receive(answers)

    def results(self) -> list[_RunResult]:
        """What the others have done, when all are ready."""
        while self._working:
            for answers in wait(list(self._working)):
                self._receive(answers)
        return self._results

    def _receive(self, answers: Any) -> None:
        process = self._working.pop(answers)
        with answers:
            try:
                found = answers.recv()
            except (EOFError, OSError) as error:
                process.join()
                raise MemoryError(f"a process was ended from outside, with {process.exitcode}") from error
        if isinstance(found, Exception):
            raise found
        self._results += found


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Ctrl-C reaches all processes; it is this one that ends the others, which do not listen as soon as they can say so."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _processes() -> _Context:
    """How processes are started: a fork is ready at once, but safe only where no other thread can hold a lock."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return get_context("fork")
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["aigo_inspect.result_processes"])
    return context


def _work_for_another(work: _Work, answers: Connection, reader: LogReader | None) -> None:
    """In a process of its own: take part in the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        if reader is None:
            settings = work.settings
            reader = open_log(work.address, bounds=settings.bounds, redaction=settings.redaction())
        with no_cycle_collection():
            found: list[_RunResult] | Exception = _write_parts(work, reader, _check_parent)
    except Exception as error:  # noqa: BLE001  # it is raised where the result is awaited
        # What is raised there would not say where it comes from.
        error.add_note(traceback.format_exc())
        found = error
    answers.send(found)


def _check_parent() -> None:
    """End this process when nobody awaits its results any more."""
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        raise SystemExit(1)


def _write_parts(work: _Work, reader: LogReader, check: Callable[[], None]) -> list[_RunResult]:
    """Write one part after the other, as long as there are runs that nobody has taken."""
    results = []
    comma = packed(b",", work.settings.output_format)
    with (
        work.output.open("r+b", buffering=0) as file,
        work.lengths.open("r+b", buffering=0) as lengths,
    ):
        places = _Places(lengths.fileno(), work.begin, check)
        waiting = _Waiting(places)
        while taken := os.read(work.numbers.fileno(), _NUMBER):
            check()
            number = int.from_bytes(taken, "little")
            part = HeldPart(
                file, work.settings.output_format, _MOST_HELD - waiting.memory, partial(waiting.place, number)
            )
            _forget(reader)
            loss = LossReport()
            totals = write_run(reader, work.runs[number], work.reductions, part, work.settings, loss)
            if totals.samples:
                part.finish(comma)
            places.tell(number, part.length)
            waiting.add(number, part)
            results.append(_taken(reader, number, totals, loss))
        waiting.write_all()
    return results


class _Places:
    """Where parts begin, from the lengths that the processes tell each other.

    A file has eight bytes for each part: its length and one, as soon as the part is made, and nothing before.
    """

    def __init__(self, lengths: int, begin: int, check: Callable[[], None]):
        self._lengths = lengths
        self._check = check
        self._number = 0
        self._begin = begin

    def tell(self, number: int, length: int) -> None:
        """Tell how long a part is."""
        os.pwrite(self._lengths, (length + 1).to_bytes(_LENGTH, "little"), number * _LENGTH)

    def known(self, number: int) -> int | None:
        """Where a part begins; `None` while some part before it is not made. Ask for one after the other."""
        while self._number < number:
            length = int.from_bytes(os.pread(self._lengths, _LENGTH, self._number * _LENGTH), "little")
            if not length:
                return None
            self._begin += length - 1
            self._number += 1
        return self._begin

    def take_turn(self, *, wait: bool) -> bool:
        """Be the only one who writes; whether that is so.

        Systems let only one process at a time write into a file: a second one would spend its time on waiting, not on samples.
        """
        try:
            flock(self._lengths, LOCK_EX if wait else LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def end_turn(self) -> None:
        """Let others write."""
        flock(self._lengths, LOCK_UN)

    def wait_for(self, number: int) -> int:
        """Where a part begins, as soon as that is known."""
        while (place := self.known(number)) is None:
            self._check()
            time.sleep(_PAUSE)
        return place


class _Waiting:
    """Parts that are made and wait for their place, in order."""

    def __init__(self, places: _Places):
        self._places = places
        self._parts: deque[tuple[int, HeldPart]] = deque()

    @property
    def memory(self) -> int:
        """Bytes that they hold."""
        return sum(part.memory for _, part in self._parts)

    def add(self, number: int, part: HeldPart) -> None:
        """Add a part, and write those whose place is known, unless another process writes."""
        self._parts.append((number, part))
        if self._places.known(self._parts[0][0]) is None or not self._places.take_turn(wait=False):
            return
        while self._parts and (place := self._places.known(self._parts[0][0])) is not None:
            self._parts.popleft()[1].put(place)
        self._places.end_turn()

    def write_all(self) -> None:
        """Write them, as soon as their places are known."""
        while self._parts:
            number, part = self._parts.popleft()
            place = self._places.wait_for(number)
            self._places.take_turn(wait=True)
            part.put(place)
            self._places.end_turn()

    def place(self, number: int) -> int:
        """Where a part begins that is not made yet."""
        self.write_all()
        return self._places.wait_for(number)


# What reading a run adds to the reader


def _taken(reader: LogReader, number: int, totals: Totals, loss: LossReport) -> _RunResult:
    damage, redacted, changes = list(reader.damage), Counter(reader.redaction.found), Counter(reader.changes)
    return _RunResult(number, totals, loss, damage, redacted, changes)


def _forget(reader: LogReader) -> None:
    reader.damage.clear()
    reader.redaction.found.clear()
    reader.changes.clear()


def _give_back(reader: LogReader, result: _RunResult) -> None:
    reader.damage += result.damage
    reader.redaction.found.update(result.redacted)
    reader.changes.update(result.changes)
