"""Trials with aggregators, action rules, classification and python metrics, end to end with numbers counted by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]


def write(folder: Path, definition: str, *rows: dict[str, Any]) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n  dataset: {key: d}\n"
    solver = (
        "  solver:\n    type: single_turn_solver\n    input_builder: {type: chat_completion,"
        ' input_messages: [{role: user, content: "{{ sample.q }}"}]}\n'
    )
    (folder / "t.yaml").write_text(head + solver + definition)


def script(folder: Path, *rules: dict[str, Any]) -> str:
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return "scripted/m.jsonl"


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("odd", ["float('inf')", "'none'"])
def test_a_non_numeric_score_in_one_trial_is_in_no_metric(
    aigo: Run, tmp_path: Path, result_of: Load, engine: str, odd: str
) -> None:
    """The sample is not silently excluded from the mean; other scores keep their metrics."""
    write(
        tmp_path,
        f"""
  trials:
    num_trials: 2
    score_aggregators: [{{score_name: v, aggregator: {{function: max, score_name: vmax}}}}]
  scorers:
    - type: python
      key: p
      metrics:
        - {{type: mean, field: v}}
        - {{type: max, field: vmax}}
        - {{type: mean, field: w}}
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            answer = solver_output.output.choices[0].message.content
            return {{"v": {odd} if answer == "odd" else 1, "w": 0.5}}
""",
        {"q": "one"},
        {"q": "two"},
    )
    model = script(
        tmp_path,
        {"match": {"contains": "two"}, "times": 1, "reply": "odd"},
        {"default": True, "reply": "even"},
    )

    done = aigo("run", "t.yaml", "--model", model, "--out", "out", "--max-connections", 1, "--engine", engine)

    assert done.code == 1, done.out + done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    values = {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }
    assert values == {"w_mean": 0.5}
    problems = [error["message"] for error in result["evidence"]["errors"]]
    assert len(problems) == 2
    assert all("over the trials of a sample, " in problem for problem in problems), problems


def test_worked_example_of_trials_has_the_documented_metrics(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    """Three of five trials pass: pass@5 = 0.98976, pass^5 = 0.07776, and the plain name keeps the mean, 0.6."""
    write(
        tmp_path,
        """
  trials:
    num_trials: 5
    score_aggregators:
      - {score_name: is_correct, aggregator: {function: "pass@k", k: 5}}
      - {score_name: is_correct, aggregator: {function: "pass^k", k: 5, score_name: all five}}
  scorers:
    - type: string_equals
      ground_truth: "yes"
      metrics:
        - {type: mean, field: is_correct, name: plain}
        - {type: mean, field: "is_correct.pass@5", name: any}
        - {type: mean, field: "all five", name: all}
""",
        {"q": "one"},
    )
    model = script(tmp_path, {"default": True, "times": 3, "reply": "yes"}, {"default": True, "reply": "no"})

    done = aigo("run", "t.yaml", "--model", model, "--out", "out", "--max-connections", 1)

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    values = {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }
    assert values == {"plain": 0.6, "any": pytest.approx(0.98976), "all": pytest.approx(0.07776)}
    (sample,) = result["evidence"]["samples"]
    assert [trial["index"] for trial in sample["trials"]] == [0, 1, 2, 3, 4]
    assert sum(trial["scores"][0]["values"]["is_correct"] for trial in sample["trials"]) == 3
    (top,) = sample["scores"]
    assert top["values"]["is_correct"] == 0.6
    assert result["specification"]["run_config"]["trials_config"] == {"num_trials": 5}
    # Inspect's own view of the log says the same, and has the standard error of the first.
    from aigo_inspect.logs.reader import open_log

    (log,) = (tmp_path / "out").glob("*.eval")
    with open_log(log) as reader:
        shown = reader.header["results"]["scores"][0]["metrics"]
    assert {name: metric["value"] for name, metric in shown.items()} == pytest.approx(
        {**values, "stderr": 0.0}
    )


def test_a_failed_trial_is_left_out(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """One of four trials fails: the proportion uses the other three, and the run reports it."""
    write(
        tmp_path,
        "  trials: {num_trials: 4}\n  scorers:\n    - {type: string_equals, ground_truth: 'yes'}\n",
        {"q": "one"},
    )
    model = script(
        tmp_path,
        {"default": True, "times": 1, "reply": {"error": "down"}},
        {"default": True, "times": 2, "reply": "yes"},
        {"default": True, "reply": "no"},
    )

    done = aigo("run", "t.yaml", "--model", model, "--out", "out", "--max-connections", 1)

    assert done.code == 1
    assert "1 of 1 sample scored, 1 of 4 trials failed" in done.out
    bounds = "50 % if every missing trial had scored worst, 75 % if best"
    assert f"accuracy: 1 of 4 trials is missing; {bounds}" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert result["evidence"]["failures"] == {"num_errors": 0, "num_total": 1}
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": pytest.approx(2 / 3)}
    errors = [
        error["message"] for trial in result["evidence"]["samples"][0]["trials"] for error in trial["errors"]
    ]
    assert errors == ["down"]


def test_action_rules_keep_samples_out_of_metrics(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Two of four samples are excluded, by a column and by a score; they stay in the evidence, with records."""
    write(
        tmp_path,
        """
  scorers:
    - {type: string_equals, key: equal, ground_truth: "{{ sample.a }}"}
  actions:
    - key: holdout
      action: exclude_from_metrics
      filter: {op: is_true, expression: "{{ sample.holdout }}"}
    - key: wrong-two
      action: exclude_from_metrics
      filter: {op: equals, expression: "{{ sample.q ~ scores.equal.is_correct }}", value: "two0.0"}
""",
        {"q": "one", "a": "x", "holdout": False},
        {"q": "two", "a": "y", "holdout": False},
        {"q": "three", "a": "x", "holdout": True},
        {"q": "four", "a": "y", "holdout": False},
    )

    done = aigo("run", "t.yaml", "--model", script(tmp_path, {"default": True, "reply": "x"}), "--out", "out")

    assert done.code == 0, done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 0.5}
    samples = result["evidence"]["samples"]
    assert [[r["rule_key"] for r in sample.get("action_records") or []] for sample in samples] == [
        [],
        ["wrong-two"],
        ["holdout"],
        [],
    ]
    assert "2 excluded from metrics" in done.out


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("num_trials", [1, 3])
def test_python_metrics_see_how_many_trials_were_scored(
    aigo: Run, tmp_path: Path, result_of: Load, engine: str, num_trials: int
) -> None:
    """A single trial leaves the scorer metadata unchanged."""
    write(
        tmp_path,
        """
  trials: {num_trials: 5}
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            if solver_output.output.choices[0].message.content == "odd":
                raise ValueError("odd")
            return {"v": 1}
      metrics:
        - type: python
          compute_metrics_snippet: |
            def compute_metrics(scores):
                counts = [(score.metadata or {}).get("num_trials", 0) for score in scores]
                return {"least": min(counts), "most": max(counts)}
""",
        {"q": "one"},
        {"q": "two"},
    )
    model = script(
        tmp_path,
        {"match": {"contains": "two"}, "times": num_trials - 1, "reply": "odd"}
        if num_trials > 1
        else {"match": {"exact": "never"}, "reply": "odd"},
        {"default": True, "reply": "fine"},
    )

    aigo("run", "t.yaml", "--model", model, "--num-trials", num_trials, "--engine", engine, "--out", "out")

    (metric,) = result_of(tmp_path / "out" / "t.tasklog.json")["evidence"]["metrics"]
    assert metric["values"] == ({"least": 0, "most": 0} if num_trials == 1 else {"least": 1, "most": 3})


def test_classification_and_python_metrics_are_computed(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """2 true positives, 1 false positive, 1 true negative, 1 false negative: accuracy 3/5, precision and recall 2/3."""
    write(
        tmp_path,
        """
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            said = solver_output.output.choices[0].message.content
            return {"scores": {"gt": sample["a"], "pred": said}, "metadata": {"length": len(said)}}
      metrics:
        - {type: binary-classification, field_gt: gt, field_pred: pred, positive_answer: "yes", negative_answer: "no"}
        - type: python
          compute_metrics_snippet: |
            def compute_metrics(scores):
                return {"letters": sum(score.metadata["length"] for score in scores)}
""",
        {"q": "yes 1", "a": "yes"},
        {"q": "yes 2", "a": "yes"},
        {"q": "yes 3", "a": "no"},
        {"q": "no 1", "a": "no"},
        {"q": "no 2", "a": "yes"},
    )
    model = script(tmp_path, {"match": {"contains": "yes"}, "reply": "yes"}, {"default": True, "reply": "no"})

    done = aigo("run", "t.yaml", "--model", model, "--out", "out")

    assert done.code == 0, done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    values = {
        name: value for metric in result["evidence"]["metrics"] for name, value in metric["values"].items()
    }
    assert values["accuracy"] == pytest.approx(3 / 5)
    assert values["precision"] == pytest.approx(2 / 3)
    assert values["recall"] == pytest.approx(2 / 3)
    assert values["f1_score"] == pytest.approx(2 / 3)
    assert values["letters"] == 3 * 3 + 2 * 2


def test_resumed_run_repeats_only_failed_trials(aigo: Run, tmp_path: Path) -> None:
    write(
        tmp_path,
        "  trials: {num_trials: 2}\n  scorers:\n    - {type: string_equals, ground_truth: 'yes'}\n",
        {"q": "one"},
        {"q": "two"},
    )
    run = ["run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "out", "--json"]
    script(
        tmp_path, {"match": {"exact": "two"}, "reply": {"error": "down"}}, {"default": True, "reply": "yes"}
    )
    assert aigo(*run).json["samples"]["failed"] == 1
    script(
        tmp_path,
        {"match": {"exact": "one"}, "reply": {"error": "never asked"}},
        {"default": True, "reply": "yes"},
    )

    done = aigo(*run, "--resume")

    assert done.code == 0, done.err
    assert done.json["samples"]["failed"] == 0
    assert done.json["samples"]["reused"] == 2
    assert done.json["metrics"][0]["value"] == 1.0
