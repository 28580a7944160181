"""Inspect tasks of every kind run unchanged, and the evidence has the values of their native logs, sample by
sample."""

from __future__ import annotations

import json
import math
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from tests.support.commands import Run
from tests.support.forked import start

SOURCE = Path(__file__).with_name("example_kinds.py")
KINDS = (
    "hello", "beliefs", "self_judged", "liking", "lettered", "tools", "approved", "acting", "handing", "boxed", "bias",
    "groups", "limited", "flaky",
)  # fmt: skip

CALL = {"tool_calls": [{"name": "add", "arguments": {"x": 2, "y": 2}}]}
ANSWERS: list[tuple[dict[str, str], Any]] = [
    ({"contains": "Agent: loop", "on": "user"}, CALL),
    ({"contains": "[Expert]: the box"}, "Reasons. GRADE: C"),
    ({"contains": "[Expert]: the drawer"}, "GRADE: I"),
    ({"contains": "[Criterion]: well"}, "GRADE: C"),
    ({"contains": "Say only: hello"}, "hello"),
    ({"contains": "Opinion 1"}, " Yes, I do"),
    ({"contains": "Opinion 3"}, "Yes"),
    ({"contains": "Opinion"}, "No, yes and no ñ"),
    ({"contains": "Pick 1"}, "ANSWER: B"),
    ({"contains": "Pick"}, "ANSWER: C"),
    ({"contains": "Tool: what is 1"}, {"tool_calls": [{"name": "add", "arguments": {"x": 1, "y": 2}}]}),
    ({"contains": "Tool: -1"}, {"tool_calls": [{"name": "add", "arguments": {"x": -1, "y": 2}}]}),
    ({"contains": "Approval"}, {"tool_calls": [{"name": "add", "arguments": {"x": 5, "y": 5}}]}),
    ({"contains": "Agent"}, CALL),
    ({"exact": "3"}, "It is 3."),
    ({"exact": "4"}, {"tool_calls": [{"name": "submit", "arguments": {"answer": "4"}}]}),
    ({"contains": "Handoff: who"}, {"tool_calls": [{"name": "transfer_to_helper", "arguments": {}}]}),
    ({"contains": "Helper: go on."}, "I helped."),
    (
        {"contains": "I helped.", "on": "all"},
        {"tool_calls": [{"name": "submit", "arguments": {"answer": "helped"}}]},
    ),
]


def script(path: Path) -> None:
    """Write the answers for all tasks."""
    lines = [json.dumps({"match": match, "reply": reply}) for match, reply in ANSWERS]
    lines.append(json.dumps({"default": True, "reply": "I do not know."}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def kinds(tmp_path: Path) -> str:
    """Return the file name; the answers are in the current folder."""
    shutil.copy(SOURCE, tmp_path / "kinds.py")
    script(tmp_path / "answers.jsonl")
    return "inspect:kinds.py"


def same(found: Any, native: Any) -> bool:
    """Return whether two values are equal; NaN equals the `null` of JSON."""
    if isinstance(native, dict):
        return isinstance(found, dict) and all(same(found.get(key), value) for key, value in native.items())
    if isinstance(native, float) and not math.isfinite(native):
        return found is None or found != found
    return bool(found == native)


def disagreements(outcome: dict[str, Any], log: EvalLog) -> list[str]:
    """Return the values in which the evidence differs from the native log."""
    result = json.loads(Path(outcome["result"]).read_bytes())
    assert log.results is not None
    native = [metric.value for score in log.results.scores for metric in score.metrics.values()]
    shown = [metric["value"] for metric in outcome["metrics"]]
    evidence = [value for metric in result["evidence"]["metrics"] for value in metric["values"].values()]
    wrong = [f"shown {shown}, native {native}"] * (not same(dict(enumerate(shown)), dict(enumerate(native))))
    wrong += [f"evidence {evidence}"] * (not same(dict(enumerate(evidence)), dict(enumerate(native))))
    mapped = {
        (str(sample["sample_id"]), trial["index"] + 1): {
            score["scorer_name"]: score["values"] for score in trial["scores"]
        }
        for sample in result["evidence"]["samples"]
        for trial in sample["trials"]
    }
    assert len(mapped) == len(log.samples or [])
    for sample in log.samples or []:
        found = mapped[str(sample.id), sample.epoch]
        for name, score in (sample.scores or {}).items():
            value = score.value if isinstance(score.value, dict) else {name: score.value}
            if not same(found.get(name), value):
                wrong.append(f"{sample.id}: {name} is {found.get(name)}, native {value}")
    return wrong


def test_every_kind_of_task_has_the_metrics_of_its_native_log(aigo: Run, kinds: str) -> None:
    done = aigo("run", kinds, "--model", "scripted/answers.jsonl", "--json")

    assert done.code == 0, [outcome["errors"] for outcome in done.json if outcome["errors"]]
    logs = {outcome["task"]: read_eval_log(outcome["native_log"]) for outcome in done.json}
    assert set(logs) == set(KINDS)
    assert all(log.samples for log in logs.values())
    wrong = {outcome["task"]: disagreements(outcome, logs[outcome["task"]]) for outcome in done.json}
    assert {task: lines for task, lines in wrong.items() if lines} == {}
    values = {outcome["task"]: [metric["value"] for metric in outcome["metrics"]] for outcome in done.json}
    assert values["hello"][0] == 0.5
    assert values["tools"][0] == 0.5
    assert values["acting"] == values["handing"] == values["boxed"] == [1.0, 0.0]
    assert values["approved"][0] == 0.0
    limits = {str(sample.id): sample.limit for sample in logs["limited"].samples or []}
    assert limits["short"] is None
    assert limits["long"] is not None
    assert limits["long"].type == "message"
    warned = {outcome["task"] for outcome in done.json if outcome["warnings"]}
    assert warned == {"beliefs", "self_judged"}
    assert "judged its own answers" in done.err


def test_a_judge_in_a_separate_role_gives_no_warning(aigo: Run, kinds: str) -> None:
    done = aigo(
        "run", f"{kinds}@self_judged", "--model", "scripted/answers.jsonl", "--model-map", "grader=scripted/answers.jsonl", "--json"
    )  # fmt: skip

    assert done.code == 0, done.err
    assert done.json[0]["warnings"] == []
    assert done.json[0]["metrics"][0]["value"] == 1.0


def test_an_interrupted_run_is_resumed_without_repeated_model_calls(
    aigo: Run, kinds: str, tmp_path: Path
) -> None:
    (tmp_path / "broken").touch()
    arguments = ("run", f"{kinds}@flaky", "--model", "scripted/answers.jsonl", "--json", "--out", "out")
    first = aigo(*arguments)
    assert first.code == 1
    assert first.json[0]["samples"]["failed"] == 1
    (tmp_path / "broken").unlink()

    second = aigo(*arguments, "--resume")

    assert second.code == 0, second.err
    (outcome,) = second.json
    assert outcome["reused"] == 3
    assert {name: number for name, number in outcome["samples"].items() if number} == {
        "planned": 4,
        "samples": 4,
        "scored": 4,
        "trials": 4,
        "scored_trials": 4,
        "reused": 3,
    }
    assert disagreements(outcome, read_eval_log(outcome["native_log"])) == []
    first_log, log = (read_eval_log(run.json[0]["native_log"]) for run in (first, second))
    asked = {sample.id: sample.uuid for sample in first_log.samples or []}
    kept = [sample.id for sample in log.samples or [] if asked[sample.id] == sample.uuid]
    assert kept == ["f0", "f1", "f3"]


def test_an_interrupted_run_writes_evidence_and_a_resume_hint(aigo: Run, kinds: str, tmp_path: Path) -> None:
    slow = {"match": {"contains": "Opinion 3"}, "reply": {"text": "Yes", "delay": 60}}
    lines = [json.dumps(slow), json.dumps({"default": True, "reply": "Yes"})]
    (tmp_path / "slow.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ["aigo-bridge", "run", f"{kinds}@flaky", "--model", "scripted/slow.jsonl"]
    with (
        (tmp_path / "printed").open("wb") as printed,
        start(command, stdout=printed, stderr=printed) as process,
    ):
        deadline = time.monotonic() + 60
        while len(list(tmp_path.glob("solved-*"))) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(4)  # scoring takes milliseconds, on an idle machine
        process.send_signal(signal.SIGINT)
        code = process.wait(60)

    text = (tmp_path / "printed").read_text(encoding="utf-8")
    assert code == 130, text
    assert "interrupted; continue it with --resume" in text
    assert (tmp_path / "out" / "flaky.tasklog.json").exists()
    (tmp_path / "slow.jsonl").write_text(lines[1] + "\n", encoding="utf-8")
    done = aigo("run", f"{kinds}@flaky", "--model", "scripted/slow.jsonl", "--resume", "--json")
    assert done.code == 0, done.err
    assert done.json[0]["reused"] == 3
    assert done.json[0]["samples"]["scored"] == 4


def test_changed_rows_are_run_again(aigo: Run, kinds: str, tmp_path: Path) -> None:
    arguments = ("run", f"{kinds}@flaky", "--model", "scripted/answers.jsonl", "--json", "--out", "out")
    assert aigo(*arguments).code == 0
    source = tmp_path / "kinds.py"
    changed = source.read_text(encoding="utf-8").replace(
        "{n}: flaky.", "{n}: {'other' if n == 1 else 'flaky.'}"
    )
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "kinds.py").write_text(changed, encoding="utf-8")

    done = aigo("run", "inspect:later/kinds.py@flaky", *arguments[2:], "--resume")

    assert done.code == 0, done.err
    assert done.json[0]["reused"] == 3


def test_nothing_to_resume_is_reported(aigo: Run, kinds: str) -> None:
    done = aigo("run", f"{kinds}@hello", "--model", "scripted/answers.jsonl", "--resume")

    assert done.code == 0, done.err
    assert "nothing to resume" in done.err


def test_progress_includes_the_failed_sample(aigo: Run, kinds: str, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    done = aigo("run", f"{kinds}@flaky", "--model", "scripted/answers.jsonl")

    assert done.code == 1
    assert "4/4" in done.err or "4 of 4" in done.err
    assert "f2" in done.err
