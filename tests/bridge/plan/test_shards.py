"""Shards of a plan's rows: every row is in exactly one shard, in order, and invalid shards are rejected."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import UsageError
from aigo_bridge.plan.shards import MOST_SHARDS, Shard, ShardRows, parse_shard


@given(total=st.integers(0, 5_000), of=st.integers(1, 300))
def test_shards_are_contiguous_and_contain_every_row_once(total: int, of: int) -> None:
    bounds = [Shard(number, of).bounds(total) for number in range(1, of + 1)]
    assert bounds[0][0] == 0
    assert bounds[-1][1] == total
    assert all(left[1] == right[0] for left, right in itertools.pairwise(bounds))
    sizes = {stop - start for start, stop in bounds}
    assert max(sizes) - min(sizes) <= 1


def test_shard_folders_sort_in_shard_order() -> None:
    names = [Shard(number, 100).folder for number in range(1, 101)]
    assert names == sorted(names)
    assert names[2] == "shard-003-of-100"


@pytest.mark.parametrize(
    "text", ["17/16", "0/4", "3", "", "/", "1/0", "-1/4", "1/-4", "1.5/4", "a/b", "1/2/3", " 1/2", "١/٢"]
)
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected K/N with K from 1 to N"):
        parse_shard(text)


def test_number_of_shards_is_limited() -> None:
    assert parse_shard(f"1/{MOST_SHARDS}") == Shard(1, MOST_SHARDS)
    with pytest.raises(UsageError, match="at most 100,000 shards"):
        parse_shard(f"1/{MOST_SHARDS + 1}")


def test_shard_is_read_back_from_a_log() -> None:
    rows = ShardRows(Shard(3, 16), 100)
    assert ShardRows.from_json(rows.to_json()) == rows
    assert ShardRows.from_json(None) is None


@pytest.mark.parametrize("stored", [[], [1, 2], [0, 2, 3], [3, 2, 3], [1, 2, -1], [1, 2, True], "1/2", {}])
def test_invalid_shard_in_a_log_is_reported(stored: object) -> None:
    with pytest.raises(ValueError, match="its shard is"):
        ShardRows.from_json(stored)
