"""Conversion of every inspect-evals task."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from typing import Any

from tests.registries.published_rows import inspect_row
from tests.registries.rows import MissingCellError, Row, fitting_row
from tests.registries.sources import OfflineError, Sources, guessed, limited
from tests.registries.table import Verdict, of_error

SECONDS = 15.0
"""Maximum CPU time for one task with all rows tried."""


def verdicts(names: frozenset[str] | None = None) -> Iterator[Verdict]:
    """Return the conversion outcome of each task.

    Args:
        names: names of tasks. `None` converts all registered tasks.
    """
    from inspect_ai._eval.registry import task_create

    from aigo_inspect.benchmarks.convert import convert
    from aigo_inspect.benchmarks.solvers import no_model
    from aigo_inspect.benchmarks.tasks import listing

    with guessed() as sources, no_model():
        for name in [benchmark.name for benchmark in listing().benchmarks]:
            if not name.startswith("inspect_evals/") or (names is not None and name not in names):
                continue
            try:
                with limited(SECONDS), redirect_stdout(io.StringIO()):
                    task = _made(partial(task_create, name), sources)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a stranger's code
                yield of_error(name, error, rows=f"{type(error).__name__}: {error}")
                continue
            try:
                with limited(SECONDS), redirect_stdout(io.StringIO()):
                    converted = convert(task)
            except Exception as error:  # noqa: BLE001  # a crash is an answer, too, and is counted
                yield of_error(name, error)
                continue
            yield Verdict.of_document(name, converted.task)


def _made(make: Callable[[], Any], sources: Sources) -> Any:
    """Construct a task with guessed rows.

    Raises:
        LookupError: no rows fit.
    """
    tasks: list[Any] = []

    def use(cells: Row) -> None:
        random.seed(0)
        sources.start(cells)
        try:
            task = make()
        except MissingCellError:
            raise
        except KeyError as error:  # also for a data frame, which does not record the cells read
            key = error.args[0] if error.args else None
            if sources.last and isinstance(key, str) and key not in cells[sources.last]:
                raise MissingCellError((sources.last, key)) from error
            raise
        if not len(task.dataset):
            raise ValueError("no samples")
        tasks[:] = [task]

    fitting_row(use, sources=inspect_row, hopeless=(OfflineError, ImportError, AssertionError))
    return tasks[0]
