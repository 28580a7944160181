"""Several trials of a sample, and several runs of a task: one score of each, and how much they change.

Source: AI GO's page on trials. Metrics are computed from the scores that trials come to. With p the share of
trials that passed,

```text
pass@k = 1 - (1 - p)^k     chance that at least one of k attempts passes
pass^k = p^k               chance that all of k attempts pass
```

Both put the observed share into the formula; they are not the unbiased estimators that code benchmarks use.
The page's example: true, false, true, false, true gives p = 0.6, pass@5 = 0.98976, pass^5 = 0.07776.

Where the page is silent: trials that failed are left out, of p as well; an aggregated score without a name of
its own is called `{score}.{function}` (`is_correct.pass@5`); the score's plain name always keeps the mean, so
that ordinary metrics work with trials as without.

Source: AI GO's page on repeatability. Per metric value the mean and the standard deviation over the runs,
`sqrt(sum((x - mean)²) / (n - 1))` (the page's example: 2/3, 1, 2/3, 1, 2/3 gives 0.183); per score of a
sample the agreement, the share of its most frequent value (0, 1, 0, 1, 0 gives 0.6). Runs without a value are
left out of the number, and the number of runs that are in it is said.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import NoAggregate, as_number, mean, short, std_dev
from aigo_bridge.spec.task import (
    PassAtKAggregator,
    PassHatKAggregator,
    ScoreAggregator,
)

NUM_TRIALS = "num_trials"
"""In the metadata that `python` metrics see of a sample with several trials: how many of them were scored."""


@dataclass(frozen=True)
class TrialScores:
    """What one scorer's scores of one sample come to over its trials."""

    values: Mapping[str, Any]
    """Score name → value; empty when every trial failed, and then the sample has no score."""
    problems: tuple[str, ...] = ()
    """Why an aggregated score that was asked for, or a mean over numbers, is not there."""
    missing: Mapping[str, NoAggregate] = field(default_factory=dict)
    """Score name → why it has no aggregated value; scores that no trial has a value for are not here, they
    are not scored.
    """


def aggregate_trials(
    trials: Sequence[Mapping[str, Any] | None], aggregators: Sequence[ScoreAggregator] | None = None
) -> TrialScores:
    """Scores of a sample from one scorer's scores in each of its trials.

    Args:
        trials: one entry per trial: the scores, or `None` when the trial failed. The order does not matter.
        aggregators: as the task has them; those of scores that this scorer does not give are skipped.

    With one trial its scores are taken as they are, of whatever type; with more, numbers and booleans get
    their mean and everything else has no aggregated score, and is named in `missing`. A score that is null or
    NaN in a trial is left out like a failed trial.
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


def aggregated_name(entry: ScoreAggregator) -> str:
    """The name that metrics use for an aggregated score."""
    aggregator = entry.aggregator
    if aggregator.score_name is not None:
        return aggregator.score_name
    if isinstance(aggregator, PassAtKAggregator | PassHatKAggregator):
        return f"{entry.score_name}.{aggregator.function[:-1]}{aggregator.k}"
    return f"{entry.score_name}.{aggregator.function}"


def pass_at_k(share: float, k: int) -> float:
    """`1 - (1 - p)^k`, in [0, 1] for p in [0, 1]."""
    return 1.0 - (1.0 - share) ** k


def pass_hat_k(share: float, k: int) -> float:
    """`p^k`, in [0, 1] for p in [0, 1]."""
    return share**k


def _means(present: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, NoAggregate]]:
    """Means of the scores that are numbers in every trial, `None` for a score that no trial has a value for;
    and the other scores.
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


def _aggregated(entry: ScoreAggregator, values: Sequence[Any]) -> tuple[float | int | None, str | None]:
    """The aggregated value, or why there is none."""
    name, aggregator = entry.score_name, entry.aggregator
    if not isinstance(aggregator, PassAtKAggregator | PassHatKAggregator):
        return _of_numbers(name, aggregator.function, values, _FORMULAS[aggregator.function])
    # Scorers store right and wrong as 1.0 and 0.0; 0.7 is neither a passed nor a failed trial.
    odd = [value for value in values if not isinstance(value, bool | int | float) or value not in (0, 1)]
    if odd:
        return None, f"`{aggregator.function}` of {name!r} found {short(odd[0])}, expected true or false"
    formula = pass_at_k if isinstance(aggregator, PassAtKAggregator) else pass_hat_k
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
    """One metric value over the runs."""

    mean: float
    std: float | None
    """Sample standard deviation (n - 1); `None` with a single run, which says nothing about others, and when
    it is too large for a float.
    """
    num_used: int
    """Runs in which the metric has this value."""


def metrics_over_runs(runs: Sequence[Mapping[Name, int | float | None]]) -> dict[Name, RunSpread]:
    """Mean and spread of every metric value.

    Args:
        runs: one mapping per run, metric value by name (any hashable, e.g. scorer key, metric key and value
            name); `None` or NaN, or no entry, when the run has none.

    Names come in the order of their first appearance. A name that no run has a finite number for has no
    entry.
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
    """Agreement of each score that one scorer gave to one sample, in (0, 1]; 1.0 when all runs agree.

    Args:
        runs: the scores in each run; `None` when the run failed for this sample.

    A score without a value in any run has no entry.
    """
    names = dict.fromkeys(name for scores in runs for name in scores or ())
    shares = {name: agreement([scores.get(name) for scores in runs if scores is not None]) for name in names}
    return {name: share for name, share in shares.items() if share is not None}


def agreement(values: Sequence[Any]) -> float | None:
    """Share of the most frequent value among those that are not missing; `None` without any.

    0, 0.0 and `False` are one value, as they are in metrics; `"0"` is another one.
    """
    counts = Counter(_identity(value) for value in values if not is_missing(value))
    return max(counts.values()) / counts.total() if counts else None


def _identity(value: Any) -> Hashable:
    """Equal for equal values; scores may be any JSON."""
    if isinstance(value, bool | int | float | str):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=repr))
