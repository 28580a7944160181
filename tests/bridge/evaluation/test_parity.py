"""Comparison of results of several engines: equality, and reported differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.errors import EvidenceError
from aigo_bridge.evaluation.parity import MAX_FIRST, MetricParity, parity
from aigo_bridge.results.assembling import MetricRow

NAN = float("nan")


def sample(
    sample_id: Any, value: Any = 1.0, *, error: str | None = None, rule: str | None = None
) -> dict[str, Any]:
    errors = [] if error is None else [{"stage": error, "message": f"{value} of this engine"}]
    scores = [] if error is not None else [{"scorer_key": "s", "values": {"v": value}}]
    return {
        "sample_id": sample_id,
        "scores": scores,
        "action_records": [] if rule is None else [{"rule_key": rule, "action": "exclude_from_metrics"}],
        "trials": [{"index": 0, "scores": scores, "errors": errors, "solver": {"said": str(value)}}],
    }


def outcome(status: str, metrics: list[MetricRow], result: Path | None) -> Outcome:
    return Outcome(task="t", status=status, metrics=tuple(metrics), result=result)


def side(
    folder: Path, name: str, samples: list[dict[str, Any]], value: float | None = 1.0, status: str = "success"
) -> Outcome:
    path = folder / f"{name}.tasklog.json"
    path.write_text(json.dumps({"format_version": "v1", "evidence": {"samples": samples}}))
    return outcome(status, [MetricRow("s", "Mean", value, len(samples))], path)


def test_equal_results_are_equal(tmp_path: Path) -> None:
    samples = [sample("a"), sample("b", None), sample(3, error="solver"), sample("d", rule="r")]
    found = parity({"one": side(tmp_path, "one", samples), "two": side(tmp_path, "two", samples)})
    assert found.is_equal
    assert (found.num_samples, found.num_differing, found.first_differing) == (4, 0, ())


def test_different_answers_and_messages_are_ignored(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample("a", 1.0, error="score")])
    right = side(tmp_path, "two", [sample("a", 2.0, error="score")])
    assert parity({"one": left, "two": right}).is_equal


@pytest.mark.parametrize(
    "other",
    [
        sample("a", 0.9999999999999999),
        sample("a", None),
        sample("a", error="score"),
        sample("a", rule="excluded"),
        sample("a", True),
    ],
)
def test_every_difference_of_a_sample_is_reported(tmp_path: Path, other: dict[str, Any]) -> None:
    left = side(tmp_path, "one", [sample("a"), sample("b")])
    right = side(tmp_path, "two", [other, sample("b")])
    found = parity({"one": left, "two": right})
    assert not found.is_equal
    assert (found.num_samples, found.num_differing, found.first_differing) == (2, 1, ("a",))


def test_a_failure_at_another_stage_is_a_difference(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample("a", error="solver")])
    right = side(tmp_path, "two", [sample("a", error="score")])
    assert parity({"one": left, "two": right}).first_differing == ("a",)


def test_missing_samples_are_differences_at_any_position(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample("a"), sample("b"), sample("c")])
    right = side(tmp_path, "two", [sample("c"), sample("a"), sample("d")])
    found = parity({"one": left, "two": right})
    assert (found.num_samples, found.first_differing) == (4, ("b", "d"))


def test_sample_ids_are_compared_with_their_type(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample(1), sample("1", 0.0)])
    right = side(tmp_path, "two", [sample("1", 0.0), sample(1)])
    assert parity({"one": left, "two": right}).is_equal


def test_only_the_first_differing_samples_are_listed(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample(n) for n in range(20)])
    right = side(tmp_path, "two", [sample(n, 0.0) for n in range(20)])
    found = parity({"one": left, "two": right})
    assert (found.num_differing, found.first_differing) == (20, tuple(range(MAX_FIRST)))


def test_result_without_samples_equals_a_missing_result(tmp_path: Path) -> None:
    empty = side(tmp_path, "one", [])
    assert parity({"one": empty, "two": side(tmp_path, "two", [])}).is_equal
    without = outcome("success", list(empty.metrics), None)
    assert parity({"one": empty, "two": without}).is_equal
    assert parity({"one": side(tmp_path, "three", [sample("a")]), "two": without}).first_differing == ("a",)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1.0, 1.0, True),
        (1, 1.0, True),
        (None, None, True),
        (NAN, NAN, True),
        (None, 0.0, False),
        (NAN, 0.0, False),
        (0.1 + 0.2, 0.3, False),
    ],
)
def test_metrics_are_compared_exactly(left: float | None, right: float | None, equal: bool) -> None:
    assert MetricParity("s", "m", {"one": left, "two": right}).is_equal is equal


def test_missing_metric_or_different_status_is_a_difference(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [])
    right = outcome(
        "cancelled", [MetricRow("s", "Mean", 1.0, 0), MetricRow("t", "Other", 2.0, 0)], left.result
    )
    found = parity({"one": left, "two": right})
    assert not found.is_equal
    assert [metric.is_equal for metric in found.metrics] == [True, False]
    assert found.to_json() == {
        "equal": False,
        "status": {"one": "success", "two": "cancelled"},
        "metrics": [
            {
                "scorer": "s",
                "name": "Mean",
                "equal": True,
                "values": {"one": 1.0, "two": 1.0},
                "num_scored": {"one": 0, "two": 0},
                "problems": {},
            },
            {
                "scorer": "t",
                "name": "Other",
                "equal": False,
                "values": {"one": None, "two": 2.0},
                "num_scored": {"two": 0},
                "problems": {},
            },
        ],
        "samples": {"total": 0, "differing": 0, "first_differing": []},
    }


def test_one_of_three_engines_that_differs_fails_parity(tmp_path: Path) -> None:
    sides = {name: side(tmp_path, name, [sample("a")]) for name in ("one", "two")}
    assert not parity({**sides, "three": side(tmp_path, "three", [sample("a", 0.0)])}).is_equal
    assert parity({**sides, "three": side(tmp_path, "three", [sample("a")])}).is_equal


def test_runs_of_a_repeated_task_are_compared_one_by_one(tmp_path: Path) -> None:
    def repeated(name: str, second: float) -> Outcome:
        path = tmp_path / f"{name}.tasklog.json"
        runs = [{"samples": [sample("a")]}, {"samples": [sample("a", second)]}]
        path.write_text(json.dumps({"format_version": "v1", "evidence": {"samples": [], "runs": runs}}))
        return outcome("success", [], path)

    assert parity({"one": repeated("one", 1.0), "two": repeated("two", 1.0)}).num_samples == 2
    assert parity({"one": repeated("one", 1.0), "two": repeated("three", 0.0)}).num_differing == 1


def test_a_damaged_result_fails_parity(tmp_path: Path) -> None:
    left = side(tmp_path, "one", [sample("a")])
    (tmp_path / "two.tasklog.json").write_text('{"evidence": {"samples": [{')
    with pytest.raises(EvidenceError):
        parity({"one": left, "two": outcome("success", [], tmp_path / "two.tasklog.json")})


def test_metrics_with_the_same_name_are_compared_separately(tmp_path: Path) -> None:
    def of(name: str, *values: float) -> Outcome:
        return outcome(
            "success", [MetricRow("s", "Mean", value, 1) for value in values], side(tmp_path, name, []).result
        )

    assert parity({"one": of("one", 1.0, 2.0), "two": of("two", 1.0, 2.0)}).is_equal
    found = parity({"one": of("one", 1.0, 2.0), "two": of("two", 3.0, 2.0)})
    assert [metric.is_equal for metric in found.metrics] == [False, True]
