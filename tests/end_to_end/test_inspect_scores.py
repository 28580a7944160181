"""Scores of Inspect logs in every output: letter grades have numbers; metrics have names, formulas and standard errors."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
from inspect_ai.log import EvalLog
from tests.support.commands import Run
from tests.support.inspect_evals import evals

from aigo_bridge.results.sources import ResultSource
from aigo_report.page.packing import Blocks, read_result
from aigo_report.tables.charts import chart
from aigo_report.tables.results import Results as Tables
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.numbers import Quantity, stored_numbers
from aigo_stats.comparison.sources import PointValue, WrongMetric
from aigo_stats.statistics.intervals import NoInterval

pytestmark = pytest.mark.engine

Results = dict[str, tuple[Path, EvalLog]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return evals(tmp_path_factory.mktemp("evals"))


def ids(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines() if line.startswith("sample ")]


def test_show_worst_ranks_letter_grades(aigo: Run, results: Results) -> None:
    done = aigo("show", results["letters"][0], "--worst", 8)

    assert (done.code, done.err) == (0, "")
    # C, N, I, P by turns from the first sample on.
    assert ids(done.out) == ["1", "2", "5", "6", "9", "10", "3", "7"]
    assert ids(aigo("show", results["letters"][0], "--worst", 1, "--score", "strict.strict").out) == ["2"]


def test_sql_has_number_and_text_of_a_letter_grade(aigo: Run, results: Results) -> None:
    query = "select text, value, count(*) as n from scores where scorer = 'letters' group by 1, 2 order by 1"

    rows = aigo("sql", query, results["letters"][0], "--json").json

    assert [list(row.values()) for row in rows] == [
        ["C", 1.0, 3],
        ["I", 0.0, 3],
        ["N", 0.0, 3],
        ["P", 0.5, 3],
    ]


def numbers(result: Path) -> list[Quantity]:
    return stored_numbers(read_columns(result))


@pytest.mark.parametrize("name", ["letters", "reducers", "dictionary", "groups"])
def test_metrics_of_inspect_are_recomputed(results: Results, name: str) -> None:
    """All metrics except random ones are recomputed by formula."""
    found = numbers(results[name][0])

    unknown = [
        number.name
        for number in found
        if isinstance(number.content, NoInterval) and not isinstance(number.content, PointValue)
    ]
    assert set(unknown) <= {"bootstrap_stderr"}
    assert len(unknown) < len(found)


def test_custom_metrics_have_no_known_formula(results: Results) -> None:
    reasons = {
        number.name: number.content.reason
        for number in numbers(results["counts"][0])
        if isinstance(number.content, NoInterval)
    }

    assert reasons["total"] == "'total' is a metric of the evaluated task, whose formula is unknown"
    assert reasons["lower"] == "how 'ci' is computed is unknown"
    assert "mean" not in reasons


@pytest.mark.parametrize("name", ["letters", "reducers", "dictionary", "groups"])
def test_an_altered_metric_contradicts_the_scores(results: Results, name: str, tmp_path: Path) -> None:
    log = orjson.loads(results[name][0].read_bytes())
    for metric in log["evidence"]["metrics"]:
        metric["values"] = {key: value + 0.01 for key, value in metric["values"].items()}
    path = tmp_path / "altered.tasklog.json"
    path.write_bytes(orjson.dumps(log))

    for number in numbers(path):
        known = number.name != "bootstrap_stderr"
        assert isinstance(number.content, WrongMetric) == known, number


def test_stats_names_every_metric_and_its_standard_error(aigo: Run, results: Results) -> None:
    rows = aigo("stats", results["reducers"][0], "--json").json[0]["metrics"]

    labels = [row["label"] for row in rows]
    assert len(set(labels)) == len(labels) == 6 * 2 + 6 * 4
    assert labels[:2] == ["accuracy (letters, mean)", "accuracy (letters, median)"]
    assert "mean (relevance, pass_at_2)" in labels
    assert "std (max)" in labels
    first = rows[0]
    assert (first["scorer"], first["score"], first["reducer"]) == ("letters", None, "mean")
    computed = results["reducers"][1].results
    assert computed is not None
    assert first["reported_standard_error"] == computed.scores[0].metrics["stderr"].value
    assert not any("stderr" in label for label in labels)


def test_metric_labels_are_as_short_as_possible(aigo: Run, results: Results) -> None:
    def labels(name: str) -> list[str]:
        return [row["label"] for row in aigo("stats", results[name][0], "--json").json[0]["metrics"]]

    assert labels("letters") == ["accuracy (letters)", "accuracy (strict)"]
    assert labels("dictionary") == ["mean (relevance)", "std", "var", "mean (fluency)"]
    assert labels("groups") == ["a", "b", "all", "doc 0", "doc 1", "doc 2", "doc 3", "overall", "accuracy"]


def test_every_surface_has_the_same_names(aigo: Run, results: Results, tmp_path: Path) -> None:
    result = results["dictionary"][0]
    names = ["mean (relevance)", "std", "var", "mean (fluency)"]

    copy = tmp_path / "copy.tasklog.json"
    copy.write_bytes(result.read_bytes())
    compared = aigo("compare", result, copy, "--json").json["comparisons"][0]["metrics"]
    table = aigo("sql", "select label, score, name from metrics", result, "--json").json
    shown = aigo("show", result, "-n", 1).out
    page = read_result(ResultSource(result, "dictionary"), 0, Blocks(io.BytesIO()), [])

    assert [metric["label"] for metric in compared] == names
    assert [row["label"] for row in table if row["name"] not in ("stderr", "bootstrap_stderr")] == names
    assert all(f"\n{name}" in shown for name in names)
    values = [value for metric in page["metrics"] for value in metric["values"]]
    assert [value["label"] for value in values] == names
    assert [value.get("reported_error") is not None for value in values] == [True, False, False, True]
    rows = chart("metrics", Tables([ResultSource(result, "dictionary")])).rows
    assert [row["name"] for row in rows] == [f"dictionary: {name}" for name in names]


def test_compare_pairs_only_metrics_of_the_same_score(aigo: Run, results: Results) -> None:
    compared = aigo("compare", results["letters"][0], results["reducers"][0], "--json").json
    metrics = compared["comparisons"][0]["metrics"]

    assert len({metric["label"] for metric in metrics}) == len(metrics)
    assert all(metric["base"] is None or metric["new"] is None for metric in metrics)


def test_check_names_a_metric_by_its_label(aigo: Run, results: Results) -> None:
    result = results["letters"][0]

    done = aigo("check", result, "--rule", "accuracy (letters) >= 0.3", "--rule", "ACCURACY (strict) >= 0.3")
    by_scorer = aigo("check", result, "--rule", "strict.accuracy >= 0.3")
    unclear = aigo("check", result, "--rule", "accuracy >= 0.3")

    assert (done.code, by_scorer.code) == (0, 0)
    assert unclear.code == 2
    assert (
        f"reads 'accuracy', but {result} has 2 metrics with this name; expected one of:"
        " 'accuracy (letters)', 'accuracy (strict)'" in unclear.err
    )


def test_mean_of_integer_scores_is_not_a_proportion(aigo: Run, results: Results, tmp_path: Path) -> None:
    """Every score is 0 or 1, but the scorer returned integers and the metric is a mean."""
    (row,) = [
        row
        for row in aigo("stats", results["counts"][0], "--json").json[0]["metrics"]
        if row["name"] == "mean"
    ]
    copy = tmp_path / "copy.tasklog.json"
    copy.write_bytes(results["counts"][0].read_bytes())
    compared = aigo("compare", results["counts"][0], copy).out

    assert row["method"] == "t, corrected for skewness"
    assert "right → wrong" not in compared
    letters = aigo("stats", results["letters"][0], "--json").json[0]["metrics"]
    assert [row["method"] for row in letters] == ["Wilson, effective n", "Wilson"]


def test_verify_recomputes_metrics_of_an_imported_log(aigo: Run, results: Results) -> None:
    done = aigo("verify", results["letters"][0])

    assert "4 of 4 metrics follow from their samples' scores" in done.out
    assert "metrics    proved" in done.out


def test_verify_finds_an_altered_metric_of_an_imported_log(
    aigo: Run, results: Results, tmp_path: Path
) -> None:
    log = orjson.loads(results["letters"][0].read_bytes())
    log["evidence"]["metrics"][0]["values"]["accuracy"] = 0.9
    path = tmp_path / "altered.tasklog.json"
    path.write_bytes(orjson.dumps(log))

    done = aigo("verify", path)

    assert done.code == 1
    assert "the samples' scores give 0.375, which differs from the result" in done.out
