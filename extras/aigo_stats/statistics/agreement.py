"""Agreement of two raters that label the same samples.

Sources: Cohen, J. (1960), A coefficient of agreement for nominal scales, Educational and Psychological
Measurement 20; Krippendorff, K. (2011), Computing Krippendorff's alpha-reliability, University of
Pennsylvania.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aigo_stats.statistics.intervals import Numbers


def confusion(rows: NDArray[np.int64], columns: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the confusion matrix: the number of samples for each pair of classes, numbered from 0."""
    counts = np.bincount(rows * classes + columns, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.int64)


def cohens_kappa(table: NDArray[np.int64]) -> float | None:
    """Return the agreement beyond chance of a confusion matrix; `None` if both raters use the same single
    class.
    """
    total = int(table.sum())
    agreement = float(np.trace(table)) / total
    chance = float((table.sum(axis=0) * table.sum(axis=1)).sum()) / total**2
    return (agreement - chance) / (1 - chance) if chance < 1 else None


def krippendorffs_alpha(table: NDArray[np.int64], values: Numbers | None = None) -> float | None:
    """Return the agreement beyond chance of two interchangeable raters.

    Args:
        table: confusion matrix of the two raters.
        values: numeric values of the classes, for squared distances; `None` for nominal classes.

    Returns:
        Krippendorff's alpha; `None` if there is only one class.
    """
    classes = len(table)
    distances = (
        1.0 - np.eye(classes) if values is None else np.subtract.outer(values, values).astype(float) ** 2
    )
    coincidences = table + table.T
    counts = coincidences.sum(axis=0)
    total = float(counts.sum())
    expected = float((np.outer(counts, counts) * distances).sum())
    if not expected:
        return None
    return 1 - (total - 1) * float((coincidences * distances).sum()) / expected
