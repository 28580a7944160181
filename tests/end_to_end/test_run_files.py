"""`aigo-bridge run run.yaml`: all specifications in one run, one result each, one table, and policies as exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]

TASK = """
key: parity
display_name: Parity
description: ""
config_spec:
  - {type: dataset, key: rows, display_name: Rows, default_value: numbers}
  - {type: string, key: word, display_name: Word, default_value: number}
definition:
  dataset: {key: << config.rows >>}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "Is the << config.word >> {{ sample.n }} odd?"}]
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.odd }}"
      metrics: [{type: mean, field: is_correct, name: Accuracy}]
"""

RUN = """
config: {subject: sure}
models:
  - $provider: scripted/yes.jsonl
datasets:
  - {key: numbers, display_name: Numbers, source: {type: local, file_path: numbers.jsonl}}
tasks:
  - $ref: task.yaml
evaluation:
  key: numeracy
  display_name: Numeracy
  description: ""
  config_spec: [{type: model, key: subject, display_name: Subject}]
  task_specifications:
    - {key: all, task_key: parity, model_key: << config.subject >>}
    - {key: few, task_key: parity, model_key: << config.subject >>, num_samples: 3, display_name: A few}
    - {task_key: parity, model_key: "scripted$yes-jsonl", task_config: {word: figure}, trials: {num_trials: 2}}
policies:
  - key: gate
    display_name: Gate
    rules:
      - key: good
        display_name: Good enough
        definition: {type: threshold, metric: Accuracy, operator: ">=", threshold: 0.5}
        scope: {task_specification_keys: [all]}
"""

LOOKUP = """
key: lookup
display_name: Lookup
description: ""
definition:
  type: system_task
  compute_evidence_snippet: |
    def compute_evidence():
        return {"metrics": {"reachable": {"value": 1}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Run file with three specifications; the model always answers yes, so half of ten numbers are right."""
    rows = [{"n": n, "odd": "yes" if n % 2 else "no"} for n in range(10)]
    (tmp_path / "numbers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (tmp_path / "never.jsonl").write_text('{"default": true, "reply": {"error": "never asked"}}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "run.yaml").write_text(RUN)
    return tmp_path


def change(folder: Path, old: str, new: str, name: str = "run.yaml") -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


SURE = ("--model-map", "sure=scripted/yes.jsonl")


def test_task_with_several_models_prints_a_table_by_model(folder: Path, aigo: Run) -> None:
    (folder / "no.jsonl").write_text('{"default": true, "reply": "no"}\n')
    change(folder, "models:\n", "models:\n  - $provider: scripted/no.jsonl\n")
    few = "{key: few, task_key: parity, model_key: << config.subject >>, num_samples: 3, display_name: A few}"
    change(folder, few, "{key: other, task_key: parity, model_key: scripted$no-jsonl}")
    change(folder, RUN.splitlines()[16] + "\n", "")

    done = aigo("run", "run.yaml", *SURE)

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    place = next(place for place, line in enumerate(lines) if line.startswith("task metric"))
    assert lines[place] == "task metric scripted/yes.jsonl scripted/no.jsonl", done.out + done.err
    assert "parity Accuracy 50 % (23.66 to 76.34 %) 50 % (23.66 to 76.34 %)" in lines


def test_all_specifications_run_and_each_has_a_result(folder: Path, aigo: Run, result_of: Load) -> None:
    """A system task among them."""
    (folder / "lookup.yaml").write_text(LOOKUP)
    change(folder, "- $ref: task.yaml", "- $ref: task.yaml\n  - $ref: lookup.yaml")
    change(folder, "policies:", "    - {task_key: lookup}\npolicies:")

    done = aigo("run", "run.yaml", *SURE)

    assert done.code == 0, done.err
    assert [
        " ".join(line.split())
        for line in done.out.splitlines()
        if "Accuracy" in line and "policy" not in line
    ] == [
        "all scripted/yes.jsonl Accuracy 50 % 23.66 to 76.34 % 10 0",
        "few scripted/yes.jsonl Accuracy 33.33 % 6.149 to 79.23 % 3 0",
        "parity scripted/yes.jsonl Accuracy 50 % 23.66 to 76.34 % 10 0",
    ]
    assert "policy passed  Good enough (gate/good): Accuracy >= 0.5: all has 0.5" in done.out
    out = folder / "out"
    assert sorted(path.name for path in out.glob("*.json") if "provenance" not in path.name) == [
        "all.tasklog.json",
        "evaluation.json",
        "few.tasklog.json",
        "lookup.tasklog.json",
        "parity.tasklog.json",
    ]
    assert len(list(out.glob("*.eval"))) == 4
    few = result_of(out / "few.tasklog.json")
    assert few["specification"]["display_name"] == "A few"
    assert few["specification"]["run_config"]["num_samples"] == 3
    assert few["specification"]["evaluated_entity"]["key"] == "sure"
    assert len(few["evidence"]["samples"]) == 3
    parity = result_of(out / "parity.tasklog.json")
    assert parity["specification"]["config"] == {"rows": "numbers", "word": "figure"}
    assert [len(sample["trials"]) for sample in parity["evidence"]["samples"]] == [2] * 10
    asked = parity["evidence"]["samples"][3]["trials"][1]["solver"]["output"]["trace"]["items"][0]
    assert asked["content"][0]["text"] == "Is the figure 3 odd?"
    lookup = result_of(out / "lookup.tasklog.json")
    assert lookup["evidence"]["metrics"][0]["values"] == {"reachable": 1}


def test_summary_contains_the_outcome_of_the_evaluation(folder: Path, aigo: Run) -> None:
    done = aigo("run", "run.yaml", *SURE, "--json")

    summary = orjson.loads((folder / "out" / "evaluation.json").read_bytes())
    shown = done.json
    for result in shown["results"]:
        for metric in result["metrics"]:
            assert {"interval", "standard_error", "method", "reason"} <= metric.keys()
            for name in metric.keys() - summary["results"][0]["metrics"][0].keys():
                del metric[name]
    assert {**summary, "out": str(Path("out"))} == shown
    assert summary["status"] == "success"
    assert summary["evaluation"] == {"key": "numeracy", "display_name": "Numeracy", "file": "run.yaml"}
    assert [(result["key"], result["task"]) for result in summary["results"]] == [
        ("all", "parity"),
        ("few", "parity"),
        ("parity", "parity"),
    ]
    first = summary["results"][0]
    assert {name: number for name, number in first["samples"].items() if number} == {
        "planned": 10,
        "samples": 10,
        "scored": 10,
        "trials": 10,
        "scored_trials": 10,
    }
    assert first["metrics"][0]["value"] == 0.5
    for path in (first["result"], *first["native_logs"]):
        assert (folder / "out" / path).is_file()
    assert summary["policies"][0]["passed"] is True
    assert summary["policies"][0]["values"][0]["value"] == 0.5


def test_failed_policy_exits_with_1(folder: Path, aigo: Run) -> None:
    change(folder, "threshold: 0.5", "threshold: 0.51")

    done = aigo("run", "run.yaml", *SURE, "--num-samples", 2)

    assert done.code == 1
    assert "policy FAILED  Good enough (gate/good): Accuracy >= 0.51 failed: all has 0.5" in done.out
    assert orjson.loads((folder / "out" / "evaluation.json").read_bytes())["status"] == "failure"


def test_the_command_line_overrides_the_file(folder: Path, aigo: Run, result_of: Load) -> None:
    """Samples, trials, rows, evaluation parameters and model of all specifications."""
    (folder / "other.jsonl").write_text('{"n": 1, "odd": "no"}\n{"n": 2, "odd": "no"}\n')
    done = aigo(
        "run", "run.yaml", "--model", "scripted/yes.jsonl", "--num-samples", 1, "--num-trials", 3,
        "--dataset", "numbers=other.jsonl", "--config", "subject=anything",
    )  # fmt: skip

    assert done.code == 1  # the policy: no number is right now
    for key in ("all", "few", "parity"):
        evidence = result_of(folder / "out" / f"{key}.tasklog.json")["evidence"]
        assert evidence["metrics"][0]["values"] == {"Accuracy": 0.0}
        assert [len(sample["trials"]) for sample in evidence["samples"]] == [3]


def test_one_specification_of_a_run_file_is_run_alone(folder: Path, aigo: Run) -> None:
    """`run.yaml#few`; policies apply to complete evaluations and are skipped."""
    done = aigo("run", "run.yaml#few", *SURE, "--json")

    assert done.code == 0, done.err
    assert [result["key"] for result in done.json["results"]] == ["few"]
    assert done.json["policies"] == []


def test_every_missing_model_is_named_before_anything_runs(folder: Path, aigo: Run) -> None:
    change(folder, '"scripted$yes-jsonl"', "nobody")

    done = aigo("run", "run.yaml")

    assert done.code == 2
    assert "no model is declared for 'sure', 'nobody'" in done.err
    assert not (folder / "out").exists()


def test_unused_options_are_reported(folder: Path, aigo: Run) -> None:
    assert "the file does not use model 'x'" in aigo("run", "run.yaml", *SURE, "--model-map", "x=y").err
    assert (
        "has no parameter 'subjec' (did you mean 'subject'?)"
        in aigo("run", "run.yaml", "--config", "subjec=1").err
    )
    assert "dataset 'x' is not used" in aigo("run", "run.yaml", "--dataset", "x=numbers.jsonl").err


def test_errors_of_all_specifications_are_listed_together(folder: Path, aigo: Run) -> None:
    """Unknown keys, wrong values and missing columns, each with its position."""
    change(folder, "task_config: {word: figure}", "task_config: {word: 3}")
    change(folder, "num_samples: 3", "task_config: {rows: letters}")
    (folder / "numbers.jsonl").write_text('{"n": 1, "even": "no"}\n')

    done = aigo("run", "run.yaml", *SURE)

    assert done.code == 2
    assert "parameter 'word': found 3, expected text" in done.err
    assert "run.yaml:17:79: error: task specification 'parity': parameter 'word'" in done.err
    assert "run.yaml:16:7: error" in done.err
    assert "task specification 'few': dataset 'letters' was not found" in done.err
    assert "`sample.odd` is not a column of the dataset" in done.err
    assert "task.yaml:" in done.err
    assert "3 errors" in done.err


def test_failing_specification_does_not_affect_the_others(folder: Path, aigo: Run, result_of: Load) -> None:
    change(
        folder,
        "few, task_key: parity, model_key: << config.subject >>",
        "few, task_key: parity, model_key: broken",
    )

    done = aigo("run", "run.yaml", *SURE, "--model-map", "broken=scripted/never.jsonl", "--json")

    assert done.code == 1
    results = {result["key"]: result for result in done.json["results"]}
    assert [results[key]["right"] for key in ("all", "few", "parity")] == [True, False, True]
    assert results["few"]["samples"]["failed"] == 3
    assert result_of(folder / "out" / "few.tasklog.json")["status"] == "failure"
    tolerant = aigo(
        "run", "run.yaml", *SURE, "--model-map", "broken=scripted/never.jsonl", "--fail-on-error", "1.0"
    )
    assert tolerant.code == 0, tolerant.out


def test_an_empty_evaluation_is_not_an_error(folder: Path, aigo: Run) -> None:
    text = (folder / "run.yaml").read_text()
    start, end = text.index("    - {key: all"), text.index("policies:")
    (folder / "run.yaml").write_text(text[:start].replace("task_specifications:", "task_specifications: []"))
    assert end > start

    done = aigo("run", "run.yaml")

    assert done.code == 0, done.err
    assert "the evaluation does not contain task specifications" in done.out
    assert orjson.loads((folder / "out" / "evaluation.json").read_bytes())["results"] == []


def test_a_run_file_without_an_evaluation_is_reported(folder: Path, aigo: Run) -> None:
    (folder / "run.yaml").write_text("tasks:\n  - $ref: task.yaml\n")

    done = aigo("run", "run.yaml")

    assert done.code == 2
    assert "'evaluation' is missing, so there is nothing to run" in done.err


def test_a_stored_result_replaces_a_run(folder: Path, aigo: Run, result_of: Load) -> None:
    """`task_result_log_path` is relative to the run file; policies use its metrics."""
    aigo("run", "run.yaml#all", *SURE, "--out", "kept")
    (folder / "kept" / "all.tasklog.json").rename(folder / "kept" / "earlier.tasklog.json")
    change(
        folder,
        "{key: all, task_key: parity",
        "{key: all, task_result_log_path: kept/earlier.tasklog.json, task_key: parity",
    )

    done = aigo("run", "run.yaml", *SURE, "--json")

    assert done.code == 0, done.err
    assert done.json["results"][0]["origin"] == "stored"
    assert done.json["results"][0]["metrics"][0]["value"] == 0.5
    assert done.json["policies"][0]["passed"] is True
    assert len(list((folder / "out").glob("*.eval"))) == 2
    assert result_of(folder / "out" / "all.tasklog.json")["status"] == "success"
    (folder / "kept" / "earlier.tasklog.json").unlink()
    missing = aigo("run", "run.yaml", *SURE)
    assert missing.code == 2
    assert "result log 'kept/earlier.tasklog.json' does not exist" in missing.err.replace(f"{folder}/", "")


def test_assessment_plan_runs_each_evaluation_in_its_own_folder(folder: Path, aigo: Run) -> None:
    (folder / "plan.yaml").write_text(
        "key: plan\ndisplay_name: Plan\nevaluation_specifications:\n"
        "  - {evaluation_key: numeracy, evaluation_config: {subject: other}, evaluation_run_config: {num_samples: 2}}\n"
    )
    change(folder, "num_samples: 3, ", "")
    done = aigo("run", "plan.yaml", "--model-map", "other=scripted/yes.jsonl", "--json")

    assert done.code == 0, done.err
    assert [result["samples"]["planned"] for result in done.json["results"]] == [2, 2, 2]
    missing = (folder / "plan.yaml").read_text().replace("numeracy", "numerals")
    (folder / "plan.yaml").write_text(missing)
    assert "evaluation 'numerals' was not found" in aigo("run", "plan.yaml").err


def test_plan_of_complete_run_files_is_run(folder: Path, aigo: Run) -> None:
    """Deprecated syntax; every evaluation has its own folder and summary."""
    change(folder, "key: numeracy", "key: second")
    (folder / "second.yaml").write_text((folder / "run.yaml").read_text())
    change(folder, "key: second", "key: first")
    (folder / "plan.yaml").write_text(
        "key: plan\ndisplay_name: Plan\nevaluations:\n  - $ref: run.yaml\n  - $ref: second.yaml\n"
    )

    done = aigo("run", "plan.yaml", *SURE, "--num-samples", 2, "--json")

    assert done.code == 0, done.err
    assert [one["evaluation"]["key"] for one in done.json] == ["first", "second"]
    for key in ("first", "second"):
        assert (folder / "out" / key / "evaluation.json").is_file()
        assert (folder / "out" / key / "few.tasklog.json").is_file()


def test_progress_has_ended_before_each_evaluation_is_shown(
    folder: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plan.yaml").write_text(
        "key: plan\ndisplay_name: Plan\nevaluation_specifications:\n"
        "  - {evaluation_key: numeracy, evaluation_config: {subject: other}, evaluation_run_config: {num_samples: 1}}\n"
        "  - {evaluation_key: numeracy, evaluation_config: {subject: other}, evaluation_run_config: {num_samples: 2}}\n"
    )
    events: list[str] = []

    @contextmanager
    def progress(*, enabled: bool, **_: object) -> Iterator[None]:
        if enabled:
            events.append("begins")
        yield None
        if enabled:
            events.append("ends")

    monkeypatch.setattr("aigo_bridge.cli.runs.progress", progress)
    monkeypatch.setattr("aigo_bridge.cli.runs.show_evaluation", lambda *_: events.append("shown"))

    done = aigo("run", "plan.yaml", "--model-map", "other=scripted/yes.jsonl")

    alone = [event for event in events if event != "shown"]
    assert events.count("shown") >= 1, done.err
    assert alone == ["begins", "ends"] * (len(alone) // 2)
    assert all(before == "ends" for before, event in pairwise(events) if event == "shown")


def test_uncomputed_metrics_exit_with_1(folder: Path, aigo: Run) -> None:
    """Also for a single task, even if samples were scored."""
    snippet = "def compute_metrics(scores): return 1 / 0"
    change(
        folder,
        "{type: mean, field: is_correct, name: Accuracy}",
        f"{{type: python, compute_metrics_snippet: '{snippet}'}}",
        "task.yaml",
    )

    alone = aigo(
        "run",
        "task.yaml",
        "--model",
        "scripted/yes.jsonl",
        "--dataset",
        "numbers=numbers.jsonl",
        "--out",
        "o",
    )
    together = aigo("run", "run.yaml#all", *SURE)

    assert (alone.code, together.code) == (1, 1)
    assert "ZeroDivisionError" in alone.out
    assert "ZeroDivisionError" in together.out


def test_model_entity_of_the_run_file_is_called(folder: Path, aigo: Run, result_of: Load) -> None:
    """The evidence has its key and not a local path; `reuse` detects a changed entity."""
    change(folder, "config: {subject: sure}", "config: {subject: mine}")
    change(
        folder,
        "models:\n",
        """models:
  - key: mine
    display_name: My model
    config:
      connection_type: custom_inference
      timeout: 30
      adapter: {key: latticeflow$openai_chat_completion}
      run_inference_snippet: |
        import json
        def run_inference(body, environment):
            message = {"role": "assistant", "content": "yes"}
            return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]})
""",
    )

    done = aigo("run", "run.yaml#few", "--json")

    assert done.code == 0, done.out + done.err
    entity = result_of(folder / "out" / "few.tasklog.json")["specification"]["evaluated_entity"]
    assert (entity["key"], entity["display_name"]) == ("mine", "My model")
    assert done.json["results"][0]["metrics"][0]["value"] == pytest.approx(1 / 3)
    assert aigo("run", "run.yaml#few", "--json").json["results"][0]["origin"] == "reused"
    change(folder, '"content": "yes"', '"content": "no"')
    anew = aigo("run", "run.yaml#few", "--json").json["results"][0]
    assert anew["origin"] == "run"
    assert anew["metrics"][0]["value"] == pytest.approx(2 / 3)
