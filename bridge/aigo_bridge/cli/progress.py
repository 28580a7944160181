"""Progress of a run: a bar on a terminal, plain lines elsewhere, both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aigo_bridge.cli.terminal import one_line
from aigo_bridge.engine import Progress

PLAIN_INTERVAL = 10.0
"""Seconds between two plain lines (failures and the end are always told)."""


@contextmanager
def progress(*, enabled: bool = True, several: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """A function to report progress to; `None` when disabled. `several`: failures name the task beside the sample."""
    if not enabled:
        yield None
    elif sys.stderr.isatty():
        with _bar(several) as tell:
            yield tell
    else:
        yield _plain(several)


@contextmanager
def _bar(several: bool) -> Iterator[Callable[[Progress], None]]:
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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("samples", total=None, failed="")
        told: set[int] = set()

        def tell(state: Progress) -> None:
            failed = f"[red]{state.failed} failed[/red]" if state.failed else ""
            bar.update(
                task, description=counted(state), total=state.total, completed=state.done, failed=failed
            )
            if _is_new(state, told):
                bar.console.print(Text(failure_line(state, several=several), style="red"))

        yield tell


def _plain(several: bool) -> Callable[[Progress], None]:
    last = time.monotonic()
    told: set[int] = set()

    def tell(state: Progress) -> None:
        nonlocal last
        if _is_new(state, told):
            print(failure_line(state, several=several), file=sys.stderr)  # noqa: T201
        now = time.monotonic()
        if state.done == state.total or state.done == 0 or now - last >= PLAIN_INTERVAL:
            last = now
            failed = f", {state.failed} failed" if state.failed else ""
            print(f"{state.done}/{state.total} {counted(state)}{failed}", file=sys.stderr, flush=True)  # noqa: T201

    return tell


def counted(state: Progress) -> str:
    """What the numbers are of."""
    return "trials" if state.trials else "samples"


def _is_new(state: Progress, told: set[int]) -> bool:
    """Whether a trial has failed in a way that has not been told of its sample; then it is."""
    if state.error is None:
        return False
    key = hash((state.task, str(state.sample_id), state.error))
    if key in told:
        return False
    told.add(key)
    return True


def failure_line(state: Progress, *, several: bool = False) -> str:
    """One line about the sample that has just failed; of several trials, with the number of its own, from 1."""
    task = f"{one_line(state.task)}: " if several and state.task is not None else ""
    trial = "" if state.trial is None else f", trial {state.trial + 1}"
    return f"{task}sample {one_line(str(state.sample_id))}{trial}: {one_line(state.error or '')}"
