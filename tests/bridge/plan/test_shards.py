"""Shards of a plan's rows: every row is in exactly one, in order, and what is no shard is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import UsageError
from aigo_bridge.plan.shards import MOST_SHARDS, Shard, ShardRows, parse_shard


@given(total=st.integers(0, 5_000), of=st.integers(1, 300))
def test_every_row_is_in_one_shard_and_the_shards_follow_each_other(total: int, of: int) -> None:
    bounds = [Shard(number, of).bounds(total) for number in range(1, of + 1)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == total
    assert all(left[1] == right[0] for left, right in itertools.pairwise(bounds))
    sizes = {stop - start for start, stop in bounds}
    assert max(sizes) - min(sizes) <= 1


def test_folders_sort_as_their_shards_do() -> None:
    names = [Shard(number, 100).folder for number in range(1, 101)]
    assert names == sorted(names)
    assert names[2] == "shard-003-of-100"


@pytest.mark.parametrize(
    "text", ["17/16", "0/4", "3", "", "/", "1/0", "-1/4", "1/-4", "1.5/4", "a/b", "1/2/3", " 1/2", "١/٢"]
)
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected K/N with K from 1 to N"):
        parse_shard(text)


def test_there_are_not_too_many_shards() -> None:
    assert parse_shard(f"1/{MOST_SHARDS}") == Shard(1, MOST_SHARDS)
    with pytest.raises(UsageError, match="at most 100,000 shards"):
        parse_shard(f"1/{MOST_SHARDS + 1}")


def test_a_shard_comes_back_from_a_log() -> None:
    rows = ShardRows(Shard(3, 16), 100)
    assert ShardRows.from_json(rows.to_json()) == rows
    assert ShardRows.from_json(None) is None


@pytest.mark.parametrize("stored", [[], [1, 2], [0, 2, 3], [3, 2, 3], [1, 2, -1], [1, 2, True], "1/2", {}])
def test_a_damaged_shard_of_a_log_is_reported(stored: object) -> None:
    with pytest.raises(ValueError, match="its shard is"):
        ShardRows.from_json(stored)
