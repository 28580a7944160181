"""Agreement, compared with published examples and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa as kappa_of_statsmodels

from aigo_stats.statistics.agreement import cohens_kappa, confusion, krippendorffs_alpha


def test_kappa_equals_statsmodels() -> None:
    table = np.array([[44, 5, 1], [7, 20, 3], [9, 5, 6]])

    assert cohens_kappa(table) == pytest.approx(kappa_of_statsmodels(table).kappa, rel=1e-12)


def test_kappa_equals_cohen_1960_table_1() -> None:
    """Two judges of 200 cases: 0.41 is expected by chance, 0.7 is observed, and kappa is 0.492."""
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])

    assert cohens_kappa(table) == pytest.approx((0.70 - 0.41) / (1 - 0.41), abs=1e-12)


def test_alpha_equals_krippendorff_2011_section_a() -> None:
    """Two observers, ten units, two values: 0.095."""
    first = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 0])
    second = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0])

    alpha = krippendorffs_alpha(confusion(first, second, 2))

    assert alpha == pytest.approx(1 - 19 * 8 / (2 * 14 * 6), rel=1e-12)
    assert round(alpha or 0, 3) == 0.095


def test_alpha_equals_krippendorff_2011_section_b() -> None:
    """Two observers, twelve units, five names: 0.692."""
    first = np.array([0, 0, 1, 1, 3, 2, 2, 2, 4, 3, 3, 0])
    second = np.array([1, 0, 1, 1, 1, 2, 2, 2, 4, 3, 3, 3])

    assert round(krippendorffs_alpha(confusion(first, second, 5)) or 0, 3) == 0.692


def test_alpha_on_a_scale_uses_squared_distances() -> None:
    """Compare with the definition: 1 - observed / expected mean squared distance of all value pairs."""
    first, second = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 1, 1, 2, 1, 2])
    values = np.array([1.0, 2.0, 5.0])
    pooled = values[np.concatenate([first, second])]
    observed = ((values[first] - values[second]) ** 2).mean()
    expected = ((pooled[:, None] - pooled[None, :]) ** 2).sum() / (12 * 11)

    alpha = krippendorffs_alpha(confusion(first, second, 3), values)

    assert alpha == pytest.approx(1 - observed / expected, rel=1e-12)


def test_agreement_with_a_single_class_is_undefined() -> None:
    table = confusion(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), 1)

    assert cohens_kappa(table) is None
    assert krippendorffs_alpha(table) is None
