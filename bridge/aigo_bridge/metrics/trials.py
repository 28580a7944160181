"""Several trials of a sample and several runs of a task: aggregated scores and their spread.

Source: AI GO's page on trials. Metrics are computed from aggregated scores. With p, the proportion of passed
trials:

```text
pass@k = 1 - (1 - p)^k     probability that at least one of k attempts passes
pass^k = p^k               probability that all of k attempts pass
```

Both formulas use the observed proportion; they are not the unbiased estimators of code benchmarks. The page's
example: true, false, true, false, true gives p = 0.6, pass@5 = 0.98976, pass^5 = 0.07776.

The page leaves some cases open. Failed trials are left out and do not count for p. An aggregated score
without a name is called `{score}.{function}` (`is_correct.pass@5`). The score's plain name always keeps the
mean, so that ordinary metrics also work with trials.

Source: AI GO's page on repeatability. Each metric value gets its mean and standard deviation over the runs,
`sqrt(sum((x - mean)²) / (n - 1))`. The page's example: 2/3, 1, 2/3, 1, 2/3 gives 0.183. Each score of a
sample gets its agreement, the proportion of its most frequent value: 0, 1, 0, 1, 0 gives 0.6. Runs without a
value are left out, and the number of counted runs is reported.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import NoAggregate, as_number, mean, std_dev
from aigo_bridge.spec.trials import PassAtK, PassHatK, ScoreOfTrials
from aigo_bridge.text.summaries import short

NUM_TRIALS = "num_trials"
"""Metadata key for `python` metrics: number of scored trials of a sample with several trials."""


@dataclass(frozen=True)
class TrialScores:
    """Scores of one scorer for one sample, aggregated over its trials."""

    values: Mapping[str, Any]
    """Score name → value; empty if every trial failed, and then the sample has no score."""
    problems: tuple[str, ...] = ()
    """Reasons why a requested aggregated score, or a mean of numbers, is missing."""
    missing: Mapping[str, NoAggregate] = field(default_factory=dict)
    """Score name → reason for the missing aggregated value. Scores without a value in any trial are not
    listed because they are unscored.
    """


def aggregate_trials(
    trials: Sequence[Mapping[str, Any] | None], aggregators: Sequence[ScoreOfTrials] | None = None
) -> TrialScores:
    """Aggregate one scorer's scores of a sample over its trials.

    Args:
        trials: one entry per trial: the scores, or `None` for a failed trial. The order does not matter.
        aggregators: aggregators of the task; aggregators for scores of other scorers are skipped.

    The scores of a single trial are returned unchanged, of any type. With more trials, numbers and booleans
    get their mean. Every other score has no aggregated value and is listed in `missing`. A null or NaN score
    in a trial is left out like a failed trial.
    """
    scored = [scores for scores in trials if scores is not None]
    names = list(dict.fromkeys(name for scores in scored for name in scores))
    present = {
        name: [scores[name] for scores in scored if not is_missing(scores.get(name))] for name in names
    }
    values: dict[str, Any] = dict(scored[0]) if len(trials) == 1 and scored else {}
    missing: dict[str, NoAggregate] = {}
    if not values:
        values, missing = _means(present)
    aggregates: dict[str, Any] = {}
    problems = [score.reason for score in missing.values() if score.is_number]
    for entry in aggregators or ():
        if not present.get(entry.score_name):
            continue
        name = aggregated_name(entry)
        value, problem = _aggregated(entry, present[entry.score_name])
        if problem is None and name in aggregates and aggregates[name] != value:
            problem = f"several aggregators give a score {name!r}"
        if problem is not None:
            problems.append(problem)
            missing[name] = NoAggregate(problem, is_number=True)
            value = None
        else:
            missing.pop(name, None)
        aggregates[name] = value
    return TrialScores(values | aggregates, tuple(dict.fromkeys(problems)), missing)


def aggregated_name(entry: ScoreOfTrials) -> str:
    """Return the name of an aggregated score in metrics."""
    aggregator = entry.aggregator
    if aggregator.score_name is not None:
        return aggregator.score_name
    if isinstance(aggregator, PassAtK | PassHatK):
        return f"{entry.score_name}.{aggregator.function[:-1]}{aggregator.k}"
    return f"{entry.score_name}.{aggregator.function}"


def pass_at_k(share: float, k: int) -> float:
    """Return `1 - (1 - p)^k`, in [0, 1] for p in [0, 1]."""
    return 1.0 - (1.0 - share) ** k


def pass_hat_k(share: float, k: int) -> float:
    """Return `p^k`, in [0, 1] for p in [0, 1]."""
    return share**k


def _means(present: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, NoAggregate]]:
    """Return means of the scores that are numbers in every trial (`None` without a value in any trial), and
    the other scores.
    """
    means: dict[str, Any] = {}
    missing: dict[str, NoAggregate] = {}
    for name, values in present.items():
        if not values:
            means[name] = None
            continue
        value, problem = _of_numbers(name, "mean", values, mean)
        if problem is None:
            means[name] = value
        else:
            is_number = any(isinstance(value, bool | int | float) for value in values)
            if not is_number:
                problem = f"{name!r} is not a number ({short(values[0])}); labels cannot be aggregated"
            missing[name] = NoAggregate(problem, is_number)
    return means, missing


def _aggregated(entry: ScoreOfTrials, values: Sequence[Any]) -> tuple[float | int | None, str | None]:
    name, aggregator = entry.score_name, entry.aggregator
    if not isinstance(aggregator, PassAtK | PassHatK):
        return _of_numbers(name, aggregator.function, values, _FORMULAS[aggregator.function])
    # Scorers store correct and incorrect as 1.0 and 0.0; with 0.7, a trial neither passed nor failed.
    odd = [value for value in values if not isinstance(value, bool | int | float) or value not in (0, 1)]
    if odd:
        return None, f"`{aggregator.function}` of {name!r} found {short(odd[0])}, expected true or false"
    formula = pass_at_k if isinstance(aggregator, PassAtK) else pass_hat_k
    return formula(sum(values) / len(values), aggregator.k), None


_FORMULAS: dict[str, Callable[[list[float | int]], float | int]] = {"mean": mean, "min": min, "max": max}


def _of_numbers(
    name: str, function: str, values: Sequence[Any], formula: Callable[[list[float | int]], float | int]
) -> tuple[float | int | None, str | None]:
    numbers = [as_number(value) for value in values]
    usable = [number for number in numbers if number is not None]
    if len(usable) < len(numbers):
        wrong = next(value for value in values if as_number(value) is None)
        return None, f"`{function}` of {name!r} found {short(wrong)}, expected a finite number"
    try:
        return formula(usable), None
    except OverflowError:
        return None, f"`{function}` of {name!r}: the numbers are too large to compute with"


Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class RunSpread:
    """Mean and spread of one metric value over the runs."""

    mean: float
    std: float | None
    """Sample standard deviation (n - 1); `None` for a single run, or if it is too large for a float."""
    num_used: int
    """Number of runs in which the metric has this value."""


def metrics_over_runs(runs: Sequence[Mapping[Name, int | float | None]]) -> dict[Name, RunSpread]:
    """Compute mean and spread of every metric value.

    Args:
        runs: one mapping per run: name (any hashable, e.g. scorer key, metric key and value name) →
            metric value.
            A missing value is `None`, NaN or absent.

    Names are in the order of their first appearance. A name without a finite number in any run has
    no entry.
    """
    spreads: dict[Name, RunSpread] = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        numbers = [number for run in runs if (number := as_number(run.get(name))) is not None]
        if numbers:
            spreads[name] = RunSpread(mean(numbers), _spread(numbers), len(numbers))
    return spreads


def _spread(numbers: Sequence[float | int]) -> float | None:
    if len(numbers) < 2:
        return None
    try:
        return std_dev(numbers)
    except OverflowError:
        return None


def score_agreements(runs: Sequence[Mapping[str, Any] | None]) -> dict[str, float]:
    """Compute the agreement of each score of one scorer and sample, in (0, 1]; 1.0 if all runs agree.

    Args:
        runs: scores of each run; `None` if the sample failed in the run.

    A score without a value in any run has no entry.
    """
    names = dict.fromkeys(name for scores in runs for name in scores or ())
    shares = {name: agreement([scores.get(name) for scores in runs if scores is not None]) for name in names}
    return {name: share for name, share in shares.items() if share is not None}


def agreement(values: Sequence[Any]) -> float | None:
    """Return the proportion of the most frequent value among the values that are not missing; `None` without
    values.

    0, 0.0 and `False` are one value, as in metrics; `"0"` is a different value.
    """
    counts = Counter(_identity(value) for value in values if not is_missing(value))
    return max(counts.values()) / counts.total() if counts else None


def _identity(value: Any) -> Hashable:
    """Return a hashable that is equal for equal values; scores may be any JSON."""
    if isinstance(value, bool | int | float | str):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=repr))
