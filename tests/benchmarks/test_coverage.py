"""A short version of `benchmarks/coverage.py`: 95 % intervals hold the truth about 95 times in 100, where the naive one does not."""

from __future__ import annotations

import pytest
from benchmarks.coverage import Scenario, coverage, exact_coverage, scenarios, share

SHORT = [
    scenario
    for scenario in scenarios()
    if scenario.promised
    and (
        ", 30 samples" in scenario.name
        or scenario.name.startswith("30 groups")
        or "by 50 labels" in scenario.name
    )
]


@pytest.mark.parametrize("scenario", SHORT, ids=lambda scenario: scenario.name)
def test_coverage(scenario: Scenario) -> None:
    """400 evaluations: the standard error of a coverage of 95 % is 1.1 points, and three of them are allowed beyond the promise."""
    result = coverage(scenario, 400, seed=1)

    assert 0.935 - 0.033 <= result.ours <= 0.965 + 0.033
    assert result.without < 0.01


@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in scenarios() if "counts mostly" in scenario.name],
    ids=lambda scenario: scenario.name,
)
def test_intervals_of_counts_have_the_promised_coverage(scenario: Scenario) -> None:
    """A count that is the same in all samples has no interval; every other one is covered at least as often as promised."""
    result = coverage(scenario, 400, seed=1)

    assert result.ours >= 0.935 - 0.033
    assert result.without < 0.5


def test_the_naive_interval_is_wrong_where_it_matters() -> None:
    for scenario in SHORT:
        if "groups" in scenario.name:
            assert coverage(scenario, 200, seed=2).naive < 0.7


def test_shares_near_the_ends_by_exact_summation() -> None:
    """The mean over the shares of a scenario, without chance: what the simulation estimates."""
    for low, high, count in ((0.01, 0.1, 30), (0.9, 0.99, 30), (0.3, 0.7, 30), (0.01, 0.1, 300)):
        truths = [low + (high - low) * (step + 0.5) / 400 for step in range(400)]
        mean = sum(exact_coverage(truth, count) for truth in truths) / len(truths)
        assert 0.935 <= mean <= 0.965, share(low, high, count).name
