"""Reducers give the same values as in Inspect."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai.scorer import Score, value_to_float
from inspect_ai.scorer._reducer import create_reducers

from aigo_bridge.metrics.reducers import reducer

NAMES = ["mean", "median", "mode", "max", "at_least_1", "at_least_3", "pass_at_1", "pass_at_2", "pass_k_2"]
VALUES = st.one_of(
    st.sampled_from(["C", "P", "I", "N", "yes", "no", "0.25"]), st.integers(0, 3), st.booleans()
)


@pytest.mark.parametrize("name", NAMES)
@given(values=st.lists(VALUES, min_size=1, max_size=6))
def test_reducer_gives_the_same_value_as_inspect(name: str, values: list[Any]) -> None:
    ours = reducer(name)
    (inspects,) = create_reducers([name])
    expected = inspects([Score(value=value) for value in values]).value

    assert ours is not None
    if isinstance(expected, float) and math.isnan(expected):
        assert ours(values) is None
    else:
        assert ours(values) == pytest.approx(value_to_float()(expected), abs=1e-12)


@pytest.mark.parametrize("name", ["collect", "majority", "mine", "at_least", "pass_at_x", "at_least_3_more"])
def test_unknown_reducers_are_not_supported(name: str) -> None:
    assert reducer(name) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_without_scores_is_unscored(name: str) -> None:
    ours = reducer(name)

    assert ours is not None
    assert ours([]) is None
