"""Command lines of `aigo-bridge stats` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.extras.stats.comparison.logs import MEAN, log, sample
from tests.support.commands import Run
from tests.support.missing import verbs_without


@pytest.fixture
def results(tmp_path: Path) -> list[Path]:
    """Return three results of 100 samples with 50, 80 and 82 right answers."""
    files = []
    for name, right in (("a", 50), ("b", 80), ("c", 82)):
        samples = [
            sample(number, {"right": float(number < right)}, answer=f"{name} says {number}")
            for number in range(100)
        ]
        files.append(log(tmp_path / f"{name}.tasklog.json", samples, [(MEAN, {"accuracy": right / 100})]))
    return files


def test_stats_prints_metrics_of_one_result(aigo: Run, results: list[Path]) -> None:
    done = aigo("stats", results[0])

    assert done.code == 0, done.err
    assert "50 %   40.38 to 59.62 %         5 pp" in done.out
    (shown,) = aigo("stats", results[0], "--json").json
    (metric,) = shown["metrics"]
    assert metric["interval"] == pytest.approx([0.4038315, 0.5961685])
    counted = {name: number for name, number in metric["samples"].items() if number}
    assert counted == {"scored": 100, "trials": 100}


def test_compare_prints_differences_and_flips_of_two_results(aigo: Run, results: list[Path]) -> None:
    done = aigo("compare", *results[:2], "--flips", 2)

    assert done.code == 0, done.err
    assert "no other differences" in done.out
    assert "+30 pp" in done.out
    assert "0 right → wrong, 30 wrong → right" in done.out
    assert "base a says 50\n    new  b says 50" in done.out
    assert "… and 28 more" in done.out


def test_comparison_is_also_written_as_json(aigo: Run, results: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "new" / "comparison.json"

    done = aigo("compare", *results, "--report", file)

    assert "1 is the highest value" in done.out
    assert json.loads(file.read_bytes()) == aigo("compare", *results, "--json").json
    refused = aigo("compare", *results, "--report", tmp_path / "page.pdf")
    assert (refused.code, "expected a name that ends in .json or .html" in refused.err) == (2, True)


def test_comparison_is_written_as_a_page(aigo: Run, results: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "new" / "comparison.html"

    done = aigo("compare", *results, "--report", file, "--flips", 1)

    assert done.code == 0, done.err
    page = file.read_text("utf-8")
    assert page.count("<h2><small>task</small>") == 2
    assert "b says 50" in page
    assert "1 is the highest value" in page


def test_compare_ranks_several_results(aigo: Run, results: list[Path]) -> None:
    done = aigo("compare", *results, "--json")

    (ranking,) = done.json["rankings"]
    assert {Path(name).name[0]: rank for name, rank in ranking["ranks"].items()} == {
        "a": [3, 3],
        "b": [1, 2],
        "c": [1, 2],
    }
    assert [Path(one["new"]).name[0] for one in done.json["comparisons"]] == ["b", "c"]
    first, second = (one["metrics"][0] for one in done.json["comparisons"])
    assert first["p_value"] == pytest.approx(2 * 0.5**30)
    assert first["p_value_holm"] == pytest.approx(2 * 0.5**30)
    assert second["p_value_holm"] == pytest.approx(4 * 0.5**32)
    assert "1–2" in aigo("compare", *results).out


def test_folders_are_compared_file_by_file(aigo: Run, results: list[Path], tmp_path: Path) -> None:
    for name, file in (("old", results[0]), ("new", results[1])):
        (tmp_path / name).mkdir()
        file.rename(tmp_path / name / "task.tasklog.json")

    done = aigo("compare", tmp_path / "old", tmp_path / "new", "--json")

    assert [one["metrics"][0]["difference"] for one in done.json["comparisons"]] == [pytest.approx(0.3)]


def test_invalid_compare_arguments_exit_with_2(aigo: Run, results: list[Path], tmp_path: Path) -> None:
    for arguments, message in (
        ([results[0], tmp_path / "none.json"], "none.json' does not exist"),
        ([results[0], results[0]], "a result is named twice"),
        ([results[0], tmp_path], "found both single results and folders"),
        ([*results[:2], "--cluster", "document"], "no sample has a value in the column 'document'"),
    ):
        done = aigo("compare", *arguments)
        assert (done.code, message in done.err) == (2, True), done.err


def test_missing_scipy_is_reported_with_the_install_command(tmp_path: Path, results: list[Path]) -> None:
    verbs = (
        ["stats", results[0]],
        ["compare", *results[:2]],
        ["check", results[0], "--rule", "accuracy >= 0.1"],
        ["power", results[0]],
        ["power", "--rates", "0.80,0.83"],
    )

    for verb, done in zip(verbs, verbs_without(tmp_path, ["scipy"], *verbs), strict=True):
        assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1), (verb, done.err)
        assert "scipy, which is not installed; run: pip install" in done.err
