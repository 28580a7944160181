"""How far a run is, on every engine: trials that ended, and failures that `--fail-on-error` allows."""

from __future__ import annotations

import contextlib
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Progress, ProgressTotals, Retry
from aigo_bridge.errors import UsageError
from aigo_bridge.execution.journal import Asker, Journal
from aigo_bridge.execution.program import Failure
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.tape import TaskTape, TrialTape

_TOLERANCE = re.compile(r"\d+|0?\.\d+|1\.0*", re.ASCII)
_SPENT = re.compile(r"stopped: \d+ (sample|trial)s? failed, --fail-on-error tolerates \d+", re.ASCII)


def tolerated(text: str | None, num_samples: int) -> int:
    """How many failed samples a run may have: `N`, or a share such as `0.1`; nothing means none.

    Raises:
        UsageError: the text is neither.
    """
    if text is None:
        return 0
    if not _TOLERANCE.fullmatch(text):
        raise UsageError(
            f"--fail-on-error: found {text!r}, expected a number of samples or a share between 0 and 1",
            code=Code.WRONG_OPTION,
        )
    # Exactly: in binary floating point, 0.29 of 100 would be 28.
    return int(text) if text.isdigit() else int(Decimal(text) * num_samples)


def allowed(text: str | None, num_samples: int) -> int | None:
    """How many samples may fail before a run is stopped; without the option it never is (see `tolerated`)."""
    return None if text is None else tolerated(text, num_samples)


@dataclass
class Tolerance:
    """Failed samples while a task runs. One has failed when none of its trials went well."""

    allowed: int | None = None
    """As many may fail; `None`: any number."""
    num_trials: int = 1
    """Trials of each sample."""
    num_failed: int = 0
    """Samples that have failed."""
    num_failed_trials: int = 0
    num_good_trials: int = 0
    _trials: Counter[str | int] = field(default_factory=Counter)
    """Sample → its failed trials."""

    def note(self, sample_id: str | int, *, failed: bool) -> None:
        """One trial of a sample has ended."""
        if not failed:
            self.num_good_trials += 1
            return
        self.num_failed_trials += 1
        self._trials[sample_id] += 1
        self.num_failed += self._trials[sample_id] == self.num_trials

    @property
    def is_spent(self) -> bool:
        """Whether more samples have failed than may: no further one is begun.

        Engines may go through the first trials of all samples before the second ones. While nothing goes
        well, as many trials as so many samples have are enough.
        """
        if self.allowed is None:
            return False
        hopeless = not self.num_good_trials and self.num_failed_trials > self.allowed * self.num_trials
        return self.num_failed > self.allowed or hopeless

    @property
    def reason(self) -> str:
        """Why a run was stopped."""
        several = self.num_trials > 1
        number, unit = (self.num_failed_trials, "trial") if several else (self.num_failed, "sample")
        tolerated = plural(self.allowed, "sample") if several and self.allowed is not None else self.allowed
        return f"stopped: {number} {unit}{'s' * (number != 1)} failed, --fail-on-error tolerates {tolerated}"


def is_spent_tolerance(reason: str) -> bool:
    """Whether a run ended by a `Tolerance.reason`: the engine's log has the words alone."""
    return _SPENT.match(reason) is not None


@dataclass
class _Counts:
    """Trials of a whole run, of one task or of several."""

    total: int
    done: int = 0
    failed: int = 0
    retries: int = 0
    tokens: int | None = None
    cost: float | None = None
    scores: dict[tuple[str | None, str, str], _Mean] = field(default_factory=dict)
    """Task, scorer and score → its numbers."""

    def add(self, task: str | None, spent: Spent) -> None:
        """A trial has ended."""
        for scorer, values in spent.scores:
            for name, value in values.items():
                # A score that is a text, or missing, is not a number: neither is the mean of those that are.
                if isinstance(value, int | float) and math.isfinite(value):
                    self.scores.setdefault((task, scorer, name), _Mean()).add(value)
        if spent.tokens is not None:
            self.tokens = (self.tokens or 0) + spent.tokens
        if spent.cost is not None:
            self.cost = (self.cost or 0.0) + spent.cost

    def totals(self) -> ProgressTotals:
        """What the trials so far came to."""
        tasks = {task for task, _, _ in self.scores}
        scorers = {(task, scorer) for task, scorer, _ in self.scores}
        scores = {}
        for (task, scorer, name), mean in self.scores.items():
            several = len(scorers) > len(tasks)
            parts = [task if len(tasks) > 1 else None, scorer if several else None, name]
            scores[".".join(part for part in parts if part is not None)] = mean.value
        return ProgressTotals(scores, self.tokens, self.cost, self.retries)


@dataclass
class _Mean:
    total: float = 0.0
    number: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.number += 1

    @property
    def value(self) -> float:
        return self.total / self.number


@dataclass
class Spent:
    """What one trial came to, for people who watch."""

    scores: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """Scorers with the values that they gave, one entry for each row."""
    tokens: int | None = None
    """Tokens that its calls used; `None`: not known."""
    cost: float | None = None
    """What they cost; `None`: not known."""

    def note(self, scorer: str, result: Score | Failure) -> None:
        """A scorer has ended; one that failed gave nothing."""
        if isinstance(result, Score):
            self.scores.append((scorer, result.values))


_NOTHING = Spent()


class ProgressCounter:
    """Counts trials as they end; one per run, used from one event loop.

    Args:
        tell: told after each trial; `None`: nobody is.
        total: trials of the whole run.
        trials: whether samples have several trials, so that failures name theirs.
    """

    def __init__(self, tell: Callable[[Progress], None] | None, total: int, *, trials: bool = False):
        self._tell = tell
        self._counts = _Counts(total)
        self._trials = trials
        self._task: str | None = None
        self.tolerance = Tolerance()
        """Of a task: which of its samples have failed, and how many may."""
        self.journal: Journal | None = None
        """Of a task: what keeps the answers of its models while it runs."""
        self._tape: TaskTape | None = None
        """Of a task: what its calls of models go past."""
        self._say()

    def of_task(
        self,
        name: str,
        tolerance: Tolerance | None = None,
        journal: Journal | None = None,
        tape: TaskTape | None = None,
    ) -> ProgressCounter:
        """The same counter for one of the run's tasks: names it, and counts what fails in it."""
        part = object.__new__(ProgressCounter)
        part._tell, part._counts, part._trials, part._task = self._tell, self._counts, self._trials, name
        part.tolerance = tolerance or Tolerance()
        part.journal = journal
        part._tape = tape
        return part

    def asker(self, sample_id: str | int, trial: int, who: str) -> Asker | None:
        """Who asks in one trial (numbered from 0), the solver or a scorer; `None`: nobody needs to know."""
        if self.journal is None and self._tape is None:
            return None
        tape: TrialTape | None = None
        if self._tape is not None:
            from aigo_bridge.engine.tape import TrialTape

            tape = TrialTape(self._tape, sample_id, trial, who)
        return Asker(self.journal, tape, sample_id, trial, who)

    def retrying(self, retry: Retry) -> None:
        """A call of a model has failed, and will be made again."""
        self._counts.retries += 1
        self._say(retry=retry)

    def finished(
        self, sample_id: str | int, trial: int, failure: Failure | None, spent: Spent = _NOTHING
    ) -> None:
        """One trial (numbered from 0) of a sample has ended, with a failure or without."""
        self._counts.done += 1
        self._counts.add(self._task, spent)
        self._counts.failed += failure is not None
        self.tolerance.note(sample_id, failed=failure is not None)
        if failure is not None and self.journal is not None:
            self.journal.forget(sample_id, trial)
        self._say(sample_id, trial if self._trials else None, failure)

    def _say(
        self,
        sample_id: str | int | None = None,
        trial: int | None = None,
        failure: Failure | None = None,
        retry: Retry | None = None,
    ) -> None:
        if self._tell is None:
            return
        counts = self._counts
        # Whoever is told may be gone (a closed terminal): no reason to lose a sample that has been solved and
        # scored.
        with contextlib.suppress(Exception):
            self._tell(
                Progress(
                    counts.done,
                    counts.total,
                    counts.failed,
                    sample_id,
                    None if failure is None else failure.message,
                    self._task,
                    self._trials,
                    trial,
                    retry,
                    counts.totals(),
                )
            )


# Calls that are made again


ATTEMPTS = 8
"""Attempts per call after transient failures."""

FIRST_WAIT = 3.0
"""Seconds before a call is made again for the first time, where the endpoint does not ask for a time; doubled
each time."""

LONGEST_WAIT = 30 * 60.0
"""Seconds that are waited at most, whatever the endpoint asks for."""


def wait_after(attempt: int, asked: float | None) -> float:
    """Seconds until a call is made again: as the endpoint asks, else exponential; with jitter.

    Args:
        attempt: number of the attempt that failed, from 1.
        asked: what the endpoint has asked for (`Retry-After`).
    """
    if asked is not None:
        return min(asked, LONGEST_WAIT) + random.uniform(0, min(1.0, asked / 4))  # noqa: S311  # no secret
    exponential = FIRST_WAIT * 2.0 ** min(attempt - 1, 20)
    return min(exponential, LONGEST_WAIT) + random.uniform(0, FIRST_WAIT)  # noqa: S311  # no secret
