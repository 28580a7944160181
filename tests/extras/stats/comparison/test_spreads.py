"""Spread for `power`: from the pairs of two results, or assumed from one result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.extras.stats.comparison.logs import MEAN, log, repeated, sample

from aigo_stats.comparison.columns import ResultColumns, read_columns
from aigo_stats.comparison.numbers import quantities
from aigo_stats.comparison.spreads import spread_of_one, spread_of_two
from aigo_stats.statistics.intervals import NoInterval

KEY = ("judge", "mean", "accuracy")
POINTS = {"type": "mean", "field": "points", "name": "accuracy"}


def scored(path: Path, values: list[float]) -> ResultColumns:
    samples = [sample(number, {"points": value}) for number, value in enumerate(values)]
    return read_columns(log(path, samples, [(POINTS, {"accuracy": float(np.mean(values))})]))


def tried(path: Path, trials: list[list[float]]) -> ResultColumns:
    samples = [repeated(number, list(scores)) for number, scores in enumerate(trials)]
    mean = float(np.mean([np.mean(scores) for scores in trials]))
    return read_columns(log(path, samples, [(MEAN, {"accuracy": mean})]))


def reason(spread: object) -> str:
    assert isinstance(spread, NoInterval), spread
    return spread.reason


def test_spread_of_two_results_is_the_variance_of_differences(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    base = random.normal(size=50).tolist()
    new = (np.array(base) + 0.5 + random.normal(scale=0.2, size=50)).tolist()

    spread = spread_of_two(scored(tmp_path / "a.json", base), scored(tmp_path / "b.json", new), KEY)

    assert not isinstance(spread, NoInterval)
    differences = np.array(new) - base
    assert spread[0].total(1) == pytest.approx(differences.var(ddof=1), rel=1e-9)
    assert spread[0].shift == pytest.approx(differences.mean(), rel=1e-9)
    assert not spread[0].is_share
    assert spread[1] == 50


def test_spread_of_two_results_is_split_into_samples_and_trials(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    chances = random.beta(1, 1, size=40)
    base, new = ((random.random((40, 4)) < chances[:, None]).astype(float) for _ in range(2))

    spread = spread_of_two(
        tried(tmp_path / "a.json", base.tolist()), tried(tmp_path / "b.json", new.tolist()), KEY
    )

    assert not isinstance(spread, NoInterval)
    within = base.var(axis=1, ddof=1).mean() + new.var(axis=1, ddof=1).mean()
    means = new.mean(axis=1) - base.mean(axis=1)
    assert spread[0].total(1) - spread[0].total(10**9) == pytest.approx(within, rel=1e-6)
    assert spread[0].total(4) == pytest.approx(max(means.var(ddof=1), within / 4), rel=1e-6)
    assert spread[0].is_share


def test_spread_of_one_result_assumes_independent_scores(tmp_path: Path) -> None:
    values = [float(number % 5) for number in range(40)]
    columns = scored(tmp_path / "a.json", values)
    (quantity,) = quantities(columns)

    spread = spread_of_one(columns, quantity)

    assert not isinstance(spread, NoInterval)
    assert spread[0].total(1) == pytest.approx(2 * np.var(values, ddof=1), rel=1e-9)
    assert spread[1] == 40


def test_metrics_without_a_spread_give_a_reason(tmp_path: Path) -> None:
    values = [float(number % 5) for number in range(40)]
    base, same = scored(tmp_path / "a.json", values), scored(tmp_path / "b.json", [v + 1 for v in values])
    constant, one = scored(tmp_path / "c.json", [0.5] * 40), scored(tmp_path / "d.json", [0.5])

    assert reason(spread_of_two(base, same, ("judge", "mean", "another"))) == "it is not in both results"
    assert "the same in every pair" in reason(spread_of_two(base, same, KEY))
    assert "all samples have the same score" in reason(
        spread_of_one(constant, next(iter(quantities(constant))))
    )
    assert (
        reason(spread_of_one(one, next(iter(quantities(one))))) == "the variance of one sample is undefined"
    )
