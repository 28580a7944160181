"""Counts of samples and trials in each state, defined once for every command, page and table.

A *trial* is in one of four states:

* *failed*: it ended with an error of the solver or of a scorer.
* *not finished*: it was still running when its log was read, or was killed before it ended.
* *scored*: it ended without an error, and a scorer gave it a value.
* *unscored*: it ended without an error and without any value.

A *sample* is in one of five states. The first matching state counts:

* *failed*: at least one scorer did not score it because of errors in all of its trials, or an action rule
  could not be evaluated. These are the `failures` of the evidence.
* *excluded*: an action rule keeps it out of the metrics.
* *scored*: at least one trial has a value. A sample is scored if only some of its trials failed.
* *not finished*: it is without a value, and a trial did not finish.
* *unscored*: it is without a value, although at least one trial did not fail.

The counts of the states add up to all samples, and to all trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.results.stop_reasons import stop_reason_of
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.dtypes import ScoresData, TaskResultError, TaskResultLog
    from aigo_bridge.results.reading import LogReader, SamplePart

Json = dict[str, Any]

CANCELLED = "Cancelled"
"""Error type of a trial that was killed before it ended."""
RUNNING = "StillRunning"
"""Error type of a trial that had not ended when its log was read."""
_UNFINISHED = frozenset({CANCELLED, RUNNING, "CancelledError"})
_NOTES = frozenset({"InvalidatedSample"})
"""Error types of user annotations. The trial itself has the state that its scores indicate."""


def is_failure(error_type: str) -> bool:
    """Return whether an error of this type makes a trial fail."""
    return error_type not in _UNFINISHED and error_type not in _NOTES


class SampleState(IntEnum):
    """State of a sample or a trial."""

    SCORED = 0
    UNSCORED = 1
    FAILED = 2
    EXCLUDED = 3
    """Excluded by an action rule; only for samples."""
    UNFINISHED = 4

    @property
    def label(self) -> str:
        """Name for display."""
        return "not finished" if self is SampleState.UNFINISHED else self.name.lower()


@dataclass(frozen=True)
class Counts:
    """Number of samples and trials in each state."""

    samples: int = 0
    scored: int = 0
    unscored: int = 0
    failed: int = 0
    excluded: int = 0
    unfinished: int = 0
    trials: int = 0
    scored_trials: int = 0
    unscored_trials: int = 0
    failed_trials: int = 0
    unfinished_trials: int = 0
    with_failed_trials: int = 0
    """Number of samples with a failed trial, in any state."""

    def __add__(self, other: Counts) -> Counts:
        names = [each.name for each in fields(self)]
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def has_trials(self) -> bool:
        """Whether any sample has several trials, so that the number of trials is shown separately."""
        return self.trials != self.samples

    def others(self) -> list[str]:
        """Return texts about unscored samples and failed or unfinished trials, by state."""
        samples = (
            (self.failed, "failed"),
            (self.unscored, "not scored"),
            (self.unfinished, "not finished"),
            (self.excluded, "excluded from metrics"),
        )
        trials = ((self.failed_trials, "failed"), (self.unfinished_trials, "not finished"))
        return [
            *(f"{number} {state}" for number, state in samples if number),
            *(
                f"{number} of {plural(self.trials, 'trial')} {state}"
                for number, state in trials
                if number and self.has_trials
            ),
        ]

    @property
    def is_plain(self) -> bool:
        """Whether all samples were scored, each in its only trial."""
        return self.samples == self.scored == self.trials

    def text(self) -> str:
        """Return the counts as text, such as `4 samples, 12 trials: 1 failed, 7 of 12 trials failed`."""
        total = plural(self.samples, "sample")
        if self.has_trials:
            total += f", {plural(self.trials, 'trial')}"
        others = ", ".join(self.others())
        return f"{total}: {others}" if others else total

    def to_json(self) -> dict[str, int]:
        """Return all counts by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


NO_COUNTS = Counts()


class SampleFacts(NamedTuple):
    """Facts that determine the state of a sample."""

    scorers: int
    """Number of scorers that gave the sample scores."""
    has_value: bool
    trials: tuple[int, ...]
    """Number of trials in each `SampleState`."""
    is_excluded: bool
    is_undecided: bool
    """Whether an action rule could not be evaluated."""

    @property
    def num_trials(self) -> int:
        """Number of trials of the sample."""
        return sum(self.trials)

    def state(self, num_scorers: int) -> SampleState:
        """Return the state of the sample. The number of scorers of the task is 0 if unknown."""
        if self.is_undecided:
            return SampleState.FAILED
        all_failed = 0 < self.num_trials == self.trials[SampleState.FAILED]
        if all_failed and self.scorers < max(1, num_scorers):
            return SampleState.FAILED
        if self.is_excluded:
            return SampleState.EXCLUDED
        if self.has_value:
            return SampleState.SCORED
        return SampleState.UNFINISHED if self.trials[SampleState.UNFINISHED] else SampleState.UNSCORED


_Scores = tuple[tuple[str, bool], ...]
"""Scorers, each with whether it gave a value."""


class _Trial(NamedTuple):
    """Facts of one trial, in the current or the legacy form."""

    error_types: tuple[str, ...]
    scores: _Scores

    @property
    def state(self) -> SampleState:
        if any(map(is_failure, self.error_types)):
            return SampleState.FAILED
        if any(kind in _UNFINISHED for kind in self.error_types):
            return SampleState.UNFINISHED
        return SampleState.SCORED if any(dict(self.scores).values()) else SampleState.UNSCORED


@lru_cache(256)  # few samples of a result differ in these facts
def _facts(
    trials: tuple[_Trial, ...], over_trials: _Scores, *, is_excluded: bool, is_undecided: bool
) -> SampleFacts:
    states, scores = [0] * len(SampleState), dict(over_trials)
    scorers, has_value = set(scores), any(scores.values())
    shares_scores = has_value
    for trial in trials:
        states[SampleState.FAILED if is_undecided else trial.state] += 1
        scores = dict(trial.scores)
        scorers.update(scores)
        shares_scores = shares_scores and not scores
        has_value = has_value or any(scores.values())
    if shares_scores:
        # Some engines score all trials of a sample together.
        states[SampleState.SCORED] += states[SampleState.UNSCORED]
        states[SampleState.UNSCORED] = 0
    return SampleFacts(len(scorers), has_value, tuple(states), is_excluded, is_undecided)


# Samples of a result, as JSON objects


def trials_of(sample: Json) -> list[Json]:
    """Return the trials of a sample; a legacy sample without trials is its own only trial."""
    return _objects(sample.get("trials")) or [{**sample, "index": 0}]


def errors_of(sample: Json) -> list[Json]:
    """Return the errors of a sample and of its trials."""
    errors = [error for trial in trials_of(sample) for error in _objects(trial.get("errors"))]
    return [*_objects(sample.get("errors")), *errors] if sample.get("trials") else errors


def rules_of(sample: Json) -> list[str]:
    """Return the keys of the action rules that keep a sample out of the metrics."""
    return [str(record.get("rule_key")) for record in _objects(sample.get("action_records"))]


def trial_number(trial: Json, position: int) -> int:
    """Return the displayed number of a trial, from 1; the evidence, and `position`, count from 0."""
    index = trial.get("index")
    return (index if isinstance(index, int) else position) + 1


def sample_facts(sample: Json) -> SampleFacts:
    """Return the facts of a sample's JSON object in a result, including the legacy form."""
    is_legacy = not sample.get("trials")
    return _facts(
        tuple(map(_written_trial, trials_of(sample))),
        () if is_legacy else _written_scores(sample),
        is_excluded=bool(sample.get("action_records")),
        is_undecided=not is_legacy and bool(sample.get("errors")),
    )


def sample_state(sample: Json, num_scorers: int) -> SampleState:
    """Return the state of a sample's JSON object. `num_scorers` is described in `SampleFacts.state`."""
    return sample_facts(sample).state(num_scorers)


def trial_state(sample: Json, trial: Json) -> SampleState:
    """Return the state of a trial in a sample's JSON object of a result."""
    alone = sample_facts({**sample, "trials": [trial]})
    return next(state for state in SampleState if alone.trials[state])


def outcome_label(facts: SampleFacts, num_scorers: int) -> str:
    """Return the outcome of a sample for display: its state, and the number of failed or unfinished trials.
    Return an empty text for a sample that was scored in all of its trials.

    Examples: `failed`, `2 of 3 trials failed`, `excluded, 1 of 3 trials not finished`.
    """
    state = facts.state(num_scorers)
    parts = [] if state is SampleState.SCORED else [state.label]
    for partly in (SampleState.FAILED, SampleState.UNFINISHED):
        number = facts.trials[partly]
        if number and facts.num_trials > 1 and state is not partly:
            parts.append(f"{number} of {plural(facts.num_trials, 'trial')} {partly.label}")
    return ", ".join(parts)


def _written_trial(trial: Json) -> _Trial:
    errors = trial.get("errors")
    types = tuple(str(error.get("error_type")) for error in _objects(errors)) if errors else ()
    return _Trial(types, _written_scores(trial))


def _written_scores(part: Json) -> _Scores:
    scores: dict[str, bool] = {}
    for score in _objects(part.get("scores")):
        key = str(score.get("scorer_key"))
        scores[key] = scores.get(key, False) or _has_value(score.get("values"), score.get("metadata"))
    return tuple(scores.items())


def _has_value(values: Any, metadata: Any) -> bool:
    """Return whether a scorer gave a value. Infinity is null in a result and named in the metadata."""
    if not isinstance(values, dict):
        return False
    return any(not is_missing(value) for value in values.values()) or (
        isinstance(metadata, dict) and bool(metadata.get("not_finite"))
    )


def _objects(values: Any) -> list[Json]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


# Trials while their evidence is written


def record_facts(
    trials: Iterable[tuple[Sequence[TaskResultError], Sequence[ScoresData]]],
    *,
    is_excluded: bool = False,
    is_undecided: bool = False,
) -> SampleFacts:
    """Return the facts of a sample from the errors and scores of its trials."""
    records = tuple(
        _Trial(
            tuple(error.error_type for error in errors),
            tuple({score.scorer_key: _has_value(score.values, score.metadata) for score in scores}.items()),
        )
        for errors, scores in trials
    )
    return _facts(records, (), is_excluded=is_excluded, is_undecided=is_undecided)


@dataclass
class CountsTally:
    """Facts of streamed samples with their counts. Memory is bounded by the number of different facts."""

    _facts: Counter[SampleFacts] = field(default_factory=Counter)

    def add(self, facts: SampleFacts, number: int = 1) -> None:
        """Count samples with the same facts."""
        self._facts[facts] += number

    def merge(self, other: CountsTally) -> None:
        """Count the samples of another tally."""
        self._facts.update(other._facts)

    def counts(self, num_scorers: int) -> Counts:
        """Return the counts. `num_scorers` is described in `SampleFacts.state`."""
        samples, trials = [0] * len(SampleState), [0] * len(SampleState)
        for facts, number in self._facts.items():
            samples[facts.state(num_scorers)] += number
            for state in SampleState:
                trials[state] += number * facts.trials[state]
        return Counts(
            samples=sum(samples),
            scored=samples[SampleState.SCORED],
            unscored=samples[SampleState.UNSCORED],
            failed=samples[SampleState.FAILED],
            excluded=samples[SampleState.EXCLUDED],
            unfinished=samples[SampleState.UNFINISHED],
            trials=sum(trials),
            scored_trials=trials[SampleState.SCORED],
            unscored_trials=trials[SampleState.UNSCORED],
            failed_trials=trials[SampleState.FAILED],
            unfinished_trials=trials[SampleState.UNFINISHED],
            with_failed_trials=sum(
                number for facts, number in self._facts.items() if facts.trials[SampleState.FAILED]
            ),
        )


UNFINISHED_RUNS = frozenset({"IncompleteRun", "EvaluationUnfinished", "EvaluationCancelled"})
"""Error types of a result whose run did not finish."""


def is_unfinished(log: TaskResultLog) -> bool:
    """Return whether the run of a result did not finish, so that its metrics are not final."""
    return log.status != "success" and any(error.error_type in UNFINISHED_RUNS for error in log.errors)


def scorers_in(specification: Any) -> int:
    """Return the number of scorers in the JSON object of a specification; 0 without scorers."""
    for name in ("task", "definition", "scorers"):
        specification = specification.get(name) if isinstance(specification, dict) else None
    return len(specification) if isinstance(specification, list) else 0


def scorers_of(log: TaskResultLog) -> int:
    """Return the number of scorers in a result's specification; 0 without scorers."""
    return len(getattr(log.specification.task.definition, "scorers", None) or ())


def one_sample(rows: Sequence[SampleFacts]) -> SampleFacts:
    """Return the facts of a sample from its post-processor's rows. It failed if any row failed."""
    if len(rows) == 1:
        return rows[0]
    num_trials = max(row.num_trials for row in rows)
    trials = [0] * len(SampleState)
    left = num_trials
    for state in (SampleState.FAILED, SampleState.UNFINISHED, SampleState.SCORED):
        trials[state] = min(left, max(row.trials[state] for row in rows))
        left -= trials[state]
    trials[SampleState.UNSCORED] = left
    return SampleFacts(
        min(row.scorers for row in rows),
        any(row.has_value for row in rows),
        tuple(trials),
        all(row.is_excluded for row in rows),
        any(row.is_undecided for row in rows),
    )


class ResultTally:
    """Counts of a result, updated while it is streamed; over all runs for a result with runs."""

    def __init__(self) -> None:
        self._samples, self._of_runs = CountsTally(), CountsTally()
        self.stop_reasons: Counter[str] = Counter()
        """Stop reason → number of trials whose final answer has it (see `results.stop_reasons`)."""

    def add(self, part: SamplePart) -> None:
        """Count a sample."""
        (self._samples if part.run is None else self._of_runs).add(sample_facts(part.value))
        for trial in trials_of(part.value):
            if (reason := stop_reason_of(trial)) is not None:
                self.stop_reasons[reason] += 1

    def counts(self, num_scorers: int) -> Counts:
        """Return the counts. `num_scorers` is described in `SampleFacts.state`."""
        of_runs = self._of_runs.counts(num_scorers)
        return of_runs if of_runs.samples else self._samples.counts(num_scorers)


def read_counts(reader: LogReader) -> tuple[Counts, Mapping[str, int]]:
    """Return the counts of a result and of its stop reasons.

    Raises:
        EvidenceError: the result cannot be read.
    """
    from aigo_bridge.results.reading import FramePart

    tally = ResultTally()
    for part in reader.parts():
        if isinstance(part, FramePart):
            return tally.counts(scorers_in(part.value.get("specification"))), tally.stop_reasons
        tally.add(part)
    raise AssertionError("parts() ends with the frame or raises")
