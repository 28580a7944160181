"""Intervals next to the metrics of a run, matched by scorer, metric and name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, sample

from aigo_bridge.cli.outcomes import show_outcome
from aigo_bridge.cli.summaries import benchmark_json
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import LogRef
from aigo_bridge.results.assembling import MetricRow
from aigo_stats.statistics.intervals import wilson
from aigo_stats.terminal.intervals import result_estimates, row_estimate

SPREAD = {"type": "std_dev", "field": "right"}


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    samples = [sample(number, {"right": float(number < 15)}) for number in range(20)]
    metrics = [(MEAN, {"accuracy": 0.75}), (SPREAD, {"right_std_dev": 0.4442616583193193})]
    rows = (
        MetricRow("judge", "accuracy", 0.75, 20, metric_key="mean"),
        MetricRow("judge", "right_std_dev", 0.4442616583193193, 20, metric_key="std_dev"),
        MetricRow("judge", "f1", None, 0, "no labels", "f1"),
    )
    file = log(tmp_path / "a.tasklog.json", samples, metrics)
    return Outcome(
        task="a", status="success", result=file, logs=(LogRef("echo", tmp_path / "a.eval"),), metrics=rows
    )


def test_metric_table_has_an_interval_column(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> None:
    show_outcome(outcome)

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "metric value 95 % interval samples scorer" in lines
    assert "accuracy 75 % 53.13 to 88.81 % 20 judge" in lines
    assert "right_std_dev 0.4443 – 20 judge" in lines


def test_json_output_has_the_interval_or_a_reason(outcome: Outcome) -> None:
    share, spread, missing = benchmark_json(outcome)["metrics"]

    expected = wilson(15, 20)
    assert share["interval"] == [expected.low, expected.high]
    assert (share["standard_error"], share["method"]) == (expected.standard_error, "Wilson")
    assert spread["interval"] is None
    assert "20 samples are too few" in spread["reason"]
    assert missing["reason"] == "the value of the metric is missing"


def test_benchmark_rows_are_matched_by_name_and_value(outcome: Outcome) -> None:
    numbers = result_estimates(outcome.result)

    assert row_estimate(numbers, MetricRow("judge", "accuracy", 0.75, None)) is not None
    assert row_estimate(numbers, MetricRow("judge", "accuracy", 0.5, None)) is None
    assert row_estimate(numbers, MetricRow("other", "accuracy", 0.75, None)) is None


def test_unreadable_evidence_results_in_metrics_without_intervals(
    outcome: Outcome, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome.result is not None
    outcome.result.write_text("{")

    show_outcome(outcome)

    assert "95 %" not in capsys.readouterr().out
    assert result_estimates(None) == {}
