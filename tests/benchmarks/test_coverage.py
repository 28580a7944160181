"""Short version of `benchmarks/coverage.py`: 95 % intervals contain the true value in about 95 % of the runs."""

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
def test_confidence_intervals_have_the_promised_coverage(scenario: Scenario) -> None:
    """The standard error of 95 % coverage over 400 evaluations is 1.1 points. Deviations of up to three are allowed."""
    result = coverage(scenario, 400, seed=1)

    assert 0.935 - 0.033 <= result.ours <= 0.965 + 0.033
    assert result.without < 0.01


@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in scenarios() if "counts mostly" in scenario.name],
    ids=lambda scenario: scenario.name,
)
def test_intervals_of_counts_have_the_promised_coverage(scenario: Scenario) -> None:
    """A count that is equal in all samples has no interval. All other counts reach at least the promised coverage."""
    result = coverage(scenario, 400, seed=1)

    assert result.ours >= 0.935 - 0.033
    assert result.without < 0.5


def test_naive_intervals_have_low_coverage_for_grouped_samples() -> None:
    for scenario in SHORT:
        if "groups" in scenario.name:
            assert coverage(scenario, 200, seed=2).naive < 0.7


def test_exact_coverage_of_extreme_proportions_is_within_bounds() -> None:
    """Compute the mean coverage over the proportions of a scenario exactly instead of by simulation."""
    for low, high, count in ((0.01, 0.1, 30), (0.9, 0.99, 30), (0.3, 0.7, 30), (0.01, 0.1, 300)):
        truths = [low + (high - low) * (step + 0.5) / 400 for step in range(400)]
        mean = sum(exact_coverage(truth, count) for truth in truths) / len(truths)
        assert 0.935 <= mean <= 0.965, share(low, high, count).name
