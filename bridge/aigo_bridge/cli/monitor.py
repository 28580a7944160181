"""What is told of a run while it goes on, whatever it is told on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from aigo_bridge.cli.terminal import one_line
from aigo_bridge.engine import Progress, Retry
from aigo_bridge.errors import error_kind

INTERVAL = 10.0
"""Seconds between two lines of one kind (new failures and the end are always told)."""

STALL = 60.0
"""Seconds without a finished sample after which is said how to stop and to go on; said again after twice the time, and so on."""

ALL_FAILED = 5
"""Samples after which is said that all of them failed with the same error."""


@dataclass
class _Failures:
    """Failures with the same error."""

    line: str
    """The first of them, as told."""
    number: int = 1
    told: int = 1


class Monitor:
    """Hears of a run, and decides what is said of it.

    Args:
        write: takes a line, and how it looks (a style of rich).
        several: failures name the task beside the sample.
        resumable: whether `--resume` continues such a run.
        counts: whether counts are lines, too.
        show: told of every state, where counts stand elsewhere.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        write: Callable[[str, str | None], None],
        *,
        several: bool = False,
        resumable: bool = True,
        counts: bool = False,
        show: Callable[[Progress], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._write = write
        self._several = several
        self._resumable = resumable
        self._counts = counts
        self._show = show
        self._clock = clock
        self._lock = threading.RLock()
        self._state: Progress | None = None
        self._failures: dict[tuple[str | None, str], _Failures] = {}
        self._told: set[int] = set()
        self._retries: list[tuple[float, Retry]] = []
        """Calls that will be made again, with the time of that."""
        self._counted_at = self._retried_at = self._repeated_at = self._moved_at = clock()
        self._stall = STALL
        self._said_all_failed = False

    def report(self, state: Progress) -> None:
        """A trial has ended, or a call will be made again."""
        with self._lock:
            if state.retry is not None:
                self._retry(state.retry)
                return
            self._state = state
            self._moved_at, self._stall = self._clock(), STALL
            if self._show is not None:
                self._show(state)
            self._failure(state)
            self._count(state)

    def tick(self) -> None:
        """Say what only time brings."""
        with self._lock:
            now = self._clock()
            if now - self._repeated_at >= INTERVAL:
                self._repeated_at = now
                self._tell_repeated()
            state = self._state
            if state is not None and state.done < state.total and now - self._moved_at >= self._stall:
                self._stalled(state, now)

    def end(self) -> None:
        """The run has ended."""
        with self._lock:
            self._tell_repeated()

    def waiting(self) -> str:
        """What is waited for now, in a few words; empty when nothing is known."""
        with self._lock:
            now = self._clock()
            self._retries = [(until, retry) for until, retry in self._retries if until > now]
            if not self._retries:
                return ""
            until, retry = min(self._retries, key=lambda each: each[0])
            number = len(self._retries)
            calls = "a call waits" if number == 1 else f"{number} calls wait"
            return f"{calls}, the next {until - now:.0f} s, after: {one_line(retry.reason, 100)}"

    def _retry(self, retry: Retry) -> None:
        now = self._clock()
        first = not self.waiting()
        self._retries.append((now + retry.wait, retry))
        if not self._counts or (not first and now - self._retried_at < INTERVAL):
            return
        self._retried_at = now
        others = len(self._retries) - 1
        more = f"; {others} other call{'s' * (others > 1)} wait{'s' * (others == 1)}, too" if others else ""
        self._write(
            f"{one_line(retry.model)}: {one_line(retry.reason)}: trying again in {retry.wait:.0f} s"
            f" (attempt {retry.attempt + 1}){more}",
            "yellow",
        )

    def _failure(self, state: Progress) -> None:
        if state.error is None or not self._is_new(state):
            return
        kind = (state.task if self._several else None, error_kind(state.error))
        same = self._failures.get(kind)
        if same is None:
            line = failure_line(state, several=self._several)
            self._failures[kind] = _Failures(line)
            self._write(line, "red")
        else:
            same.number += 1
        if (
            not self._said_all_failed
            and state.done == state.failed >= ALL_FAILED
            and len(self._failures) == 1
        ):
            self._said_all_failed = True
            self._write(
                f"all {state.done} {counted(state)} so far failed with this error. {self._how_to_stop()};"
                " --fail-on-error N stops such a run by itself",
                "yellow",
            )

    def _is_new(self, state: Progress) -> bool:
        """Whether a sample has not failed like this before, in another trial."""
        key = hash((state.task, str(state.sample_id), state.error))
        new = key not in self._told
        self._told.add(key)
        return new

    def _tell_repeated(self) -> None:
        for same in self._failures.values():
            more = same.number - same.told
            if more:
                same.told = same.number
                self._write(f"{more} more with the same error as: {same.line}", "red")

    def _count(self, state: Progress) -> None:
        now = self._clock()
        if not self._counts:
            return
        if state.done in (0, state.total) or now - self._counted_at >= INTERVAL:
            self._counted_at = now
            failed = f", {state.failed} failed" if state.failed else ""
            self._write(f"{state.done}/{state.total} {counted(state)}{failed}", None)

    def _stalled(self, state: Progress, now: float) -> None:
        self._stall *= 2
        unit = "trial" if state.trials else "sample"
        what = self.waiting() or "answers are waited for"
        self._write(
            f"no {unit} has ended for {now - self._moved_at:.0f} s ({state.done}/{state.total}): {what}. {self._how_to_stop()};"
            " --max-connections 1 asks for less at a time",
            "yellow",
        )

    def _how_to_stop(self) -> str:
        if self._resumable:
            return "Ctrl-C stops and keeps what is finished, --resume then goes on"
        return "Ctrl-C stops"


def counted(state: Progress) -> str:
    """What the numbers are of."""
    return "trials" if state.trials else "samples"


def failure_line(state: Progress, *, several: bool = False) -> str:
    """One line about the sample that has just failed; of several trials, with the number of its own, from 1."""
    task = f"{one_line(state.task)}: " if several and state.task is not None else ""
    trial = "" if state.trial is None else f", trial {state.trial + 1}"
    return f"{task}sample {one_line(str(state.sample_id))}{trial}: {one_line(state.error or '')}"
