"""From the scores of several trials of a sample to one score each. Metrics are computed from these.

Source: AI GO's page on trials. With p the share of trials that passed,

```text
pass@k = 1 - (1 - p)^k     chance that at least one of k attempts passes
pass^k = p^k               chance that all of k attempts pass
```

Both put the observed share into the formula; they are not the unbiased estimators that code benchmarks use. The page's example: true, false,
true, false, true gives p = 0.6, pass@5 = 0.98976, pass^5 = 0.07776.

Where the page is silent: trials that failed are left out, of p as well; an aggregated score without a name of its own is called
`{score}.{function}` (`is_correct.pass@5`); the score's plain name always keeps the mean, so that ordinary metrics work with trials as without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.metrics.numbers import as_number, is_missing, mean, short
from aigo_bridge.metrics.result import NoAggregate
from aigo_bridge.spec.trials import (
    Aggregator,
    MaxAggregator,
    MeanAggregator,
    MinAggregator,
    PassAtKAggregator,
    PassHatKAggregator,
    ScoreAggregator,
)


@dataclass(frozen=True)
class TrialScores:
    """What one scorer's scores of one sample come to over its trials."""

    values: Mapping[str, Any]
    """Score name → value; empty when every trial failed, and then the sample has no score."""
    problems: tuple[str, ...] = ()
    """Why an aggregated score that was asked for, or a mean over numbers, is not there."""
    missing: Mapping[str, NoAggregate] = field(default_factory=dict)
    """Score name → why it has no aggregated value; scores that no trial has a value for are not here, they are not scored."""


def aggregate_trials(
    trials: Sequence[Mapping[str, Any] | None], aggregators: Sequence[ScoreAggregator] | None = None
) -> TrialScores:
    """Scores of a sample from one scorer's scores in each of its trials.

    Args:
        trials: one entry per trial: the scores, or `None` when the trial failed. The order does not matter.
        aggregators: as the task has them; those of scores that this scorer does not give are skipped.

    With one trial its scores are taken as they are, of whatever type; with more, numbers and booleans get their mean and everything else
    has no aggregated score, and is named in `missing`. A score that is null or NaN in a trial is left out like a failed trial.
    """
    given = [scores for scores in trials if scores is not None]
    names = list(dict.fromkeys(name for scores in given for name in scores))
    present = {name: [scores[name] for scores in given if not is_missing(scores.get(name))] for name in names}
    values: dict[str, Any] = dict(given[0]) if len(trials) == 1 and given else {}
    missing: dict[str, NoAggregate] = {}
    if not values:
        values, missing = _means(present)
    asked: dict[str, Any] = {}
    problems = [each.reason for each in missing.values() if each.is_number]
    for entry in aggregators or ():
        if not present.get(entry.score_name):
            continue
        name = aggregated_name(entry)
        value, problem = _aggregated(entry, present[entry.score_name])
        if problem is None and name in asked and asked[name] != value:
            problem = f"several aggregators give a score {name!r}"
        if problem is not None:
            problems.append(problem)
            missing[name] = NoAggregate(problem, is_number=True)
            value = None
        else:
            missing.pop(name, None)
        asked[name] = value
    return TrialScores(values | asked, tuple(dict.fromkeys(problems)), missing)


def aggregated_name(entry: ScoreAggregator) -> str:
    """The name that metrics use for an aggregated score."""
    aggregator = entry.aggregator
    if aggregator.score_name is not None:
        return aggregator.score_name
    if isinstance(aggregator, PassAtKAggregator):
        return f"{entry.score_name}.pass@{aggregator.k}"
    if isinstance(aggregator, PassHatKAggregator):
        return f"{entry.score_name}.pass^{aggregator.k}"
    return f"{entry.score_name}.{aggregator.function}"


def pass_at_k(share: float, k: int) -> float:
    """`1 - (1 - p)^k`, in [0, 1] for p in [0, 1]."""
    return 1.0 - (1.0 - share) ** k


def pass_hat_k(share: float, k: int) -> float:
    """`p^k`, in [0, 1] for p in [0, 1]."""
    return share**k


def _means(present: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, NoAggregate]]:
    """Means of the scores that are numbers in every trial, `None` for a score that no trial has a value for; and the other scores."""
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
                problem = f"{name!r} is no number ({short(values[0])}); labels have no aggregated score"
            missing[name] = NoAggregate(problem, is_number)
    return means, missing


def _aggregated(entry: ScoreAggregator, values: Sequence[Any]) -> tuple[float | int | None, str | None]:
    """The aggregated value, or why there is none."""
    name, aggregator = entry.score_name, entry.aggregator
    match aggregator:
        case MeanAggregator():
            return _of_numbers(name, "mean", values, mean)
        case MinAggregator():
            return _of_numbers(name, "min", values, min)
        case MaxAggregator():
            return _of_numbers(name, "max", values, max)
        case PassAtKAggregator():
            return _of_passes(name, aggregator, values, pass_at_k)
        case PassHatKAggregator():
            return _of_passes(name, aggregator, values, pass_hat_k)


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


def _of_passes(
    name: str, aggregator: Aggregator, values: Sequence[Any], formula: Callable[[float, int], float]
) -> tuple[float | None, str | None]:
    assert isinstance(aggregator, PassAtKAggregator | PassHatKAggregator)
    # Scorers store right and wrong as 1.0 and 0.0; 0.7 is neither a passed nor a failed trial.
    odd = [value for value in values if not isinstance(value, bool | int | float) or value not in (0, 1)]
    if odd:
        return None, f"`{aggregator.function}` of {name!r} found {short(odd[0])}, expected true or false"
    return formula(sum(values) / len(values), aggregator.k), None
