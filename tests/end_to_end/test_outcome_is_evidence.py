"""The printed summary equals the evidence for every kind of run, and a difference is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Finished, Run
from tests.support.loggers import heard

from aigo_bridge.engine.outcome import DisplayedRun, ShownMetric, differences
from aigo_bridge.evaluation import writing as evaluate
from aigo_bridge.results.writing import write_log

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
    - {type: bleu, ground_truth: "{{ sample.a }}"}
"""
RUN_FILE = """
models: [{$provider: scripted/m.jsonl}]
datasets: [{key: d, display_name: D, source: {type: local, file_path: d.jsonl}}]
tasks: [{$ref: t.yaml}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications:
    - {key: once, task_key: t, model_key: "scripted$m-jsonl"}
    - {key: twice, task_key: t, model_key: "scripted$m-jsonl", trials: {num_trials: 2}}
    - {key: again, task_key: t, model_key: "scripted$m-jsonl", repeatability: {num_runs: 2}}
"""
NATIVE = """
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import accuracy, includes, match, stderr

@task
def odd(word="x", several=[], nothing=None, settings={}):
    samples = [Sample(id=n, input=f"q{n}", target=t) for n, t in enumerate(["yes", "no", "yes"])]
    return Task(dataset=samples, scorer=[includes(), match()], epochs=Epochs(2, ["mean", "max"]), tags=["one"])
"""
WITH_ARGUMENTS = ("-T", "word=null", "-T", "several=a,b", "-T", "settings={a: 1}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rows = [{"q": f"q{n}", "a": answer} for n, answer in enumerate(["yes", "no", "yes", "gone"])]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rules: list[dict[str, Any]] = [
        {"match": {"contains": "q3"}, "reply": {"error": "gone"}},
        {"default": True, "reply": "yes"},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "run.yaml").write_text(RUN_FILE)
    (tmp_path / "native.py").write_text(NATIVE)
    return tmp_path


def numbers(metrics: Any) -> list[float]:
    """Return the metric values of a summary or evidence."""
    return sorted(
        value
        for metric in metrics
        for value in (metric["values"].values() if "values" in metric else [metric["value"]])
        if value is not None
    )


def agree(shown: dict[str, Any], path: Path) -> None:
    """Check that a JSON summary equals the evidence, without the comparison code of a run."""
    evidence = json.loads(path.read_text())
    assert "differences" not in shown
    assert numbers(shown["metrics"]) == numbers(evidence["evidence"]["metrics"])
    assert len(shown["metrics"]) >= 2
    failures = evidence["evidence"]["failures"]
    samples = shown["samples"]
    assert samples["failed"] == failures["num_errors"]
    assert samples.get("scored", samples.get("completed")) == failures["num_total"] - failures["num_errors"]
    assert (shown["status"], evidence["status"]) == ("success", "success")
    assert evidence["errors"] == []


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_task_summary_equals_its_evidence(aigo: Run, project: Path, engine: str) -> None:
    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--engine", engine, "--json")
    assert done.code == 1  # one sample fails
    agree(done.json, project / "out" / "t.tasklog.json")
    if engine == "inspect":
        again = aigo("score", "t.yaml", "out/t.tasklog.json", "--out", "scored", "--json")
        agree(again.json[0], project / "scored" / "t.tasklog.json")


def test_run_file_summary_equals_its_evidence(aigo: Run, project: Path) -> None:
    done = aigo("run", "run.yaml", "--fail-on-error", "0.5", "--json")
    assert done.code == 0, done.err
    assert [result["key"] for result in done.json["results"]] == ["once", "twice", "again"]
    for result in done.json["results"]:
        agree(result, project / "out" / result["result"])


def test_inspect_task_summary_equals_its_evidence(aigo: Run, project: Path) -> None:
    done = aigo("run", "inspect:native.py@odd", *WITH_ARGUMENTS, "--model", "scripted/m.jsonl", "--json")
    assert done.code == 0, done.err
    agree(done.json[0], project / "out" / "odd.tasklog.json")
    task = json.loads((project / "out" / "odd.tasklog.json").read_text())["specification"]["task"]
    assert [tag["value"] for tag in task["tags"]] == ["one"]
    assert task["created_at"] > 0


def test_lighteval_task_summary_equals_its_evidence(aigo: Run, project: Path) -> None:
    rows = [{"question": f"What is {n} + 1?", "answer": f"so\n#### {n + 1}"} for n in range(3)]
    (project / "rows").mkdir()
    for split in ("train", "test"):
        (project / "rows" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (project / "m.jsonl").write_text('{"default": true, "reply": "It is 2. ANSWER: 2"}\n')
    done = aigo("run", "lighteval:gsm8k", "--data-dir", "rows", "--model", "scripted/m.jsonl", "--json")
    assert done.code == 0, done.err
    agree(done.json[0], Path(done.json[0]["result"]))


def test_hook_evidence_equals_the_inspect_log(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = evaluated(project, monkeypatch)
    assert "differs" not in caplog.text
    (path,) = (project / "evidence").glob("*.tasklog.json")
    evidence = json.loads(path.read_text())
    assert evidence["status"] == "success"
    shown = [metric.value for score in log.results.scores for metric in score.metrics.values()]
    assert sorted(shown) == numbers(evidence["evidence"]["metrics"])


def evaluated(project: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from inspect_ai import eval as inspect_eval

    from aigo_inspect.benchmarks import hooks

    monkeypatch.chdir(project)
    monkeypatch.setenv(hooks.VARIABLE, str(project / "evidence"))
    arguments = {"word": "w", "several": ["a"], "nothing": None, "settings": {"a": 1}}
    (log,) = inspect_eval(
        "native.py@odd",
        task_args=arguments,
        model="scripted/m.jsonl",
        log_dir=str(project / "logs"),
        display="none",
    )
    return log


# Planted differences


Edit = Callable[[dict[str, Any]], None]


def half(log: dict[str, Any]) -> None:
    log["evidence"]["metrics"][0]["values"] = dict.fromkeys(log["evidence"]["metrics"][0]["values"], 0.125)


def failed(log: dict[str, Any]) -> None:
    log["status"] = "failure"
    log["evidence"]["metrics"] = []


def edited(path: Path, edit: Edit) -> None:
    log = json.loads(path.read_text())
    edit(log)
    path.write_text(json.dumps(log))


def noticed(done: Finished, *said: str) -> None:
    assert done.code == 1
    assert "the evidence differs from this summary" in done.err
    assert "[AB620]" in done.err
    assert "defect of aigo-bridge" in done.err
    for text in said:
        assert text in done.err, done.err


@pytest.mark.parametrize(
    ("edit", "said"), [(half, "the evidence has 0.125"), (failed, "shown as a success"), (failed, "has none")]
)
def test_different_evidence_of_a_task_is_reported(
    aigo: Run, project: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit, said: str
) -> None:
    (project / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    plant(monkeypatch, edit)
    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--fail-on-error", "1.0", "--json")
    noticed(done, said)
    assert done.json["differences"]


def plant(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    """Change the evidence before it is written."""

    def write(path: Path, *rest: Any, **named: Any) -> None:
        write_log(path, *rest, **named)
        edited(path, edit)

    monkeypatch.setattr(evaluate, "write_log", write)


def test_different_evidence_of_a_run_file_is_reported(
    aigo: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, half)
    done = aigo("run", "run.yaml#once", "--fail-on-error", "1.0")
    noticed(done, "metric", "the evidence has 0.125")
    summary = json.loads((project / "out" / "evaluation.json").read_text())
    assert summary["status"] == "failure"
    assert summary["results"][0]["differences"]


def test_different_evidence_of_an_inspect_task_is_reported(
    aigo: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_inspect.importing.frame.metrics_of", lambda *_: (None, []))
    done = aigo("run", "inspect:native.py@odd", "--model", "scripted/m.jsonl", "--json")
    noticed(done, "of scorer 'includes' is shown as", "the evidence has none")
    assert done.json[0]["differences"]


def test_different_evidence_is_reported_by_the_hook(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("aigo_inspect.importing.frame.metrics_of", lambda *_: (None, []))
    with heard("aigo_inspect.benchmarks.hooks", caplog, monkeypatch):
        evaluated(project, monkeypatch)
    assert "differs from what Inspect shows: metric" in caplog.text


def test_every_part_of_the_evidence_is_compared(aigo: Run, project: Path) -> None:
    aigo("run", "t.yaml", "--model", "scripted/m.jsonl")
    path = project / "out" / "t.tasklog.json"
    log = json.loads(path.read_text())
    metrics = [
        ShownMetric(metric["scorer_key"], (name, metric["metric_key"]), value)
        for metric in log["evidence"]["metrics"]
        for name, value in metric["values"].items()
    ]
    shown = DisplayedRun(metrics, succeeded=True, num_samples=4, num_failed=1)
    assert differences(shown, path) == ()
    first = ShownMetric(metrics[0].scorer, metrics[0].names, 0.125)
    for other, said in (
        (DisplayedRun(metrics, succeeded=False, num_samples=4, num_failed=1), "shown as failed"),
        (DisplayedRun(metrics, succeeded=True, num_samples=3, num_failed=1), "3 samples are shown"),
        (DisplayedRun(metrics, succeeded=True, num_samples=4, num_failed=0), "0 samples are shown as failed"),
        (DisplayedRun(metrics[1:], succeeded=True, num_samples=4, num_failed=1), "which is not shown"),
        (
            DisplayedRun([first, *metrics[1:]], succeeded=True, num_samples=4, num_failed=1),
            "is shown as 0.125",
        ),
        (
            DisplayedRun([*metrics, first], succeeded=True, num_samples=4, num_failed=1),
            "the evidence has none",
        ),
    ):
        assert any(said in each for each in differences(other, path)), said
    edited(path, failed)
    found = differences(DisplayedRun((), succeeded=True, num_samples=4, num_failed=0), path)
    assert any("as a success" in each for each in found)
    path.write_text("{")
    assert "cannot be read back" in differences(shown, path)[0]
