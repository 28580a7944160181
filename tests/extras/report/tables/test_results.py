"""Results as tables: typed columns, streaming and notebook output."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from tests.support.hostile_texts import HOSTILE
from tests.support.results import Json, message, metric, question, result, sample, score, trial, write_result

import aigo_bridge
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_report.tables.schema import SCHEMAS, TableName

ERROR = {"error_type": "TimeoutError", "message": "no answer", "hint": None, "stage": "solver"}


def column(rows: Any, *names: str) -> list[Any]:
    return [tuple(row[name] for name in names) if len(names) > 1 else row[names[0]] for row in rows]


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Return a result with one right, wrong, excluded and failed sample."""
    samples = [
        question(0, "a", "a"),
        question(1, "b", "a"),
        question(2, "b", "a", excluded="too-easy"),
        sample(trial(3, None, errors=[ERROR])),
    ]
    return write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 0.5})]))


def test_every_table_has_the_columns_of_its_schema(quiz: Path) -> None:
    results = aigo_bridge.open_results(quiz)

    for name, schema in SCHEMAS.items():
        for row in results.table(name):
            assert list(row) == [one.name for one in schema.columns]
            assert row["result"] == str(quiz)
            assert (row["task"], row["model"]) == ("quiz", "some/model")


def test_metrics_table_contains_sample_counts(quiz: Path) -> None:
    (row,) = aigo_bridge.open_results(quiz).metrics()

    assert (row["value"], row["text"]) == (0.5, "0.5")
    assert (row["samples"], row["scored"], row["excluded"], row["unscored"]) == (4, 2, 1, 1)


def test_samples_trials_and_scores_have_expected_rows(quiz: Path) -> None:
    results = aigo_bridge.open_results(quiz)

    assert column(results.samples(), "failed", "excluded") == [
        (False, False),
        (False, False),
        (False, True),
        (True, False),
    ]
    assert column(results.samples(), "stage", "error")[3] == ("solver", "no answer")
    assert column(results.trials(), "question", "answer")[1:] == [
        ("Question 1?", "b"),
        ("Question 2?", "b"),
        (None, None),
    ]
    assert column(results.trials(), "seconds", "prompt_tokens")[0] == (1.25, None)
    assert column(results.scores(), "value", "counted") == [(1.0, True), (0.0, True), (0.0, False)]
    assert column(results.scores(), "truth", "prediction")[1] == ("a", "b")


def test_aggregated_scores_are_counted_instead_of_trial_scores(tmp_path: Path) -> None:
    trials = [
        trial(0, [], scores=[score("s", {"n": value, "label": "x"})], index=index)
        for index, value in enumerate((1, 0))
    ]
    over = {**sample(*trials), "scores": [score("s", {"n": 0.5})]}
    path = write_result(tmp_path / "t.tasklog.json", result([over], [metric({"mean": 0.5}, "s")]))

    rows = list(aigo_bridge.open_results(path).scores())

    assert column(rows, "trial", "name", "value", "counted") == [
        (1, "n", 1.0, False),
        (1, "label", None, False),
        (2, "n", 0.0, False),
        (2, "label", None, False),
        (None, "n", 0.5, True),
    ]
    assert column(rows, "text")[1] == "x"


def test_legacy_samples_and_events_are_read(tmp_path: Path) -> None:
    call = {
        "type": "model_call_event", "id": "1", "span_id": "s", "timestamp": "2026-01-02T00:00:00Z", "model": "judge",
        "input_context": [], "output_items": [], "total_time": 0.5, "tools": [],
        "usage": {"num_prompt_tokens": 7, "num_completion_tokens": 2},
    }  # fmt: skip
    one = trial("a", [message("user", "?")], scores=[score("s", {"n": True})], events=[call])
    legacy = {name: part for name, part in one.items() if name != "index"}
    path = write_result(tmp_path / "e.tasklog.json", result([sample(one)]))
    old = tmp_path / "old.tasklog.json"
    log: Json = result([])
    log["evidence"]["samples"] = [legacy]
    old.write_text(json.dumps(log))

    for place in (path, old):
        results = aigo_bridge.open_results(place)
        assert column(results.events(), "called", "seconds", "prompt_tokens") == [("judge", 0.5, 7)]
        assert column(results.trials(), "trial", "calls", "completion_tokens") == [(1, 1, 2)]
        assert column(results.scores(), "value", "text", "counted") == [(1.0, "true", True)]


def test_values_that_do_not_fit_a_column_are_null_and_kept_as_text(tmp_path: Path) -> None:
    values = {"huge": 10**400, "nan": float("nan"), "list": [1], "text": "1", "none": None}
    path = tmp_path / "odd.tasklog.json"
    path.write_text(json.dumps(result([sample(trial("\ud800", [], scores=[score("s", values)]))])))

    rows = list(aigo_bridge.open_results(path).scores())

    assert column(rows, "value") == [None] * 5
    assert column(rows, "text") == [str(10**400), "NaN", "[1]", "1", None]
    assert column(rows, "counted") == [True, False, True, True, False]
    assert rows[0]["sample_id"] == "\\ud800"
    assert aigo_bridge.open_results(path).scores().to_arrow().num_rows == 5


def test_data_frames_have_the_same_rows_and_integer_columns(quiz: Path) -> None:
    results = aigo_bridge.open_results(quiz)

    for name in SCHEMAS:
        rows = list(results.table(name))
        assert results.to_arrow(name).to_pylist() == rows
        assert results.to_polars(name).to_dicts() == rows
        assert len(results.to_pandas(name)) == len(rows)
    frame = results.to_pandas("trials")
    assert str(frame["prompt_tokens"].dtype) == str(frame["run"].dtype).replace("32", "64") == "Int64"


def test_results_are_opened_from_files_folders_patterns_and_evaluations(
    quiz: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluation").mkdir()
    entries = [{"key": "quiz", "result": "quiz.tasklog.json"}, {"key": "gone", "result": None}]
    quiz.rename(tmp_path / "evaluation" / quiz.name)
    (tmp_path / "evaluation" / "evaluation.json").write_text(json.dumps({"results": entries}))

    folder = aigo_bridge.open_results("evaluation")

    assert (folder.paths, folder.missing) == ((Path("evaluation/quiz.tasklog.json"),), ("gone",))
    for location in (
        "evaluation/*.tasklog.json",
        str(tmp_path / "**" / "*.tasklog.json"),
        Path("evaluation/evaluation.json"),
    ):
        assert len(aigo_bridge.open_results(location)) == 1
    for nothing in ("none/*.json", "none.tasklog.json", "none"):
        with pytest.raises(UsageError, match=r"result log 'none.* does not exist"):
            aigo_bridge.open_results(nothing)
    with pytest.raises(UsageError, match="no table 'sample', expected one of 'results'"):
        folder.to_arrow("sample")  # type: ignore[arg-type]  # what a user may type


def test_damaged_result_raises_an_error_when_read(tmp_path: Path) -> None:
    log = json.dumps(result([question(number, "a", "a") for number in range(3)]))
    path = tmp_path / "cut.tasklog.json"
    path.write_text(log[: log.index('"sample_id": 2')])

    with pytest.raises(EvidenceError, match="cut off"):
        list(aigo_bridge.open_results(path).samples())
    assert "cut off" in aigo_bridge.open_results(path)._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["trials", "scores"])
def test_large_result_is_streamed(tmp_path: Path, table: TableName) -> None:
    path = tmp_path / "large.tasklog.json"
    head, tail = json.dumps(result([])).split('"samples": []')
    with path.open("w") as file:
        file.write(f'{head}"samples": [')
        for number in range(300):
            file.write("," * bool(number) + json.dumps(question(number, "x" * 100_000, "a")))
        file.write(f"]{tail}")
    assert path.stat().st_size > 60_000_000

    gc.collect()
    tracemalloc.start()
    count = sum(1 for _ in aigo_bridge.open_results(path).table(table))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == 300
    assert peak < 12_000_000


def test_notebook_output_escapes_hostile_texts(tmp_path: Path) -> None:
    samples = [sample(trial(text, [message("user", text), message("assistant", text)])) for text in HOSTILE]
    path = tmp_path / "h.tasklog.json"
    path.write_text(json.dumps(result(samples, [metric({"<script>": 1.0})], title="<b>")))
    results = aigo_bridge.open_results(path)

    page = results._repr_html_() + results.trials()._repr_html_() + results.samples()._repr_html_()

    tags = {part.partition(">")[0].partition(" ")[0] for part in page.split("<")[1:]}
    assert {tag.removeprefix("/") for tag in tags} == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert "&lt;script&gt;" in page
    assert "\x1b" not in page
