"""Progress of a run: a bar on a terminal, plain lines elsewhere, both on standard error.

Beside the count: failures, equal ones once and then by their number; calls that are to be made again, and why; and when nothing moves, how to
stop and how to go on.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aigo_bridge.cli.monitor import Monitor, counted
from aigo_bridge.engine import Progress

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

TICK = 1.0
"""Seconds between two looks at whether anything moves."""


@contextmanager
def progress(
    *, enabled: bool = True, several: bool = False, resumable: bool = True
) -> Iterator[Callable[[Progress], None] | None]:
    """A function to report progress to; `None` when disabled.

    Args:
        enabled: whether anybody wants to know.
        several: failures name the task beside the sample.
        resumable: whether `--resume` continues such a run.
    """
    if not enabled:
        yield None
        return
    with _bar(several, resumable) if sys.stderr.isatty() else _lines(several, resumable) as monitor:
        with _ticking(monitor):
            yield monitor.report
        monitor.end()


@contextmanager
def _ticking(monitor: Monitor) -> Iterator[None]:
    """Have the monitor look at the clock, also while nothing is reported."""
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
def _lines(several: bool, resumable: bool) -> Iterator[Monitor]:
    def write(line: str, style: str | None) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201  # lines for people, where there is no terminal

    yield Monitor(write, several=several, resumable=resumable, counts=True)


@contextmanager
def _bar(several: bool, resumable: bool) -> Iterator[Monitor]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    console = Console(stderr=True)
    bar: Bar

    def write(line: str, style: str | None) -> None:
        bar.console.print(Text(line, style=style or ""))

    def show(state: Progress) -> None:
        failed = f"[red]{state.failed} failed[/red]" if state.failed else ""
        bar.update(task, description=counted(state), total=state.total, completed=state.done, failed=failed)

    monitor = Monitor(write, several=several, resumable=resumable, show=show)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        _waiting(monitor),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("samples", total=None, failed="")
        yield monitor


def _waiting(monitor: Monitor) -> ProgressColumn:
    """A column that says what is waited for, and how long yet."""
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Waiting(ProgressColumn):
        def render(self, task: Any) -> Text:
            return Text(monitor.waiting(), style="yellow")

    return Waiting()
