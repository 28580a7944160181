"""Progress of a run on any engine: finished trials, and failures that `--fail-on-error` allows."""

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
from aigo_bridge.execution.checkpoint import Asker, Checkpoint
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.recording import TaskRecording, TrialRecording
    from aigo_bridge.execution.solutions import SampleFailure

_TOLERANCE = re.compile(r"\d+|0?\.\d+|1\.0*", re.ASCII)
_SPENT = re.compile(r"stopped: \d+ (sample|trial)s? failed, --fail-on-error tolerates \d+", re.ASCII)


def tolerated(text: str | None, num_samples: int) -> int:
    """Return the number of samples that may fail: `N`, a proportion such as `0.1`, or zero for `None`.

    Raises:
        UsageError: the text is neither a number nor a proportion.
    """
    if text is None:
        return 0
    if not _TOLERANCE.fullmatch(text):
        raise UsageError(
            f"--fail-on-error: found {text!r}, expected a number of samples or a share between 0 and 1",
            code=Code.WRONG_OPTION,
        )
    # Compute with decimals: in binary floating point, 0.29 of 100 would be 28.
    return int(text) if text.isdigit() else int(Decimal(text) * num_samples)


def allowed(text: str | None, num_samples: int) -> int | None:
    """Return how many samples may fail before a run stops; `None` for any number (see `tolerated`)."""
    return None if text is None else tolerated(text, num_samples)


@dataclass
class Tolerance:
    """Failed samples of a running task. A sample has failed if all of its trials failed."""

    allowed: int | None = None
    """Number of samples that may fail; `None` for any number."""
    num_trials: int = 1
    """Number of trials of each sample."""
    num_failed: int = 0
    """Number of samples that have failed."""
    num_failed_trials: int = 0
    num_good_trials: int = 0
    _trials: Counter[str | int] = field(default_factory=Counter)
    """Sample → number of failed trials."""

    def note(self, sample_id: str | int, *, failed: bool) -> None:
        """Record that a trial of a sample has ended."""
        if not failed:
            self.num_good_trials += 1
            return
        self.num_failed_trials += 1
        self._trials[sample_id] += 1
        self.num_failed += self._trials[sample_id] == self.num_trials

    @property
    def is_spent(self) -> bool:
        """Whether too many samples have failed, so that the run starts no further sample.

        Engines may run the first trial of every sample before the second one. If all trials fail, the run
        therefore stops after the number of trials that belong to the allowed number of samples.
        """
        if self.allowed is None:
            return False
        hopeless = not self.num_good_trials and self.num_failed_trials > self.allowed * self.num_trials
        return self.num_failed > self.allowed or hopeless

    @property
    def reason(self) -> str:
        """Reason why a run was stopped."""
        several = self.num_trials > 1
        number, unit = (self.num_failed_trials, "trial") if several else (self.num_failed, "sample")
        tolerated = plural(self.allowed, "sample") if several and self.allowed is not None else self.allowed
        return f"stopped: {number} {unit}{'s' * (number != 1)} failed, --fail-on-error tolerates {tolerated}"


def is_spent_tolerance(reason: str) -> bool:
    """Return whether a `Tolerance.reason` ended a run. The engine log contains only the text."""
    return _SPENT.match(reason) is not None


@dataclass
class _Counts:
    """Trial counts of a whole run with one or more tasks."""

    total: int
    done: int = 0
    failed: int = 0
    retries: int = 0
    tokens: int | None = None
    cost: float | None = None
    scores: dict[tuple[str | None, str, str], _Mean] = field(default_factory=dict)
    """Task, scorer and score → running mean."""

    def add(self, task: str | None, spent: Spent) -> None:
        """Count a trial that has ended."""
        for scorer, values in spent.scores:
            for name, value in values.items():
                # Texts and missing scores are left out of the mean.
                if isinstance(value, int | float) and math.isfinite(value):
                    self.scores.setdefault((task, scorer, name), _Mean()).add(value)
        if spent.tokens is not None:
            self.tokens = (self.tokens or 0) + spent.tokens
        if spent.cost is not None:
            self.cost = (self.cost or 0.0) + spent.cost

    def totals(self) -> ProgressTotals:
        """Return the totals of the trials so far."""
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
    """Result of one trial for progress output."""

    scores: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    """Scorer and its values, one entry for each row."""
    tokens: int | None = None
    """Number of tokens that the calls of the trial used; `None` if unknown."""
    cost: float | None = None
    """Cost of the calls; `None` if unknown."""

    def note(self, scorer: str, result: Score | SampleFailure) -> None:
        """Record the result of a scorer. A failed scorer does not add values."""
        if isinstance(result, Score):
            self.scores.append((scorer, result.values))


_NOTHING = Spent()


class ProgressCounter:
    """Counter of finished trials. A run has one counter, used from one event loop.

    Args:
        tell: called after each trial; `None` to report nothing.
        total: number of trials of the whole run.
        trials: whether samples have several trials, so that failures name their trial.
        tasks: name of each plan → its number of trials.
    """

    def __init__(
        self,
        tell: Callable[[Progress], None] | None,
        total: int,
        *,
        trials: bool = False,
        tasks: Mapping[str, int] | None = None,
    ):
        self._tell = tell
        self._counts = _Counts(total)
        self._trials = trials
        self._tasks = tasks or {}
        self._task: str | None = None
        self.tolerance = Tolerance()
        """Failed samples of the task, and the number that may fail."""
        self.checkpoint: Checkpoint | None = None
        """Checkpoint for the model answers of the task."""
        self._recording: TaskRecording | None = None
        """Recording for the model calls of the task."""
        self._say()

    def of_task(
        self,
        name: str,
        tolerance: Tolerance | None = None,
        checkpoint: Checkpoint | None = None,
        recording: TaskRecording | None = None,
    ) -> ProgressCounter:
        """Return a counter for one task of the run, which names the task and counts its failures."""
        part = object.__new__(ProgressCounter)
        part._tell, part._counts, part._trials, part._task = self._tell, self._counts, self._trials, name
        part._tasks = self._tasks
        part.tolerance = tolerance or Tolerance()
        part.checkpoint = checkpoint
        part._recording = recording
        return part

    def asker(self, sample_id: str | int, trial: int, who: str) -> Asker | None:
        """Return the caller for one trial (numbered from 0): the solver or a scorer. Return `None` without a
        checkpoint or recording.
        """
        if self.checkpoint is None and self._recording is None:
            return None
        recording: TrialRecording | None = None
        if self._recording is not None:
            from aigo_bridge.engine.recording import TrialRecording

            recording = TrialRecording(self._recording, sample_id, trial, who)
        return Asker(self.checkpoint, recording, sample_id, trial, who)

    def retrying(self, retry: Retry) -> None:
        """Report that a model call failed and will be repeated."""
        self._counts.retries += 1
        self._say(retry=retry)

    def finished(
        self, sample_id: str | int, trial: int, failure: SampleFailure | None, spent: Spent = _NOTHING
    ) -> None:
        """Record that one trial (numbered from 0) of a sample has ended, with or without a failure."""
        self._counts.done += 1
        self._counts.add(self._task, spent)
        self._counts.failed += failure is not None
        self.tolerance.note(sample_id, failed=failure is not None)
        if failure is not None and self.checkpoint is not None:
            self.checkpoint.forget(sample_id, trial)
        self._say(sample_id, trial if self._trials else None, failure)

    def _say(
        self,
        sample_id: str | int | None = None,
        trial: int | None = None,
        failure: SampleFailure | None = None,
        retry: Retry | None = None,
    ) -> None:
        if self._tell is None:
            return
        counts = self._counts
        # The receiver may be gone (a closed terminal). A solved and scored sample must not be lost for that
        # reason.
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
                    self._tasks,
                )
            )


# Repeated calls


ATTEMPTS = 8
"""Maximum number of attempts per call after transient failures."""

FIRST_WAIT = 3.0
"""Seconds before the first repetition of a call, doubled each time. A time requested by the endpoint
overrides it.
"""

LONGEST_WAIT = 30 * 60.0
"""Maximum number of seconds to wait, even if the endpoint requests more."""


def wait_after(attempt: int, asked: float | None) -> float:
    """Return the seconds until a call is repeated: the requested time (`Retry-After`), otherwise an
    exponential time; with jitter.
    """
    if asked is not None:
        return min(asked, LONGEST_WAIT) + random.uniform(0, min(1.0, asked / 4))  # noqa: S311  # not a secret
    exponential = FIRST_WAIT * 2.0 ** min(attempt - 1, 20)
    return min(exponential, LONGEST_WAIT) + random.uniform(0, FIRST_WAIT)  # noqa: S311  # not a secret
