"""Corrections for multiple comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for multiple tests (Holm).

    Holm, S. (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6. A missing p-value does not count as a test and stays missing.
    """
    order = sorted((p, number) for number, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for place, (p, number) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - place)))
        adjusted[number] = highest
    return adjusted


def rank_bounds(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> dict[str, tuple[int, int]]:
    """Return the best and worst possible rank of each name.

    Args:
        names: names to rank.
        better: whether the first name of a pair is significantly better. All pairs must be tested at one
            joint level, so that the ranks hold jointly.

    Mogstad, M., Romano, J. P., Shaikh, A. M. and Wilhelm, D. (2024), Inference for ranks, Review of Economic
    Studies 91: the best rank is 1 plus the number of significantly better names. The worst rank is the number
    of names that are not significantly worse.
    """
    bounds = {}
    for name in names:
        above = sum(better.get((rival, name), False) for rival in names)
        below = sum(better.get((name, rival), False) for rival in names)
        bounds[name] = (1 + above, len(names) - below)
    return bounds
