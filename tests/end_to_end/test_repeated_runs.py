"""Repeated run files: caching, repeatability, interruption and concurrency."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.running import finished_samples, wait_until

from aigo_bridge.errors import BridgeError
from aigo_bridge.results.reading import LogReader
from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]

TASK = """
key: quiz
display_name: Quiz
description: ""
config_spec: [{type: string, key: word, display_name: Word, default_value: n}]
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "<< config.word >>={{ sample.n }}"}]
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.odd }}"
      metrics: [{type: mean, field: is_correct, name: Accuracy}]
"""

RUN = """
models: [{$provider: scripted/m.jsonl}]
tasks: [{$ref: task.yaml}]
evaluation:
  key: ev
  display_name: Ev
  description: ""
  task_specifications:
    - {key: first, task_key: quiz, model_key: scripted$m-jsonl, task_config: {word: a}}
    - {key: second, task_key: quiz, model_key: scripted$m-jsonl, task_config: {word: b}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two specifications with six questions each, half of them answered correctly."""
    rows = [{"n": n, "odd": "yes" if n % 2 else "no"} for n in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def asked(log: Path) -> int:
    """Return the model calls of a native log."""
    with open_log(log) as reader:
        return sum(
            event.get("event") == "model"
            for sample in reader.samples()
            for event in sample.data.get("events") or ()
        )


def logs(folder: Path, key: str) -> list[Path]:
    return sorted((folder / "out").glob(f"*_{key}_*.eval"), key=lambda path: path.stat().st_mtime)


def test_identical_run_calls_no_model_and_writes_no_second_log(folder: Path, aigo: Run) -> None:
    """`reuse` is the default of run files."""
    first = aigo("run", "run.yaml", "--json")
    evidence = (folder / "out" / "first.tasklog.json").read_bytes()

    again = aigo("run", "run.yaml", "--json")

    assert [result["origin"] for result in first.json["results"]] == ["run", "run"]
    assert [result["origin"] for result in again.json["results"]] == ["reused", "reused"]
    assert len(logs(folder, "first")) == len(logs(folder, "second")) == 1
    assert "first: taken from" in again.err
    assert (folder / "out" / "first.tasklog.json").read_bytes() == evidence


def test_changed_scorers_rescore_stored_outputs(folder: Path, aigo: Run, result_of: Load) -> None:
    """The model is not called; the metrics are those of the new scorer on the stored outputs."""
    aigo("run", "run.yaml")
    change(folder / "task.yaml", 'ground_truth: "{{ sample.odd }}"', 'ground_truth: "yes"')

    again = aigo("run", "run.yaml", "--json")

    assert [result["origin"] for result in again.json["results"]] == ["rescored", "rescored"]
    assert again.json["results"][0]["metrics"][0]["value"] == 1.0
    assert [asked(log) for log in logs(folder, "first")] == [6, 0]
    assert result_of(folder / "out" / "first.tasklog.json")["evidence"]["failures"] == {
        "num_errors": 0,
        "num_total": 6,
    }


def test_only_failed_samples_are_run_again_when_outputs_are_rescored(folder: Path, aigo: Run) -> None:
    rules = '{"match": {"contains": "=4"}, "reply": {"error": "busy"}}\n{"default": true, "reply": "yes"}\n'
    (folder / "m.jsonl").write_text(rules)
    aigo("run", "run.yaml")
    change(folder / "task.yaml", 'ground_truth: "{{ sample.odd }}"', 'ground_truth: "yes"')

    again = aigo("run", "run.yaml", "--json")

    assert [result["origin"] for result in again.json["results"]] == ["rescored", "rescored"]
    assert [asked(log) for log in logs(folder, "first")] == [6, 1]


@pytest.mark.parametrize(
    "what", ["another question", "another row", "another model", "another trial", "another limit"]
)
def test_changed_generation_settings_call_the_model_again(folder: Path, aigo: Run, what: str) -> None:
    aigo("run", "run.yaml")
    options: list[str] = []
    match what:
        case "another question":
            change(folder / "task.yaml", "<< config.word >>=", "<< config.word >>: ")
        case "another row":
            change(folder / "rows.jsonl", '"n": 5', '"n": 7')
        case "another model":
            (folder / "m.jsonl").write_text('{"default": true, "reply": "no"}\n')
        case "another trial":
            options = ["--num-trials", "2"]
        case _:
            options = ["--token-limit", "100000"]

    again = aigo("run", "run.yaml", *options, "--json")

    assert [result["origin"] for result in again.json["results"]] == ["run", "run"]
    assert [asked(log) for log in logs(folder, "first")] == [6, 12 if what == "another trial" else 6]


def test_update_and_no_cache_run_again(folder: Path, aigo: Run) -> None:
    change(folder / "run.yaml", "models:", "run_config: {cache_policy: no-cache}\nmodels:")
    origins = [
        [result["origin"] for result in aigo("run", "run.yaml#first", *options, "--json").json["results"]]
        for options in ((), ("--cache", "reuse"), ("--cache", "update"), ("--cache", "reuse"))
    ]

    # Results of the first run cannot be reused; the third run does not look for them; the fourth reuses one.
    assert origins == [["run"], ["run"], ["run"], ["reused"]]
    assert aigo("run", "run.yaml", "--cache", "always").code == 2


def test_a_single_task_runs_again_by_default(folder: Path, aigo: Run) -> None:
    run = ("run", "task.yaml", "--model", "scripted/m.jsonl", "--json")
    aigo(*run)
    anew = aigo(*run)
    taken = aigo(*run, "--cache", "reuse")

    assert anew.json["samples"]["reused"] == 0
    assert taken.json["samples"]["reused"] == 6
    assert "the earlier run is complete; no sample was run again" in taken.err


def test_repeated_runs_have_mean_spread_and_agreement(folder: Path, aigo: Run, result_of: Load) -> None:
    """Three runs of one question answered yes, yes, no: mean 2/3, spread sqrt(1/3), agreement 2/3."""
    (folder / "rows.jsonl").write_text('{"n": 1, "odd": "yes"}\n')
    (folder / "m.jsonl").write_text(
        '{"default": true, "times": 2, "reply": "yes"}\n{"default": true, "reply": "no"}\n'
    )
    change(folder / "run.yaml", "task_config: {word: a}", "repeatability: {num_runs: 3}")

    done = aigo("run", "run.yaml#first", "--json")

    assert done.code == 0, done.err
    (result,) = done.json["results"]
    assert result["samples"]["planned"] == result["samples"]["scored"] == 3
    assert len(result["native_logs"]) == 3
    log = result_of(folder / "out" / "first.tasklog.json")
    assert log["specification"]["repeatability_config"] == {"num_runs": 3}
    evidence = log["evidence"]
    assert [run["index"] for run in evidence["runs"]] == [0, 1, 2]
    assert sorted(run["metrics"][0]["values"]["Accuracy"] for run in evidence["runs"]) == [0.0, 1.0, 1.0]
    values = evidence["metrics"][0]["values"]
    assert values["Accuracy"] == pytest.approx(2 / 3)
    assert values["Accuracy_std"] == pytest.approx((1 / 3) ** 0.5)
    (sample,) = evidence["samples"]
    assert sample["scores"][0]["values"] == {"score_agreement": pytest.approx(2 / 3)}
    assert sorted(sample["scores"][0]["metadata"]["values"]["is_correct"]) == [0.0, 1.0, 1.0]
    reader = LogReader(folder / "out" / "first.tasklog.json")
    assert [len(list(reader.samples(run=run))) for run in range(3)] == [1, 1, 1]
    assert reader.frame().status == "success"


def test_an_existing_evaluation_is_repeated(folder: Path, aigo: Run) -> None:
    (folder / "again.yaml").write_text(
        "models: [{$provider: scripted/m.jsonl}]\nevaluation:\n  key: again\n  display_name: Again\n  description: ''\n"
        "  task_specifications:\n    - type: repeatability\n      repeatability_config: {num_runs: 2}\n"
        "      num_samples: 1\n      inputs: [{evaluation_key: ev}]\n"
    )

    done = aigo("run", "again.yaml", "--json")

    assert done.code == 0, done.err
    assert [result["key"] for result in done.json["results"]] == ["repeatability_1-1", "repeatability_1-2"]
    assert [result["samples"]["planned"] for result in done.json["results"]] == [2, 2]
    unknown = (
        (folder / "again.yaml")
        .read_text()
        .replace("evaluation_key: ev", "evaluation_key: ev, task_specification_key: x")
    )
    (folder / "again.yaml").write_text(unknown)
    told = aigo("run", "again.yaml")
    assert told.code == 2
    assert "evaluation 'ev' has no specification 'x'" in told.err


DRAWN = re.compile(r"(^|_)(id|time|timestamp|runtime|start|at|completed|max_connections)$")
"""Names of what differs between any two runs: ids, times, and the number of connections itself."""


def without_times(value: Any, name: str = "") -> Any:
    """Return evidence without values that differ between runs; raw requests contain random ids."""
    if isinstance(value, dict):
        return {
            key: without_times(part, key)
            for key, part in value.items()
            if key == "sample_id" or not DRAWN.search(key)
        }
    if isinstance(value, list):
        return [without_times(part) for part in value]
    return without_times(json.loads(value)) if name == "body" and isinstance(value, str) else value


def test_concurrency_does_not_change_metrics(folder: Path, aigo: Run, result_of: Load) -> None:
    """1 and 64 connections give equal evidence for answers in different order."""
    rules = [
        {"match": {"contains": f"={n}"}, "reply": {"text": "yes" if n % 3 else "no", "delay": 0.02 * (6 - n)}}
        for n in range(6)
    ]
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    change(folder / "run.yaml", "task_config: {word: b}", "trials: {num_trials: 2}")

    found = []
    for number in (1, 64):
        aigo("run", "run.yaml", "--max-connections", number, "--max-samples", number, "--out", f"o{number}")
        found.append(
            [
                without_times(result_of(folder / f"o{number}" / f"{key}.tasklog.json"))
                for key in ("first", "second")
            ]
        )

    assert found[0] == found[1]
    assert len(found[0][1]["evidence"]["samples"][0]["trials"]) == 2


def is_complete(log: Path) -> bool:
    """Return whether Inspect has finished a log; an unfinished log is not a readable archive or has no result."""
    try:
        with open_log(log) as reader:
            return reader.header.get("status") == "success"
    except (BridgeError, OSError):
        return False


def kill(folder: Path, sign: signal.Signals) -> tuple[int, str]:
    """Start the slow run, wait for one and a half specifications, and send a signal."""
    # More connections than slow answers: those would otherwise hold up the first specification.
    process = start(
        ["aigo-bridge", "run", "run.yaml", "--max-connections", "6"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    # Inspect marks a task as cancelled if the signal comes while it ends, after it has written the log.
    wait_until(
        process,
        lambda: any(
            is_complete(log) and time.time() - log.stat().st_mtime > 0.5 for log in logs(folder, "first")
        ),
    )
    wait_until(process, lambda: any(finished_samples(log) >= 3 for log in logs(folder, "second")))
    os.killpg(process.pid, sign)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out


@pytest.fixture
def slow(folder: Path) -> Path:
    """Server that answers the first specification at once and the last questions of the second almost never."""
    rules = [{"match": {"contains": f"b={n}"}, "reply": {"text": "yes", "delay": 600}} for n in (3, 4, 5)]
    rules.append({"default": True, "reply": "yes"})
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return folder


def test_a_killed_evaluation_is_resumed(slow: Path, command: Run, result_of: Load) -> None:
    """After `kill -9`, only unfinished samples run again; resuming a complete run writes no log."""
    kill(slow, signal.SIGKILL)
    rules = slow / "m.jsonl"
    rules.write_text(rules.read_text().replace('"delay": 600', '"delay": 0.01'))

    done = command("aigo-bridge", "run", "run.yaml", "--resume", "--json", cwd=slow)

    assert done.code == 0, done.err
    first, second = done.json["results"]
    assert (first["origin"], first["samples"]["reused"], len(logs(slow, "first"))) == ("reused", 6, 1)
    assert second["samples"]["scored"] == 6
    assert 0 < second["samples"]["reused"] < 6
    assert "resumed: 1 complete, 1 continued" in done.err
    assert result_of(slow / "out" / "second.tasklog.json")["status"] == "success"
    count = len(list((slow / "out").glob("*.eval")))
    again = command("aigo-bridge", "run", "run.yaml", "--resume", cwd=slow)
    assert again.code == 0, again.err
    assert "nothing to resume: all 2 are complete" in again.err
    assert len(list((slow / "out").glob("*.eval"))) == count


def test_interrupted_evaluation_writes_its_finished_results(slow: Path, result_of: Load) -> None:
    code, out = kill(slow, signal.SIGINT)

    assert code == 130, out
    assert "Traceback" not in out
    assert "continue it with --resume" in out
    assert result_of(slow / "out" / "first.tasklog.json")["status"] == "success"
    second = result_of(slow / "out" / "second.tasklog.json")
    assert second["status"] == "failure"
    summary = orjson.loads((slow / "out" / "evaluation.json").read_bytes())
    assert [result["right"] for result in summary["results"]] == [True, False]


def test_inspect_retries_a_specification_by_itself(folder: Path, aigo: Run, command: Run) -> None:
    """The log names the run file and specification, so that Inspect can build the task again."""
    (folder / "m.jsonl").write_text(
        '{"match": {"contains": "=3"}, "reply": {"error": "down"}}\n{"default": true, "reply": "yes"}\n'
    )
    aigo("run", "run.yaml#second")
    (folder / "m.jsonl").write_text(
        '{"match": {"contains": "=3"}, "reply": "yes"}\n{"default": true, "reply": {"error": "never asked"}}\n'
    )

    done = command(
        "inspect",
        "eval-retry",
        logs(folder, "second")[0],
        "--log-dir",
        "retried",
        "--display",
        "none",
        cwd=folder,
    )

    assert done.code == 0, done.err
    (log,) = (folder / "retried").glob("*.eval")
    with open_log(log) as reader:
        assert reader.header["eval"]["metadata"]["aigo_bridge"]["specification"]["key"] == "second"
        assert all(not sample.data.get("error") for sample in reader.samples())


def test_two_hundred_specifications_are_run(folder: Path, aigo: Run) -> None:
    (folder / "rows.jsonl").write_text('{"n": 1, "odd": "yes"}\n')
    head = RUN[: RUN.index("    - {key: first")]
    entries = [
        f"    - {{task_key: quiz, model_key: scripted$m-jsonl, task_config: {{word: w{n}}}}}\n"
        for n in range(200)
    ]
    (folder / "run.yaml").write_text(head + "".join(entries))

    done = aigo("run", "run.yaml", "--json")

    assert done.code == 0, done.err
    assert [result["key"] for result in done.json["results"]] == [f"quiz_{n}" for n in range(1, 201)]
    assert {result["metrics"][0]["value"] for result in done.json["results"]} == {1.0}
    assert len(list((folder / "out").glob("*.tasklog.json"))) == 200


def test_changed_scripted_rules_are_another_model(folder: Path, aigo: Run) -> None:
    """Equal file names do not reuse old answers with `--cache reuse`."""
    arguments = ("run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json")
    assert aigo(*arguments).json["metrics"][0]["value"] == 0.5
    same = aigo(*arguments, "--cache", "reuse")
    assert "the earlier run is complete" in same.err

    (folder / "m.jsonl").write_text('{"default": true, "reply": "maybe"}\n')
    other = aigo(*arguments, "--cache", "reuse")

    assert "the earlier run is complete" not in other.err
    assert other.json["metrics"][0]["value"] == 0.0


def test_resuming_with_changed_scripted_rules_is_reported_and_runs_again(folder: Path, aigo: Run) -> None:
    """Finished answers are kept, as `--resume` promises; the result belongs to neither model."""
    failing = {"match": {"contains": "=3"}, "reply": {"error": "down"}}
    rules = [failing, {"default": True, "reply": "yes"}]
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    arguments = ("run", "task.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json")
    aigo(*arguments)

    (folder / "m.jsonl").write_text('{"default": true, "reply": "no"}\n')
    resumed = aigo(*arguments, "--resume")
    later = aigo(*arguments, "--cache", "reuse")

    assert "has changed since the earlier run" in resumed.err
    assert resumed.json["metrics"][0]["value"] == 2 / 6
    assert later.json["metrics"][0]["value"] == 0.5
    assert "the earlier run is complete" not in later.err
