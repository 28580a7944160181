"""Results as columns: usage over trials and damaged samples."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.extras.stats.comparison.logs import log, repeated, sample

from aigo_bridge.errors import EvidenceError
from aigo_stats.comparison.columns import read_columns


def test_usage_is_summed_over_trials_and_unknown_if_one_is_missing(tmp_path: Path) -> None:
    samples = [repeated(number, [1.0, 0.0]) for number in range(3)]
    for position, tokens in ((0, (7, 5)), (1, (7, None)), (2, ("many", 1))):
        for trial, count in zip(samples[position]["trials"], tokens, strict=True):
            trial["solver"]["output"]["trace"]["metadata"] = {"total_tokens": count, "total_time": 0.5}

    usage = read_columns(log(tmp_path / "a.json", samples, [])).usage

    assert usage["total_tokens"][0] == 12
    assert [math.isnan(value) for value in usage["total_tokens"]] == [False, True, True]
    assert usage["total_time"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "damage",
    [
        {"trials": [3]},
        {"trials": [{"index": 0, "solver": [1]}]},
        {"trials": [{"index": 0, "scores": [{"values": {"right": 1.0}}]}]},
        {"trials": [{"index": 0, "scores": [{"scorer_key": "judge", "values": [1.0]}]}]},
        {"trials": [{"index": 0, "sample": {"data": "row"}}]},
    ],
)
def test_damaged_sample_is_reported_with_its_position(tmp_path: Path, damage: dict[str, Any]) -> None:
    samples = [sample(0, {"right": 1.0}), {**sample(1, {"right": 1.0}), **damage}]

    with pytest.raises(EvidenceError, match=r"a\.json: evidence\.samples\[1\]"):
        read_columns(log(tmp_path / "a.json", samples, []), ["question"])
