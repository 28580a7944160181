"""Failed trials, truncated answers and killed runs have equal counts in every output."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.extras.report.page.test_writing import summary
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion
from tests.support.forked import start

from aigo_report.viewing.folder import Folder
from aigo_report.viewing.preparing import SUMMARY, prepare

pytestmark = pytest.mark.engine

CITIES = {"Norway": "Oslo", "Peru": "Lima", "Japan": "Tokyo", "Australia": "Sydney"}
FAILED_BEFORE = {"Norway": 2, "Peru": 2, "Japan": 2, "Australia": 1}
COUNTS = {
    "samples": 4,
    "scored": 4,
    "trials": 12,
    "scored_trials": 5,
    "failed_trials": 7,
    "with_failed_trials": 4,
}
BOUNDS = "25 % if every missing trial had scored worst, 83.33 % if best"


def write_capitals(folder: Path, trials: int = 3) -> Path:
    rows = [{"country": country, "capital": city} for country, city in CITIES.items()]
    rows[-1]["capital"] = "Canberra"
    (folder / "capitals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "capitals.yaml"
    path.write_text(
        "key: capitals\ndisplay_name: Capitals\ndescription: ''\ndefinition:\n  dataset: {key: capitals}\n"
        f"  trials: {{num_trials: {trials}}}\n"
        "  solver:\n    type: single_turn_solver\n    input_builder:\n      type: chat_completion\n"
        '      input_messages: [{role: user, content: "{{ sample.country }}"}]\n'
        '  scorers:\n    - {type: string_equals, ground_truth: "{{ sample.capital }}",'
        " metrics: [{type: mean, field: is_correct, name: Accuracy}]}\n"
    )
    return path


def write_answers(folder: Path) -> str:
    """Write a model that fails 7 of 12 calls and answers wrongly for Australia."""
    rules: list[Any] = []
    for country, city in CITIES.items():
        asked = {"match": {"exact": country}}
        rules.append({**asked, "times": FAILED_BEFORE[country], "reply": {"error": "down", "status": 400}})
        rules.append({**asked, "reply": city})
    (folder / "answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return "scripted/answers.jsonl"


def positive(counts: dict[str, Any]) -> dict[str, Any]:
    return {name: number for name, number in counts.items() if number}


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_failed_trials_have_the_same_counts_everywhere(aigo: Run, tmp_path: Path, engine: str) -> None:
    options = (write_capitals(tmp_path), "--model", write_answers(tmp_path), "--engine", engine)

    shown = aigo("run", *options, "--out", "out")

    assert shown.code == 1
    assert "4 of 4 samples scored, 7 of 12 trials failed" in shown.out
    assert f"Accuracy: 7 of 12 trials are missing; {BOUNDS}" in shown.out
    result = "out/capitals.tasklog.json"
    evidence = json.loads((tmp_path / result).read_text())["evidence"]
    assert evidence["failures"] == {"num_errors": 0, "num_total": 4}
    assert evidence["metrics"][0]["values"] == {"Accuracy": 0.75}

    (stats,) = aigo("stats", result, "--json").json
    assert positive(stats["samples"]) == COUNTS
    (metric,) = stats["metrics"]
    assert (metric["samples"]["trials"], metric["samples"]["missing_trials"]) == (12, 7)
    assert metric["bounds"] == pytest.approx([0.25, 10 / 12])
    assert "4 samples, 12 trials: 7 of 12 trials failed" in aigo("stats", result).out
    shutil.copy(tmp_path / result, tmp_path / "again.tasklog.json")
    (compared,) = aigo("compare", "again.tasklog.json", result, "--json").json["comparisons"]
    assert compared["samples"]["new"] == stats["samples"]

    checked = aigo("check", result, "--rule", "failed <= 0%", "--rule", "failed_samples <= 0%")
    assert checked.code == 1
    assert "failed: 7 of 12 trials (58.33 %)" in checked.out
    assert "failed_samples: 0 of 4 samples (0 %)" in checked.out

    failed = aigo("show", result, "--failed", "-n", 0)
    assert "4 samples, 12 trials: 7 of 12 trials failed" in failed.out
    assert failed.out.count("· 2 of 3 trials failed") == 3
    assert "trial 2 · failed" in failed.out
    names = ", ".join(COUNTS).removesuffix(", with_failed_trials")
    (row,) = aigo("sql", f"select {names}, failed from results", result, "--json").json
    assert row == {**{name: COUNTS[name] for name in names.split(", ")}, "failed": 0}
    rows = aigo("sql", "select failed_trials, failed from samples order by sample", result, "--json").json
    assert [each["failed_trials"] for each in rows] == list(FAILED_BEFORE.values())
    assert {each["failed"] for each in rows} == {False}
    numbers = aigo("sql", "select distinct trial from trials order by trial", result, "--json").json
    assert [each["trial"] for each in numbers] == [1, 2, 3]

    assert aigo("report", result, "--out", "report.html").code == 0
    (page,) = summary(tmp_path / "report.html")["results"]
    assert positive({name: page["counts"][name] for name in COUNTS}) == COUNTS
    assert page["metrics"][0]["values"][0]["bounds"] == ["0.25", "0.8333333333333334"]


def test_fail_on_error_counts_samples_and_not_trials(aigo: Run, tmp_path: Path) -> None:
    options = ("run", write_capitals(tmp_path), "--model", write_answers(tmp_path))

    assert aigo(*options, "--fail-on-error", 3, "--out", "three").code == 0
    done = aigo(*options, "--fail-on-error", 2, "--out", "two", "--json")

    assert done.code == 1
    assert positive(done.json["samples"]) == {"planned": 4, **COUNTS}
    assert [error["trial"] for error in done.json["errors"]] == [1]


@pytest.fixture
def refusing(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Provider that refuses one question with HTTP 400 and truncates another answer."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "key-of-the-test")

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        question = body["messages"][-1]["content"]
        if question == "Norway":
            message = "The response was filtered due to the prompt triggering content management policy."
            return 400, {"error": {"message": message, "code": "content_filter", "type": None}}
        reply = completion(CITIES[question])
        if question == "Peru":
            reply["choices"][0]["finish_reason"] = "length"
        return 200, reply

    endpoint.answer = answer
    return endpoint


def test_refused_and_truncated_answers_are_reported_everywhere(
    aigo: Run, tmp_path: Path, refusing: Endpoint
) -> None:
    done = aigo("run", write_capitals(tmp_path, 1), "--model", "openai-api/local/m", "--out", "out")

    assert "4 of 4 samples scored" in done.out
    assert "1 answer stopped by the content filter, 1 truncated at the token limit" in done.out
    result = "out/capitals.tasklog.json"
    rows = aigo("sql", "select stop_reason from trials order by sample", result, "--json").json
    assert [row["stop_reason"] for row in rows] == ["content_filter", "max_tokens", "stop", "stop"]
    shown = aigo("show", result, "--stop-reason", "content_filter")
    assert "stop reason" in shown.out
    assert "sample 0 ─" in shown.out
    assert "sample 1 ─" not in shown.out
    wrong = aigo("show", result, "--stop-reason", "filter")
    assert "stop reasons in the result: content_filter, max_tokens, stop" in wrong.err
    assert aigo("report", result, "--out", "report.html").code == 0
    (page,) = summary(tmp_path / "report.html")["results"]
    assert page["stopped"] == ["1 answer stopped by the content filter", "1 truncated at the token limit"]


@pytest.mark.slow
def test_run_in_progress_and_killed_shows_no_final_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is viewed while two samples wait, and after `kill -9`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write_capitals(tmp_path, 1)
    slow = [
        {"match": {"exact": country}, "reply": {"text": "x", "delay": 60}} for country in ("Peru", "Japan")
    ]
    (tmp_path / "slow.jsonl").write_text(
        "\n".join(map(json.dumps, [*slow, {"default": True, "reply": "Oslo"}]))
    )
    command = ["aigo-bridge", "run", "capitals.yaml", "--model", "scripted/slow.jsonl", "--out", "out"]
    process = start(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while (found := look(tmp_path, "alive")) is None or found["counts"]["scored"] < 2:
            assert time.monotonic() < deadline, found
            time.sleep(0.3)
    finally:
        process.kill()
        process.wait()
    counts = {"samples": 4, "scored": 2, "unfinished": 2, "failed": 0, "failed_trials": 0}
    assert {name: found["counts"][name] for name in counts} == counts
    assert (found["status"], found["metrics"], found["errors"]) == ("running", [], [])

    killed = look(tmp_path, "killed")

    assert killed is not None
    assert {name: killed["counts"][name] for name in counts} == counts
    assert killed["status"] == "failure"
    assert killed["unfinished"]


def look(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the current page of the run's log, or `None` without a log."""
    place = folder / "pages"
    place.mkdir(exist_ok=True)
    entries = Folder(folder / "out").listing().entries.values() if (folder / "out").is_dir() else ()
    logs = [entry for entry in entries if entry.kind == "log"]
    if not logs:
        return None
    page = prepare(logs[0], folder / "out", place / f"{name}-{len(list(place.iterdir()))}")
    if page.problem is not None:
        return None
    shown: dict[str, Any] = json.loads(gzip.decompress((page.folder / SUMMARY).read_bytes()))
    return {**shown["results"][0], "run": shown["run"]}
