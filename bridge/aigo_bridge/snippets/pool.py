"""Workers for plain calls: one to begin with, more when calls have to wait, and each one can be stopped while it works.

A worker costs about 30 MB, and its start a tenth of a second of processor time. So a call waits a moment for one that is busy
before another is started; thousands of quick calls share one, and a slow one holds nobody up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets.exchanging import PlainWorker
from aigo_bridge.snippets.snippet import SnippetLimits

MOST_WORKERS = max(4, min(os.cpu_count() or 1, 16))
"""Workers of one host: its processors, but at least 4, as snippets also wait; at most 16."""

PATIENCE = 0.25
"""Seconds that a call waits for a busy worker before another one is started."""


class Job:
    """One call, which anybody may stop. Thread-safe."""

    def __init__(self, label: str):
        self.label = label
        self._lock = threading.Lock()
        self._worker: PlainWorker | None = None
        self.stopped = False
        """Nobody waits for it any more."""

    def stop(self) -> None:
        """Kill the worker that serves it, or see to it that none begins to; does not wait."""
        with self._lock:
            self.stopped = True
            if self._worker is not None:
                self._worker.kill()

    def begin(self, worker: PlainWorker) -> None:
        """From now on stopping the job kills that worker."""
        with self._lock:
            self._worker = worker
            if self.stopped:
                worker.kill()

    def finish(self) -> bool:
        """From now on stopping the job kills nothing; whether nothing has been killed."""
        with self._lock:
            self._worker = None
            return not self.stopped


class Pool:
    """The workers of one host. Thread-safe."""

    def __init__(self) -> None:
        # Re-entrant: a garbage collection inside may close the pool's owner.
        self._changed = threading.Condition(threading.RLock())
        self._free: list[PlainWorker] = []
        self._jobs: set[Job] = set()
        self._size = 0
        self._generation = 0

    @contextmanager
    def worker(self, job: Job, limits: SnippetLimits) -> Iterator[PlainWorker]:
        """A worker for one job; one that does not survive the job is taken out of the pool.

        Raises:
            SnippetError: no process can be started for it, or it was stopped while it waited.
        """
        worker, generation = self._take(job, limits)
        sound = False
        try:
            job.begin(worker)
            yield worker
            sound = True
        finally:
            kept = job.finish() and sound
            with self._changed:
                self._jobs.discard(job)
                kept = kept and generation == self._generation
                if kept:
                    self._free.append(worker)
                elif generation == self._generation:
                    self._size -= 1
                self._changed.notify()
            if not kept:
                worker.end()

    def close(self) -> None:
        """End all workers at once, busy ones too; a call after that starts anew."""
        with self._changed:
            self._generation += 1
            free, self._free, self._size = self._free, [], 0
            for job in self._jobs:
                job.stop()
            self._changed.notify_all()
        for worker in free:
            worker.end()

    def wake(self) -> None:
        """Let waiting jobs see that they were stopped."""
        with self._changed:
            self._changed.notify_all()

    def _take(self, job: Job, limits: SnippetLimits) -> tuple[PlainWorker, int]:
        since = time.monotonic()
        dead: list[PlainWorker] = []
        try:
            with self._changed:
                while True:
                    if job.stopped:
                        raise SnippetError(f"{job.label}: was stopped before it began")
                    while self._free:
                        worker = self._free.pop()
                        if worker.usable:
                            self._jobs.add(job)
                            return worker, self._generation
                        dead.append(worker)
                        self._size -= 1
                    left = PATIENCE - (time.monotonic() - since)
                    if self._size == 0 or (self._size < MOST_WORKERS and left <= 0):
                        self._size += 1
                        generation = self._generation
                        self._jobs.add(job)
                        break
                    self._changed.wait(max(left, 0.01) if self._size < MOST_WORKERS else None)
        finally:
            for worker in dead:
                worker.end()
        try:
            return PlainWorker(limits), generation
        except OSError as error:
            with self._changed:
                self._jobs.discard(job)
                if generation == self._generation:
                    self._size -= 1
                self._changed.notify()
            raise SnippetError(f"{job.label}: cannot start a process for it: {error}") from error
