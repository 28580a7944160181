"""Variance components, compared with hand computation, statsmodels and simulated runs."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from aigo_stats.statistics.components import Components, components


def test_variance_components_equal_an_analysis_of_variance() -> None:
    random = np.random.default_rng(2)
    sizes = (3, 4, 2, 5)
    samples = [random.normal(mean, 1, size) for mean, size in zip((0, 3, 5, 9), sizes, strict=True)]
    indicators = np.repeat(np.eye(4), sizes, axis=0)
    fit = sm.OLS(np.concatenate(samples), indicators).fit()
    between = (fit.centered_tss - fit.ssr) / 3
    per_sample = (14 - (9 + 16 + 4 + 25) / 14) / 3
    times = [list(range(size)) for size in sizes]

    parts = components(samples, times, times)

    assert parts is not None
    assert (parts.model, parts.judge) == (None, None)
    assert parts.within == pytest.approx(fit.mse_resid, rel=1e-9)
    expected = (between - fit.mse_resid) / per_sample
    assert parts.sampling == pytest.approx(expected, rel=1e-9)


def test_rescored_answers_separate_judge_and_model_variance() -> None:
    """Compute two samples by hand. Each has two answers, the first of which is scored twice.

    Judge: (0.5 + 0) / 2. Answers: squares 2 · (0.5 - 2/3)² + (1 - 2/3)² = 1/6 of the first sample and 2/3 of the second, 2 degrees,
    (6 - 2 · 5/3) / 2 = 4/3 scores each: (5/12 - 1/4) / (4/3) = 1/8.
    """
    scores = [np.array([1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0])]

    parts = components(scores, [[0, 0, 1], [0, 0, 1]], [["x", "x", "y"], ["p", "p", "q"]])

    assert parts is not None
    assert parts.judge == pytest.approx(0.25)
    assert parts.model == pytest.approx(1 / 8)
    assert parts.within == pytest.approx(3 / 8)
    assert parts.sampling == 0.0


def test_answers_equal_by_chance_count_as_separate_answers() -> None:
    """The model answers A or B, and the judge is consistent, so the model has all of the variance: 0.25."""
    random = np.random.default_rng(4)
    scores = (random.random((3000, 5)) < 0.5).astype(float)

    parts = components(list(scores), [list(range(5))] * 3000, scores.astype(int).tolist())

    assert parts is not None
    assert parts.judge == 0.0
    assert parts.model == pytest.approx(0.25, abs=0.005)
    assert parts.sampling == pytest.approx(0.0, abs=0.005)


def test_only_rescored_answers_leave_the_model_variance_unknown() -> None:
    parts = components([np.array([1.0, 0.0]), np.array([0.0, 0.0])], [[0, 0]] * 2, [["x", "x"], ["y", "y"]])

    assert parts == Components(sampling=0.0, within=0.25, model=None, judge=0.25)


def test_single_repetition_or_sample_has_no_variance_components() -> None:
    assert components([np.array([1.0]), np.array([0.0])], [[0], [0]], [["x"], ["y"]]) is None
    assert components([np.array([1.0, 0.0])], [[0, 1]], [["x", "y"]]) is None


def test_variances_of_simulated_runs_are_recovered() -> None:
    """Each of 4,000 samples has three answers, and each answer is scored twice."""
    random = np.random.default_rng(3)
    samples = random.normal(0, 1.0, (4000, 1, 1))
    scores = samples + random.normal(0, 0.7, (4000, 3, 1)) + random.normal(0, 0.5, (4000, 3, 2))
    answers = [[0, 0, 1, 1, 2, 2]] * 4000

    parts = components(list(scores.reshape(4000, 6)), answers, answers)

    assert parts is not None
    assert parts.judge == pytest.approx(0.25, rel=0.05)
    assert parts.model == pytest.approx(0.49, rel=0.05)
    assert parts.sampling == pytest.approx(1.0, rel=0.05)
