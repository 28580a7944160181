"""Progress of a run on standard error: a bar on a terminal, plain lines otherwise.

In addition to counts, it prints failures (equal ones once, then their number), retries with their reasons,
and, when nothing changes, how to stop and resume.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from aigo_bridge.cli.terminal import colour_of, is_quiet, is_verbose, name_of, one_line
from aigo_bridge.engine.protocol import Progress, ProgressTotals, Retry
from aigo_bridge.errors import error_kind
from aigo_bridge.models.gate import waiting_calls
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

INTERVAL = 10.0
"""Minimum seconds between two lines of the same kind. New failures and the end are always printed."""

STALL = 60.0
"""Seconds without a finished sample before a note on how to stop and resume; the interval doubles each time.
"""

CALL_WAIT = 25.0
"""Seconds without an answer to a model call before the call is named; the interval doubles each time."""

ALL_FAILED = 5
"""Number of samples after which a note says that all of them failed with the same error."""


@dataclass
class _Failures:
    """Failures with the same error."""

    line: str
    """Line of the first failure, as printed."""
    number: int = 1
    told: int = 1


class Monitor:
    """Monitor of a run that decides which lines are printed.

    Args:
        write: function that prints a line with a rich style.
        several: whether failures name the task in addition to the sample.
        resumable: whether `--resume` continues such a run.
        counts: whether counts are also printed as lines.
        show: function that receives every state, if counts are shown in another way.
        each: whether to print a line for every finished trial and every retry.
        totals: whether lines of counts include the interim metrics.
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
        each: bool = False,
        totals: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._write = write
        self._several = several
        self._resumable = resumable
        self._counts = counts
        self._show = show
        self._each = each
        self._totals = totals
        self._clock = clock
        self._lock = threading.RLock()
        self._state: Progress | None = None
        self._failures: dict[tuple[str | None, str], _Failures] = {}
        self._told: set[int] = set()
        self._retries: list[tuple[float, Retry]] = []
        """Retries with their times."""
        self._counted_at = self._retried_at = self._repeated_at = self._moved_at = clock()
        self._stall = STALL
        self._call_wait = CALL_WAIT
        self._said_all_failed = False

    def report(self, state: Progress) -> None:
        """Record a finished trial or a planned retry."""
        with self._lock:
            if state.retry is not None:
                self._retry(state.retry)
                return
            self._state = state
            self._moved_at, self._stall = self._clock(), STALL
            if self._show is not None:
                self._show(state)
            self._failure(state)
            if self._each and state.error is None and state.sample_id is not None:
                self._write(f"{_sample(state, several=self._several)}: done", "dim")
            self._count(state)

    def tick(self) -> None:
        """Print the lines that depend on elapsed time."""
        with self._lock:
            now = self._clock()
            if now - self._repeated_at >= INTERVAL:
                self._repeated_at = now
                self._tell_repeated()
            self._tell_waiting()
            state = self._state
            if state is not None and state.done < state.total and now - self._moved_at >= self._stall:
                self._stalled(state, now)

    def end(self) -> None:
        """Record the end of the run."""
        with self._lock:
            self._tell_repeated()

    def waiting(self) -> str:
        """Return a short text of the current wait; empty if unknown."""
        with self._lock:
            now = self._clock()
            self._retries = [(until, retry) for until, retry in self._retries if until > now]
            if not self._retries:
                return ""
            until, retry = min(self._retries, key=lambda each: each[0])
            number = len(self._retries)
            calls = "a call waits" if number == 1 else f"{number} calls wait"
            return f"{calls}, next attempt in {until - now:.0f} s, after: {one_line(retry.reason, 100)}"

    def _retry(self, retry: Retry) -> None:
        now = self._clock()
        is_alone = not self.waiting()
        self._retries.append((now + retry.wait, retry))
        is_due = self._counts and (is_alone or now - self._retried_at >= INTERVAL)
        if not (is_due or self._each):
            return
        self._retried_at = now
        number = len(self._retries) - 1
        more = f"; {number} other call{'s' * (number > 1)} also wait{'s' * (number == 1)}" if number else ""
        self._write(
            f"{one_line(retry.model)}: {one_line(retry.reason)}: retrying in "
            f"{retry.wait:.0f} s (attempt {retry.attempt + 1}){more}",
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
                f"all {state.done} {counted(state)} so far failed with this error. "
                f"{self._how_to_stop()}. Use --fail-on-error N to stop such runs automatically",
                "yellow",
            )

    def _is_new(self, state: Progress) -> bool:
        """Return whether a sample has not failed with this error before, in another trial."""
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
            so_far = totals_line(state.totals) if self._totals else ""
            more = f"; {so_far}" if so_far else ""
            self._write(f"{state.done}/{state.total} {counted(state, state.total)}{failed}{more}", None)

    def _tell_waiting(self) -> None:
        calls = waiting_calls()
        if not calls or calls[0].seconds < self._call_wait:
            return
        call = calls[0]
        self._call_wait = 2 * call.seconds
        sample = "" if call.sample is None else f", sample {one_line(call.sample)}"
        number = f" (and {len(calls) - 1} more)" if len(calls) > 1 else ""
        self._write(
            f"waiting {call.seconds:.0f} s for an answer of {one_line(call.model)}{sample}{number}; "
            "limit each model call with --attempt-timeout SECONDS",
            "yellow",
        )

    def _stalled(self, state: Progress, now: float) -> None:
        self._stall *= 2
        unit = "trial" if state.trials else "sample"
        what = self.waiting() or "waiting for answers"
        self._write(
            f"no {unit} has finished for {now - self._moved_at:.0f} s ({state.done}/{state.total}): "
            f"{what}. {self._how_to_stop()}. Use --max-connections 1 to reduce the load",
            "yellow",
        )

    def _how_to_stop(self) -> str:
        if self._resumable:
            return "Ctrl-C stops the run and keeps finished samples; --resume continues it"
        return "Ctrl-C stops the run"


def counted(state: Progress, number: int | None = None) -> str:
    """Return the noun for the counts of a progress, for a number of them."""
    return ("trial" if state.trials else "sample") + "s" * (number != 1)


MOST_ROWS = 20
"""Maximum number of tasks with a row each; of more tasks, only the sum is shown."""

SHOWN_SCORES = 3
"""Maximum number of scores whose interim mean is shown."""


def totals_line(totals: ProgressTotals) -> str:
    """Return a short text of the interim metrics of the trials; empty if unknown."""
    scores = list(totals.scores.items())
    parts = [f"{name_of(name)} {value:.3g}" for name, value in scores[:SHOWN_SCORES]]
    if len(scores) > SHOWN_SCORES:
        parts.append(f"{len(scores) - SHOWN_SCORES} more scores")
    if totals.tokens:
        parts.append(f"{_short(totals.tokens)} tokens")
    if totals.cost is not None:
        parts.append(f"cost {totals.cost:.4g}")
    if totals.retries:
        parts.append(plural(totals.retries, "retry", "retries"))
    return ", ".join(parts)


def _short(number: int) -> str:
    """Return a large number in three digits: `12.3k` for 12,345."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if number >= size:
            return f"{number / (10**3 if letter == 'k' else size):.3g}{letter}"
    return f"{number:,}"


def failure_line(state: Progress, *, several: bool = False) -> str:
    """Return a line about the sample that has just failed; trial numbers start at 1."""
    return f"{_sample(state, several=several)}: {one_line(state.error or '')}"


def _sample(state: Progress, *, several: bool) -> str:
    task = f"{one_line(state.task)}: " if several and state.task is not None else ""
    trial = "" if state.trial is None else f", trial {state.trial + 1}"
    return f"{task}sample {one_line(str(state.sample_id))}{trial}"


# Displays


TICK = 1.0
"""Seconds between two checks for changes."""


Display = Literal["rich", "plain", "none"]
"""Display of progress: a bar, lines, or nothing."""

DISPLAYS: tuple[Display, ...] = get_args(Display)


@contextmanager
def progress(
    *, enabled: bool = True, display: Display | None = None, several: bool = False, resumable: bool = True
) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function to report progress to; `None` if disabled.

    Args:
        enabled: whether progress is shown at all.
        display: kind of display; `None`: a bar on a terminal, otherwise lines; nothing with `--quiet`.
        several: whether failures name the task in addition to the sample.
        resumable: whether `--resume` can continue the run.
    """
    # The default lines stay stable because other programs parse them.
    totals = display == "plain" or is_verbose()
    if display is None:
        display = "none" if is_quiet() else "rich" if sys.stderr.isatty() else "plain"
    if not enabled or display == "none":
        yield None
        return
    with _bar(several, resumable) if display == "rich" else _lines(several, resumable, totals) as monitor:
        with _ticking(monitor):
            yield monitor.report
        monitor.end()


@contextmanager
def _ticking(monitor: Monitor) -> Iterator[None]:
    """Call the monitor regularly, even if no progress is reported."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(TICK):
            monitor.tick()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _lines(several: bool, resumable: bool, totals: bool) -> Iterator[Monitor]:
    def write(line: str, style: str | None) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201  # plain progress lines

    yield Monitor(write, several=several, resumable=resumable, counts=True, each=is_verbose(), totals=totals)


@contextmanager
def _bar(several: bool, resumable: bool) -> Iterator[Monitor]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    console = Console(stderr=True, force_terminal=True, no_color=not colour_of(sys.stderr))
    bar: Bar
    rows: dict[str, TaskID] = {}
    failures = Counter[str]()

    def write(line: str, style: str | None) -> None:
        bar.console.print(Text(line, style=style or ""))

    def show(state: Progress) -> None:
        failed = f"[red]{state.failed} failed[/red]" if state.failed else ""
        bar.update(
            task,
            description=counted(state),
            total=state.total,
            completed=state.done,
            failed=failed,
            totals=escape(totals_line(state.totals)),
        )
        if several and 1 < len(state.tasks) <= MOST_ROWS:
            show_task(state)

    def show_task(state: Progress) -> None:
        for name, number in state.tasks.items():
            if name not in rows:
                rows[name] = bar.add_task(
                    escape(f"  {one_line(name, 40)}"), total=number, failed="", totals=""
                )
        if state.task in rows and state.sample_id is not None:
            failures[state.task] += state.error is not None
            number = failures[state.task]
            bar.update(rows[state.task], advance=1, failed=f"[red]{number} failed[/red]" if number else "")

    monitor = Monitor(write, several=several, resumable=resumable, show=show, each=is_verbose())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TextColumn("{task.fields[totals]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        _waiting(monitor, rows),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("samples", total=None, failed="", totals="")
        yield monitor


def _waiting(monitor: Monitor, rows: Mapping[str, TaskID]) -> ProgressColumn:
    """Return a column with the current wait and its remaining time, for the run and not for each task."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Waiting(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text("" if task.id in rows.values() else monitor.waiting(), style="yellow")

    return Waiting()
