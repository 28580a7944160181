"""Metrics on the page: values, intervals or reasons as in `aigo-bridge stats`, and sample counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.extras.report.page.test_writing import summary
from tests.support.results import metric, question, result, sample, score, trial, write_result

from aigo_report.page import sources_of, write_report
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.estimates import estimates
from aigo_stats.statistics.intervals import Interval

FAILURE = {"error_type": "HTTPStatusError", "message": "refused", "stage": "solver"}


def log_of(right: int, wrong: int, *, failed: int = 0, excluded: int = 0) -> dict[str, Any]:
    """Return a result with the mean of `is_correct` over the counted samples."""
    answers = [*["yes"] * right, *["no"] * wrong]
    samples = [question(number, answer, "yes") for number, answer in enumerate(answers)]
    samples += [question(len(samples) + number, "yes", "yes", excluded="easy") for number in range(excluded)]
    for _ in range(failed):
        samples.append(question(len(samples), "", "yes"))
        samples[-1]["trials"][0].update(solver=None, scores=[], errors=[FAILURE])
    log = result(samples, [metric({"accuracy": right / (right + wrong)})])
    mean = {"type": "mean", "field": "is_correct", "name": "accuracy"}
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "{{ sample.gold }}", "metrics": [mean]}
    ]
    return log


def metrics_of(folder: Path, log: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics on the page of a result."""
    (folder / "quiz.tasklog.json").unlink(missing_ok=True)
    path = write_result(folder / "quiz.tasklog.json", log)
    page = write_report(sources_of([path]), folder / "report.html").path
    metrics: list[dict[str, Any]] = summary(page)["results"][0]["metrics"]
    return metrics


def test_metric_on_the_page_has_the_interval_of_its_statistics(tmp_path: Path) -> None:
    (shown,) = metrics_of(tmp_path, log_of(30, 10, failed=2, excluded=1))[0]["values"]

    (expected,) = estimates(read_columns(tmp_path / "quiz.tasklog.json"))
    assert isinstance(expected.estimate, Interval)
    assert shown["text"] == "0.75"
    assert shown["interval"] == [repr(expected.estimate.low), repr(expected.estimate.high)]
    assert shown["method"] == expected.estimate.method
    assert shown["bounds"] == [repr(30 / 42), repr(32 / 42)]
    assert shown["scale"] == [0.0, 1.0]


def test_sample_counts_of_a_metric_sum_to_all_samples(tmp_path: Path) -> None:
    log = log_of(3, 1, failed=2, excluded=1)
    log["evidence"]["samples"][3]["trials"][0]["scores"][0]["values"]["is_correct"] = None
    log["evidence"]["metrics"][0]["values"]["accuracy"] = 1.0

    (shown,) = metrics_of(tmp_path, log)[0]["values"]

    counts = {"scored": 3, "failed": 2, "excluded": 1, "unfinished": 0, "no_aggregate": 0, "no_value": 1}
    assert shown["samples"] == {**counts, "unscored": 3, "trials": 3, "missing_trials": 0}
    assert sum(counts.values()) == len(log["evidence"]["samples"])


def test_metric_that_does_not_match_its_samples_shows_scorer_counts(tmp_path: Path) -> None:
    log = log_of(3, 1, failed=2, excluded=1)
    log["evidence"]["metrics"][0]["values"]["accuracy"] = 0.5

    (shown,) = metrics_of(tmp_path, log)

    assert shown["counts"] == {"scored": 4, "excluded": 1, "without": 2}
    assert "samples" not in shown["values"][0]
    reason = "the samples' scores give 0.75, which differs from the result"
    assert shown["values"][0]["no_interval"] == reason


def test_without_scipy_only_proportions_on_the_page_have_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(30, 10)
    (expected,) = metrics_of(tmp_path, log)[0]["values"]
    log["evidence"]["samples"][0]["trials"][0]["scores"][0]["values"]["is_correct"] = 0.5
    log["evidence"]["metrics"][0]["values"]["accuracy"] = 29.5 / 40
    monkeypatch.setitem(sys.modules, "scipy.special", None)

    (share,) = metrics_of(tmp_path, log_of(30, 10))[0]["values"]
    (mean,) = metrics_of(tmp_path, log)[0]["values"]

    assert share == expected
    assert "no_interval" not in share
    assert "scipy" in mean["no_interval"]
    assert mean["samples"]["scored"] == 40


def test_score_beyond_the_float_range_has_no_interval(tmp_path: Path) -> None:
    log = log_of(30, 10)
    log["evidence"]["samples"][0]["trials"][0]["scores"][0]["values"]["is_correct"] = 10**400
    path = tmp_path / "quiz.tasklog.json"
    path.write_text(json.dumps(log))

    page = write_report(sources_of([path]), tmp_path / "report.html").path

    (shown,) = summary(page)["results"][0]["metrics"][0]["values"]
    assert "interval" not in shown
    assert shown["no_interval"]


def test_invalid_sample_removes_only_the_intervals(tmp_path: Path) -> None:
    log = log_of(30, 10)
    del log["evidence"]["samples"][7]["trials"][0]["scores"][0]["scorer_key"]
    path = tmp_path / "quiz.tasklog.json"
    path.write_text(json.dumps(log))

    page = write_report(sources_of([path]), tmp_path / "report.html").path

    (shown,) = summary(page)["results"][0]["metrics"][0]["values"]
    assert (shown["text"], shown["no_interval"]) == ("0.75", "the samples do not have the form of evidence")
    assert summary(page)["results"][0]["counts"]["samples"] == 40


def test_label_scores_are_named_by_their_metrics(tmp_path: Path) -> None:
    labels = [("cat", "cat"), ("dog", "cat"), ("dog", "dog")]
    samples = [
        sample(trial(number, [], scores=[score("pet", {"gt": truth, "pred": prediction})]))
        for number, (truth, prediction) in enumerate(labels)
    ]
    log = result(samples, [metric({"accuracy": 2 / 3}, scorer="pet", key="classes")])
    classes = {"type": "multiclass-classification", "key": "classes", "field_gt": "gt", "field_pred": "pred"}
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "python", "key": "pet", "compute_scores_snippet": "", "metrics": [classes]}
    ]
    path = write_result(tmp_path / "pets.tasklog.json", log)

    page = write_report(sources_of([path]), tmp_path / "report.html").path

    (shown,) = summary(page)["results"]
    assert shown["labels"] == [{"scorer": "pet", "truth": "gt", "prediction": "pred"}]


def test_errors_are_counted_by_stage_and_exclusions_by_rule(tmp_path: Path) -> None:
    path = write_result(tmp_path / "quiz.tasklog.json", log_of(3, 1, failed=2, excluded=1))

    page = write_report(sources_of([path]), tmp_path / "report.html").path

    (shown,) = summary(page)["results"]
    assert shown["stages"] == [["solver", 2, [["HTTPStatusError", 2]]]]
    assert shown["rules"] == [["easy", 1]]


def test_column_with_few_values_becomes_a_breakdown(tmp_path: Path) -> None:
    log = log_of(30, 10)
    for number, one in enumerate(log["evidence"]["samples"]):
        one["trials"][0]["sample"]["data"] = {"topic": ["law", "art"][number % 2], "id": str(number)}
    path = write_result(tmp_path / "topics.tasklog.json", log)

    (shown,) = summary(write_report(sources_of([path]), tmp_path / "report.html").path)["results"]

    (breakdown,) = shown["breakdowns"]
    assert breakdown["column"] == "topic"
    parts = [
        (part["name"], part["samples"], part["value"]["text"], len(part["value"]["interval"]))
        for part in breakdown["parts"]
    ]
    assert parts == [("law", 20, "0.75", 2), ("art", 20, "0.75", 2)]
