"""Jackknife pseudo-values by samples and groups, and cases without an interval."""

from __future__ import annotations

import numpy as np
import pytest

from aigo_stats.comparison.sources import std_dev_of
from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.smooth import Smooth, smooth_interval

VALUES = np.random.default_rng(3).exponential(size=120)


def spread(values: np.ndarray = VALUES) -> Smooth:
    smooth = std_dev_of(values)
    assert isinstance(smooth, Smooth)
    return smooth


def test_pseudo_values_equal_leaving_each_sample_out() -> None:
    whole = VALUES.std(ddof=1)
    left_out = [np.delete(VALUES, number).std(ddof=1) for number in range(120)]

    assert spread().value == pytest.approx(whole, rel=1e-12)
    assert spread().pseudo_values() == pytest.approx(120 * whole - 119 * np.array(left_out), rel=1e-9)


def test_group_pseudo_values_equal_leaving_each_group_out() -> None:
    """The groups have unequal sizes, and group 7 is empty, as if its samples failed."""
    groups = np.random.default_rng(4).integers(0, 30, 120)
    groups[groups == 7] = 8
    names = np.unique(groups)
    whole = VALUES.std(ddof=1)
    left_out = np.array([VALUES[groups != name].std(ddof=1) for name in names])

    assert len(names) < groups.max() + 1
    assert spread().pseudo_values(groups) == pytest.approx(
        len(names) * whole - (len(names) - 1) * left_out, rel=1e-9
    )
    assert spread().pseudo_values(np.arange(120)) == pytest.approx(spread().pseudo_values(), rel=1e-12)


def test_groups_of_repeated_samples_do_not_narrow_the_interval() -> None:
    """Repeating each sample three times adds no information, which only the clustered error shows."""
    thrice, groups = np.repeat(VALUES, 3), np.repeat(np.arange(120), 3)
    once = smooth_interval(spread())
    clustered, naive = smooth_interval(spread(thrice), groups), smooth_interval(spread(thrice))

    assert isinstance(once, Interval)
    assert isinstance(clustered, Interval)
    assert isinstance(naive, Interval)
    assert clustered.standard_error == pytest.approx(once.standard_error, rel=0.02)
    assert naive.standard_error < 0.65 * once.standard_error


def test_reason_is_returned_if_there_is_no_interval() -> None:
    few, same = smooth_interval(spread(VALUES[:5])), smooth_interval(spread(np.ones(120)))
    in_groups = smooth_interval(spread(), np.arange(120) % 10)

    assert isinstance(few, NoInterval)
    assert "5 samples are too few" in few.reason
    assert isinstance(in_groups, NoInterval)
    assert "10 groups are too few" in in_groups.reason
    assert isinstance(same, NoInterval)
    assert "no sample changes the metric" in same.reason


def test_metric_at_the_end_of_its_scale_has_no_interval() -> None:
    """Half of the samples exceed the end of the scale, so the pseudo-values have a spread."""
    table = np.array([[0.0, 1.0], [2.0, 1.0]])
    smooth = Smooth(
        table, np.arange(60) % 2, lambda sums: np.minimum(sums[:, 0] / sums[:, 1], 1.0), (0.0, 1.0), 2
    )
    at_the_end = smooth_interval(smooth)

    assert smooth.value == 1.0
    assert isinstance(at_the_end, NoInterval)
    assert "at the end of its scale" in at_the_end.reason
