"""Metrics of other tools are recognized by name and definition, not by value."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.extras.stats.comparison.logs import log, sample
from tests.support.commands import REPOSITORY

from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.estimates import estimates
from aigo_stats.comparison.numbers import Quantity, stored_numbers
from aigo_stats.comparison.sources import PointValue, WrongMetric
from aigo_stats.statistics.intervals import Interval, NoInterval
from aigo_stats.statistics.ratios import Ratio


def result(
    path: Path, field: str, values: list[Any], numbers: dict[str, float], kind: str, **config: Any
) -> Path:
    """Write a result of another tool with one scorer, named like its score, and one metric."""
    samples = [sample(place, {field: value}) for place, value in enumerate(values)]
    scorer = {"key": "judge", "type": field, "metrics": [{"key": kind, "type": kind}]}
    return log(
        path,
        samples,
        [({"type": kind}, numbers)],
        task={"scorers": [scorer]},
        specification={"config": config},
    )


def numbers_of(path: Path) -> dict[str, Quantity]:
    return {number.name: number for number in stored_numbers(read_columns(path))}


@pytest.mark.parametrize("tool", ["lighteval", "lm_eval"])
def test_standard_error_equal_to_the_mean_is_recognized(tmp_path: Path, tool: str) -> None:
    """Both are 0 if all answers are wrong."""
    path = result(tmp_path / "a.json", "em", [0.0] * 12, {"em": 0.0, "em_stderr": 0.0}, "mean", **{tool: {}})

    (number,) = estimates(read_columns(path))

    assert (number.name, number.reported_error) == ("em", ("em_stderr", 0.0))
    assert isinstance(number.estimate, Interval)
    assert isinstance(numbers_of(path)["em_stderr"].content, PointValue)


def test_means_and_their_standard_errors_are_recomputed(tmp_path: Path) -> None:
    values = {"acc": 0.25, "acc_stderr": (3 / 16 / 11) ** 0.5}
    path = result(tmp_path / "a.json", "acc", [1.0, 0.0, 0.0, 0.0] * 3, values, "mean", lighteval={})

    numbers = numbers_of(path)

    assert isinstance(numbers["acc"].content, Ratio)
    assert isinstance(numbers["acc_stderr"].content, PointValue)


def test_metric_equal_to_the_mean_by_chance_is_not_treated_as_a_mean(tmp_path: Path) -> None:
    path = result(tmp_path / "a.json", "f1", [1.0] * 12, {"f1": 1.0}, "corpus_f1", lighteval={})

    content = numbers_of(path)["f1"].content

    assert content == NoInterval("how 'corpus_f1' is computed is unknown")


def test_mean_is_matched_to_its_own_score_and_not_by_value(tmp_path: Path) -> None:
    """Another score of the scorer has the mean that the metric reports."""
    samples = [sample(place, {"a": float(place % 2), "b": 1.0}) for place in range(12)]
    metric = {"key": "m", "type": "mean", "score": "a", "package": "inspect_ai"}
    task = {"scorers": [{"key": "judge", "type": "judge", "metrics": [metric]}]}
    inspect: dict[str, Any] = {"config": {"inspect": {}}}
    path = log(
        tmp_path / "a.json",
        samples,
        [({"key": "m", "type": "mean"}, {"mean": 1.0})],
        task=task,
        specification=inspect,
    )

    content = numbers_of(path)["mean"].content

    assert isinstance(content, WrongMetric)
    assert content.value == 0.5


@pytest.mark.parametrize("version", ["0.4.5", "0.4.13"])
def test_every_mean_of_lm_eval_is_recomputed(golden_results: Any, version: str) -> None:
    check_means(golden_results("lm_eval", version))


@pytest.mark.parametrize("version", ["0.11.0", "0.13.0"])
def test_every_mean_of_lighteval_is_recomputed(golden_results: Any, version: str) -> None:
    check_means(golden_results("lighteval", version))


def check_means(results: list[Path]) -> None:
    count = 0
    for path in results:
        for metric in orjson.loads(path.read_bytes())["evidence"]["metrics"] or ():
            numbers = numbers_of(path)
            for name in metric["values"] if metric["metric_type"] == "mean" else ():
                is_error = name.endswith("_stderr") and name.removesuffix("_stderr") in metric["values"]
                assert isinstance(numbers[name].content, PointValue if is_error else Ratio), (
                    path,
                    name,
                )
                count += 1
    assert count >= 8


@pytest.fixture
def golden_results(tmp_path: Path, aigo: Any) -> Any:
    """Import the golden results of a tool."""

    def imported(tool: str, version: str) -> list[Path]:
        with zipfile.ZipFile(REPOSITORY / "tests" / "golden" / tool / f"{version}.zip") as archive:
            archive.extractall(tmp_path / "in")
        aigo("import", tmp_path / "in", "--out", tmp_path / "out")
        return sorted((tmp_path / "out").rglob("*.tasklog.json"))

    return imported
