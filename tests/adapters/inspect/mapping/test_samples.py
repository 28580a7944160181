"""All fields of scores, reductions and sample errors are kept or counted, and a missing value is not a null
value."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.inspect.mapping.test_events import TIME, Json, imported, sample_of, trace_of
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts

from aigo_bridge.importing.log_import import ImportReport, LossReport
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.scores import NO_VALUE, aggregated_scores, scores_of

WITHOUT_VALUE = "score without a value: written as null, marked as unscored"


def scored(score: Any) -> tuple[Json, LossReport]:
    loss = LossReport()
    (found,) = scores_of({"scores": {"s": score}}, loss) or []
    return found, loss


@pytest.mark.parametrize("score", [{"val": 1}, {"value": None, "val": 1}, {"val": 1, "metadata": {}}])
def test_a_score_without_a_value_is_unscored(score: Json) -> None:
    found, loss = scored(score)
    assert found["values"] == {"s": None}
    assert found["metadata"] == {"unscored": True, "reason": NO_VALUE, "inspect": {"val": 1}}
    assert loss.changed == {WITHOUT_VALUE: 1}


@pytest.mark.parametrize("score", [None, {}])
def test_a_null_score_is_unscored(score: Any) -> None:
    found, loss = scored(score)
    assert (found["values"], found["metadata"]["unscored"]) == ({"s": None}, True)
    assert loss.changed == {WITHOUT_VALUE: 1}


def test_a_reason_from_inspect_is_kept() -> None:
    found, _ = scored({"reason": "judge failed"})
    assert found["metadata"] == {"unscored": True, "reason": "judge failed"}


def test_unknown_score_fields_are_kept() -> None:
    found, loss = scored({"value": 1, "answer": "a", "confidence": float("nan"), "none": None})
    assert found["values"] == {"s": 1}
    assert found["metadata"] == {"answer": "a", "inspect": {"confidence": "NaN"}}
    assert not loss.changed


@pytest.mark.parametrize("value", [0, False, "", [], {}, 0.0])
def test_empty_score_values_are_kept(value: Any) -> None:
    found, loss = scored({"value": value})
    assert found.get("metadata") is None
    assert not loss.changed


def test_unknown_reduction_fields_are_kept_or_counted() -> None:
    loss = LossReport()
    entry = {
        "scorer": "s",
        "reducer": "mean",
        "samples": [{"sample_id": 1, "value": 1, "more": 2}],
        "x": 1,
        "y": 2,
    }
    ((found,),) = aggregated_scores([entry], loss).values()
    assert found["metadata"] == {"inspect": {"more": 2}, "reducer": "mean"}
    assert loss.dropped == {"field of reduced scores that Inspect does not have": 2}


def failed(error: Any, event: Any = None) -> Json:
    sample = sample_of(error=error)
    if event is not None:
        base = {"uuid": "e9", "timestamp": TIME, "working_start": 1.0}
        sample["events"].append({"event": "error", **base, "error": event})
    return sample


def noted(result: ImportReport) -> Any:
    return trace_of(result).metadata.extra["inspect"].get("error")


ERROR = {"message": "ValueError('x')", "traceback": "Traceback", "traceback_ansi": "\x1b[31mTraceback"}


@pytest.mark.parametrize(
    ("error", "event", "expected"),
    [
        (ERROR, ERROR, None),
        (ERROR, None, {"message": "ValueError('x')", "traceback": "Traceback"}),
        ({**ERROR, "code": 7}, ERROR, {"message": "ValueError('x')", "traceback": "Traceback", "code": 7}),
        ({**ERROR, "traceback": [1]}, ERROR, {"message": "ValueError('x')", "traceback": [1]}),
        ({**ERROR, "traceback": "other"}, ERROR, {"message": "ValueError('x')", "traceback": "other"}),
        ("it failed", None, {"message": "it failed"}),
    ],
)
def test_details_of_the_sample_error_are_kept(error: Any, event: Any, expected: Any, tmp_path: Path) -> None:
    assert noted(imported(tmp_path, failed(error, event))) == expected


def test_both_parsers_give_the_same_scores(tmp_path: Path) -> None:
    imported(
        tmp_path, sample_of(scores={"a": {"val": 1}, "b": {"value": 1, "more": [2]}, "c": {"value": None}})
    )
    with open_log(tmp_path / "log.eval") as log:
        ((ref, data),) = texts(tmp_path / "log.eval")
        written = lenient(log, ref, data)
        assert strict(log, ref, data) == written
    assert [score["values"] for score in json.loads(written[0])["scores"]] == [
        {"a": None},
        {"b": 1},
        {"c": None},
    ]
