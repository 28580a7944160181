"""Command lines of `aigo-bridge stats --labels` and `--repeatability`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, sample
from tests.support.commands import Run


@pytest.fixture
def results(tmp_path: Path) -> list[Path]:
    """Return two runs of 100 samples with 80 and 90 right answers. 20 samples have human labels."""
    files = []
    for name, right in (("a", 80), ("b", 90)):
        samples = [
            sample(
                number,
                {"right": float(number < right)},
                {"q": number, "human": int(number % 5 != 1) if number < 20 else None},
                answer=f"{name} says {number}",
            )
            for number in range(100)
        ]
        files.append(log(tmp_path / f"{name}.tasklog.json", samples, [(MEAN, {"accuracy": right / 100})]))
    return files


def test_labels_option_prints_judge_quality(aigo: Run, results: list[Path]) -> None:
    done = aigo("stats", results[0], "--labels", "human")

    assert done.code == 0, done.err
    (row,) = [line.split() for line in done.out.splitlines() if line.startswith("judge.right  ")]
    assert row[:7] == ["judge.right", "20", "0.8", "0", "-0.08333", "0.8", "0.8"]
    assert "labels in rows, scores in columns" in done.out
    (shown,) = aigo("stats", results[0], "--labels", "human", "--json").json
    (judge,) = shown["judges"]
    assert judge["agreement"]["confusion"] == [[0, 4], [0, 16]]
    assert judge["corrected_mean"] == pytest.approx(0.75 - 0.2)
    assert judge["interval"][0] < 0.55 < judge["interval"][1]


def test_unknown_label_column_is_rejected(aigo: Run, results: list[Path]) -> None:
    done = aigo("stats", results[0], "--labels", "person")

    assert (done.code, "no sample has a value in the column 'person'" in done.err) == (2, True)


def test_repeatability_option_prints_variances_and_flaky_samples(aigo: Run, results: list[Path]) -> None:
    done = aigo("stats", "--repeatability", *results, "--flaky", 2)

    assert done.code == 0, done.err
    assert "judge.right: 2 times, means 0.8, 0.9" in done.out
    assert "no answer was scored twice" in done.out
    assert "10 of 100 samples do not have the same score every time" in done.out
    assert "  80  0 1\n  81  0 1\n  … and 8 more" in done.out
    (score,) = aigo("stats", "--repeatability", *results, "--json").json["scores"]
    assert score["variance"]["model_and_judge"] == pytest.approx(10 * 0.5 / 100)
    assert (score["num_flaky"], len(score["flaky"])) == (10, 10)


def test_repeatability_needs_results(aigo: Run, results: list[Path], tmp_path: Path) -> None:
    done = aigo("stats", "--repeatability", results[0], tmp_path / "none.tasklog.json")

    assert (done.code, "does not exist" in done.err) == (2, True)


def test_errors_of_the_log_are_printed(aigo: Run, tmp_path: Path) -> None:
    error = {"error_type": "InvalidatedLog", "message": "the log was marked as invalid"}
    file = log(
        tmp_path / "a.tasklog.json", [sample(1, {"right": 1.0})], [(MEAN, {"accuracy": 1.0})], errors=[error]
    )

    assert f"{file}: the log was marked as invalid" in aigo("stats", file).err
    assert "the log was marked as invalid" in aigo("check", file, "--rule", "accuracy >= 0.5").err
    assert aigo("stats", file, "--json").json[0]["errors"] == ["the log was marked as invalid"]
