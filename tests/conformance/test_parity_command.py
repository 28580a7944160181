"""`aigo-bridge run --engine inspect,lighteval` runs both engines and reports whether they agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run

pytestmark = pytest.mark.xdist_group("conformance")

BOTH = ("--engine", "inspect,lighteval")
CAPITALS = REPOSITORY / "examples" / "capitals"
MODEL = ("--model", f"scripted/{CAPITALS / 'answers.jsonl'}")


@pytest.fixture
def another_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the answer of lighteval's model to one question."""
    from aigo_lighteval.models.callers import ScriptedCaller

    attempt = ScriptedCaller.attempt

    async def other(self: Any, request: Any, stage: Any) -> Any:
        answer, exchange = await attempt(self, request, stage)
        if "Canberra" in str(answer) or "Sydney" in str(answer):
            answer = answer.__class__(
                answer.reply.__class__(
                    choices=(answer.reply.choices[0].__class__(text="Canberra"),), usage=answer.reply.usage
                )
            )
        return answer, exchange

    monkeypatch.setattr(ScriptedCaller, "attempt", other)


def test_agreeing_engines_exit_with_0(aigo: Run, tmp_path: Path, result_of: Callable[[Path], Any]) -> None:
    done = aigo("run", CAPITALS, *MODEL, *BOTH, "--out", "out")

    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["metric", "inspect", "lighteval", "samples", "scorer"] in lines
    assert ["Accuracy", "0.75", "0.75", "4", "string_equals"] in lines
    assert "the engines agree on 4 samples" in done.out
    for engine in ("inspect", "lighteval"):
        assert len(result_of(tmp_path / "out" / engine / "capitals.tasklog.json")["evidence"]["samples"]) == 4


def test_differing_engines_exit_with_1(aigo: Run, another_answer: None) -> None:
    done = aigo("run", CAPITALS, *MODEL, *BOTH, "--out", "out")

    assert done.code == 1
    assert ["Accuracy", "0.75", "1", "4", "string_equals", "differs"] in [
        line.split() for line in done.out.splitlines()
    ]
    assert "the engines differ in 1 of 4 samples (2), 1 of 1 metric" in done.out


def test_parity_is_in_the_json_output(aigo: Run, another_answer: None) -> None:
    done = aigo("run", CAPITALS, *MODEL, *BOTH, "--out", "out", "--json")

    assert done.code == 1
    assert done.json["parity"]["equal"] is False
    assert done.json["parity"]["samples"] == {"total": 4, "differing": 1, "first_differing": [2]}
    assert done.json["parity"]["metrics"][0]["values"] == {"inspect": 0.75, "lighteval": 1.0}
    assert done.json["engines"]["lighteval"]["metrics"][0]["value"] == 1.0
    assert done.json["engines"]["inspect"]["samples"]["scored"] == 4


def test_samples_that_fail_on_both_engines_agree_but_fail_the_run(aigo: Run, tmp_path: Path) -> None:
    rules = [
        {"match": {"contains": "Norway"}, "reply": "Oslo"},
        {"default": True, "reply": {"error": "down"}},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    run = ("run", CAPITALS, "--model", "scripted/m.jsonl", *BOTH, "--out", "out")

    done = aigo(*run)

    assert done.code == 1
    assert "the engines agree on 4 samples" in done.out
    assert "lighteval: sample 1: down" in done.out
    accuracy = next(line.split() for line in done.out.splitlines() if line.startswith("Accuracy"))
    assert accuracy == ["Accuracy", "1", "1", "1", "string_equals"]
    assert aigo(*run, "--fail-on-error", "3").code == 0


def test_a_metric_without_a_value_is_explained_once(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": {"error": "down"}}\n')

    done = aigo("run", CAPITALS, "--model", "scripted/m.jsonl", *BOTH, "--out", "out")

    assert done.code == 1
    lines = [line.strip() for line in done.out.splitlines()]
    assert ["Accuracy", "–", "–", "0", "string_equals"] in [line.split() for line in lines]
    (alone,) = aigo("run", CAPITALS, "--model", "scripted/m.jsonl", "--out", "alone", "--json").json[
        "metrics"
    ]
    assert lines.count(f"Accuracy: {alone['problem']}") == 1


def test_a_system_task_is_compared_by_metrics_only(aigo: Run) -> None:
    run = ("run", "aigo_tasks/governance-controls", "--snippets", "in-process")
    done = aigo(*run, *BOTH, "--out", "out")

    assert done.code == 0, done.err
    metrics = aigo(*run, "--out", "alone", "--json").json["metrics"]
    assert f"the engines agree on {len(metrics)} metrics" in done.out


def test_an_interruption_stops_the_remaining_engines(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_bridge.evaluation import running

    entry_outcome = running.entry_outcome

    def stopped(*args: Any, **options: Any) -> Any:
        return replace(entry_outcome(*args, **options), status="cancelled")

    monkeypatch.setattr(running, "entry_outcome", stopped)

    done = aigo("run", CAPITALS, *MODEL, *BOTH, "--out", "out")

    assert done.code == 130
    assert "only one engine was run" in done.out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["inspect"]


def test_a_gap_is_reported_before_the_run(aigo: Run, tmp_path: Path) -> None:
    done = aigo("run", "aigo_tasks/humaneval", "--model", "scripted/x", *BOTH, "--out", "out")

    assert done.code == 2
    assert "engine 'lighteval' cannot run this task" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engines", ["inspect,inspect", "inspect,", ",", "inspect,nothing"])
def test_invalid_engine_lists_are_refused(aigo: Run, tmp_path: Path, engines: str) -> None:
    done = aigo("run", CAPITALS, *MODEL, "--engine", engines, "--out", "out")

    assert done.code == 2
    assert "engine" in done.err
    assert not (tmp_path / "out").exists()


def test_an_engine_benchmark_runs_only_on_that_engine(aigo: Run) -> None:
    done = aigo("run", "inspect:x.py", *BOTH)
    assert done.code == 2
    assert "an engine benchmark always runs on its own engine" in done.err


def test_a_run_file_is_compared_specification_by_specification(aigo: Run, tmp_path: Path) -> None:
    rows = "".join(json.dumps({"q": q}) + "\n" for q in ("one", "two"))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "m.jsonl").write_text(
        '{"match": {"exact": "one"}, "reply": "x"}\n{"default": true, "reply": "y"}\n'
    )
    (tmp_path / "task.yaml").write_text(
        """
key: t
display_name: T
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers: [{type: string_equals, ground_truth: x}]
"""
    )
    (tmp_path / "run.yaml").write_text(
        """
tasks: [{$ref: task.yaml}]
datasets: [{key: rows, display_name: Rows, source: {type: local, file_path: rows.jsonl}}]
evaluation:
  key: e
  display_name: E
  task_specifications:
    - {key: first, display_name: First, task_key: t, model_key: m}
    - {key: twice, display_name: Twice, task_key: t, model_key: m, repeatability: {num_runs: 2}}
"""
    )

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/m.jsonl", *BOTH, "--out", "out", "--json")

    assert done.code == 0, done.err + done.out
    assert list(done.json["parity"]) == ["first", "twice"]
    assert all(each["equal"] for each in done.json["parity"].values())
    assert done.json["parity"]["twice"]["samples"]["total"] == 4
    for engine in ("inspect", "lighteval"):
        assert (tmp_path / "out" / engine / "evaluation.json").is_file()
    shown = aigo("run", "run.yaml", "--model-map", "m=scripted/m.jsonl", *BOTH, "--out", "out")
    assert shown.code == 0
    assert shown.out.count("the engines agree on") == 2
