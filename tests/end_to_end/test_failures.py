"""A failing sample is recorded with its stage and message and does not affect other samples."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]


def write_script(path: Path, *rules: Mapping[str, Any]) -> str:
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    return f"scripted/{path}"


def rule(contains: str, **reply: Any) -> dict[str, Any]:
    return {"match": {"contains": contains}, "reply": reply}


def default(**reply: Any) -> dict[str, Any]:
    return {"default": True, "reply": reply}


def errors_of(result: dict[str, Any]) -> dict[Any, list[tuple[str, str]]]:
    """Return (stage, message) of the trial errors by sample id."""
    return {
        sample["sample_id"]: [(error["stage"], error["message"]) for error in trial["errors"]]
        for sample in result["evidence"]["samples"]
        for trial in sample["trials"]
        if trial["errors"]
    }


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Three questions with a comparing and a judging scorer."""
    (tmp_path / "q.jsonl").write_text(
        '{"question": "one", "answer": "1"}\n{"question": "two", "answer": "2"}\n{"question": "three", "answer": "3"}\n'
    )
    path = tmp_path / "task.yaml"
    path.write_text(
        """
key: t
display_name: T
description: ""
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: user, content: "{{ sample.question }}"}
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.answer }}"
    - type: model_as_a_judge_scorer
      key: judge
      model_key: judge
      user_prompt: "{{ sample.question }} / {{ solver_output.output }}"
      score_max: 10
"""
    )
    return path


def test_model_error_fails_one_sample(aigo: Run, task: Path, tmp_path: Path, result_of: Load) -> None:
    """The other samples are scored, the failed one is excluded from means, and the exit code is 1."""
    model = write_script(
        tmp_path / "m", rule("one", text="1"), rule("two", error="no such model"), default(text="3")
    )
    judge = write_script(tmp_path / "j", default(text='{"score": 5}'))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    assert done.code == 1
    assert "2 of 3 samples scored, 1 failed" in done.out
    assert "sample 1: solver: no such model" in done.out
    assert "sample 1: no such model" in done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert errors_of(result) == {1: [("solver", "no such model")]}
    assert result["evidence"]["failures"] == {"num_errors": 1, "num_total": 3}
    assert [metric["values"] for metric in result["evidence"]["metrics"]] == [
        {"accuracy": 1.0},
        {"score_mean": 0.5},
    ]
    assert result["status"] == "success"
    failed = result["evidence"]["samples"][1]["trials"][0]
    assert failed["scores"] == []
    # The evidence also contains the request that failed.
    assert failed["solver"]["output"]["trace"]["items"][0]["content"][0]["text"] == "two"


def test_unreadable_judge_fails_its_scorer_only(
    aigo: Run, task: Path, tmp_path: Path, result_of: Load
) -> None:
    """The score of the other scorer is kept and counted."""
    model = write_script(tmp_path / "m", rule("one", text="1"), rule("two", text="2"), default(text="4"))
    judge = write_script(tmp_path / "j", rule("two", text="well, hard to say"), default(text="Score: 10"))
    judge_all = write_script(
        tmp_path / "j",
        {"match": {"contains": "two / 2", "on": "all"}, "reply": {"text": "hm"}},
        default(text="10"),
    )
    assert judge == judge_all

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    assert done.code == 1
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    ((stage, message),) = errors_of(result)[1]
    assert stage == "score"
    assert message.startswith("scorer 'judge': judge 'judge': no readable answer after 2 attempts")
    assert "'hm'" in message
    assert [metric["values"] for metric in result["evidence"]["metrics"]] == [
        {"accuracy": 2 / 3},
        {"score_mean": 1.0},
    ]
    assert [score["scorer_key"] for score in result["evidence"]["samples"][1]["trials"][0]["scores"]] == [
        "string_equals"
    ]


def test_judge_score_out_of_range_is_an_error(aigo: Run, task: Path, tmp_path: Path, result_of: Load) -> None:
    model = write_script(tmp_path / "m", default(text="1"))
    judge = write_script(tmp_path / "j", rule("three", text="11"), default(text="10"))

    aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert errors_of(result) == {
        2: [("score", "scorer 'judge': judge 'judge' gave 11, expected a number from 0 to 10")]
    }


def test_invalid_json_input_fails_its_sample(aigo: Run, tmp_path: Path, tasks: Path, result_of: Load) -> None:
    """A quote in a value breaks a template without `tojson`; the message names the fix."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "say \\"hi\\"", "target": "hi"}\n{"question": "plain", "target": "ok"}\n')
    model = write_script(tmp_path / "m", default(text="ok"))

    done = aigo(
        "run", "aigo_tasks/singleturn-generic-input", "--dataset", f"qa-single-answers={rows}", "--model", model,
        "--out", "out",
    )  # fmt: skip

    assert done.code == 1
    assert "tojson" in done.out
    result = result_of(tmp_path / "out" / "singleturn-generic-input.tasklog.json")
    ((stage, message),) = errors_of(result)[0]
    assert stage == "solver"
    assert message.startswith("the input template did not return JSON")
    assert result["evidence"]["metrics"][0]["values"] == {"accuracy": 1.0}


def test_missing_value_fails_only_its_row(aigo: Run, task: Path, tmp_path: Path, result_of: Load) -> None:
    """A missing column is NaN in that row, so the text scorer fails and the other scorer does not."""
    (tmp_path / "q.jsonl").write_text('{"question": "one", "answer": "1"}\n{"question": "two"}\n')
    model = write_script(tmp_path / "m", default(text="1"))
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    assert done.code == 1
    assert "warning: column 'answer' is missing in 1 of 2 samples (first: sample 1)" in done.err
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert [
        [score["scorer_key"] for score in sample["trials"][0]["scores"]]
        for sample in result["evidence"]["samples"]
    ] == [["string_equals", "judge"], ["judge"]]
    message = "scorer 'string_equals': ground_truth: {{ sample.answer }} is missing in this sample, expected a value to compare"
    assert errors_of(result) == {1: [("score", message)]}
    assert result["evidence"]["samples"][1]["trials"][0]["sample"]["data"] == {
        "question": "two",
        "answer": None,
    }


def test_run_with_only_failed_samples_is_an_error(
    aigo: Run, task: Path, tmp_path: Path, result_of: Load
) -> None:
    """The result has no metric, and the log has the reason."""
    model = write_script(tmp_path / "m", default(error="down"))
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    assert done.code == 1
    assert "0 of 3 samples scored, 3 failed" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert result["status"] == "failure"
    assert result["evidence"]["metrics"] == []
    assert [error["stage"] for error in result["evidence"]["errors"]] == ["metric", "metric"]


@pytest.mark.parametrize(
    ("tolerance", "code"), [("0", 1), ("1", 0), ("0.3", 1), ("0.34", 0), ("3", 0), ("many", 2), ("-1", 2)]
)
def test_tolerance_decides_the_exit_code(
    aigo: Run, task: Path, tmp_path: Path, tolerance: str, code: int
) -> None:
    """`--fail-on-error N|0.x`: one of three samples fails."""
    model = write_script(tmp_path / "m", rule("two", error="down"), default(text="1"))
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo(
        "run", task, "--model", model, "--model-map", f"judge={judge}", f"--fail-on-error={tolerance}"
    )

    assert done.code == code


def test_transient_errors_are_retried(aigo: Run, task: Path, tmp_path: Path) -> None:
    """A 503 on the first call does not fail the sample."""
    model = write_script(
        tmp_path / "m",
        {**rule("two", error="overloaded", status=503), "times": 1},
        default(text="1"),
    )  # fmt: skip
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}")

    assert done.code == 0, done.out


def test_json_option_prints_only_the_summary(aigo: Run, task: Path, tmp_path: Path) -> None:
    """`--json` prints one document with metrics, counts and paths to standard output."""
    model = write_script(tmp_path / "m", rule("two", error="down"), default(text="1"))
    judge = write_script(tmp_path / "j", default(text="4"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out", "--json")

    assert done.code == 1
    summary = done.json
    assert {name: number for name, number in summary["samples"].items() if number} == {
        "planned": 3,
        "samples": 3,
        "scored": 2,
        "failed": 1,
        "trials": 3,
        "scored_trials": 2,
        "failed_trials": 1,
        "with_failed_trials": 1,
    }
    assert [(row["scorer"], row["name"], row["value"], row["num_scored"]) for row in summary["metrics"]] == [
        ("string_equals", "accuracy", 0.5, 2),
        ("judge", "score_mean", 0.4, 2),
    ]
    assert summary["errors"] == [
        {"sample_id": 1, "trial": None, "stage": "solver", "message": "down", "hint": None, "count": 1}
    ]
    assert Path(summary["native_log"]).is_file()
    assert Path(summary["result"]).is_file()
    assert summary["models"][""] == model


def test_ids_and_messages_cannot_control_the_terminal(aigo: Run, task: Path, tmp_path: Path) -> None:
    """Control characters in data or model output are escaped."""
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"sample_id": "a\x1b[2Jb", "question": "one", "answer": "1"}) + "\n"
    )
    model = write_script(tmp_path / "m", default(error="bad \x1b]0;owned\x07 day"))
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}")

    assert "\x1b" not in done.out + done.err
    assert "a\\x1b[2Jb" in done.out


def test_sample_ids_of_any_type_are_accepted(aigo: Run, task: Path, tmp_path: Path, result_of: Load) -> None:
    """Slashes, whitespace, Unicode and numbers are unchanged and in order in the evidence."""
    ids = ["a/b", "../../etc", "é ü", "日本", 7, "x" * 150]
    (tmp_path / "q.jsonl").write_text(
        "".join(
            json.dumps({"sample_id": i, "question": "one", "answer": "1", "items": "kept"}) + "\n"
            for i in ids
        )
    )
    model = write_script(tmp_path / "m", default(text="1"))
    judge = write_script(tmp_path / "j", default(text="1"))

    done = aigo("run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out")

    assert done.code == 0, done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == ids
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "m", "out", "q.jsonl", "task.yaml"]


def test_failing_judge_is_named_and_its_calls_are_recorded(
    aigo: Run, task: Path, tmp_path: Path, result_of: Load
) -> None:
    """The judge returns invalid output, and its endpoint refuses the second attempt."""
    model = write_script(tmp_path / "m", default(text="1"))
    judge = write_script(
        tmp_path / "j",
        {**rule("one", text="hard to say"), "times": 1},
        rule("could not be read", error="quota"),
        default(text="1"),
    )

    aigo(
        "run", task, "--model", model, "--model-map", f"judge={judge}", "--out", "out", "--max-connections", 1
    )

    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert errors_of(result) == {0: [("score", "scorer 'judge': judge 'judge': quota")]}


def test_sample_keeps_its_scores_if_one_scorer_fails(aigo: Run, task: Path, tmp_path: Path) -> None:
    """The failure is reported with scorer, stage, trial and hint."""
    model = write_script(tmp_path / "m", default(text="1"))
    judge = write_script(tmp_path / "j", rule("two", error="no judge"), default(text='{"score": 5}'))
    options = (task, "--model", model, "--model-map", f"judge={judge}", "--num-trials", 2)

    shown = aigo("run", *options, "--out", "out")

    assert "2 of 3 samples scored by every scorer, 1 failed" in shown.out
    assert "  sample 1, trial 1: score: scorer 'judge': " in shown.out
    assert "6/6 trials, 2 failed" in shown.err
    assert shown.err.count("sample 1, trial") == 1
    summary = aigo("run", *options, "--out", "json", "--json").json
    assert summary["samples"]["excluded"] == 0
    (error,) = summary["errors"]
    assert (error["sample_id"], error["trial"], error["stage"]) == (1, 1, "score")
    assert "hint" in error
    assert [(row["key"], row["num_scored"]) for row in summary["metrics"]] == [("mean", 3), ("mean", 2)]


def test_a_metric_without_a_value_has_its_own_name(aigo: Run, task: Path, tmp_path: Path) -> None:
    head = task.read_text().split("  scorers:")[0]
    task.write_text(
        head
        + """  scorers:
    - type: python
      metrics: [{type: mean, field: absent, name: Accuracy}, {type: max, field: x}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"y": 1}
"""
    )

    done = aigo("run", task, "--model", write_script(tmp_path / "m", default(text="1")))

    assert done.code == 1
    assert [line.split()[:2] for line in done.out.splitlines()[3:5]] == [["Accuracy", "–"], ["x_max", "–"]]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_too_deeply_nested_output_fails_only_its_sample(
    aigo: Run, tmp_path: Path, result_of: Load, engine: str
) -> None:
    (tmp_path / "t.yaml").write_text(
        """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          deep = []
          for _ in range(400 if sample["q"] == "deep" else 1):
              deep = [deep]
          said = {"type": "output_text", "text": "x", "annotations": []}
          item = {"type": "message", "role": "assistant", "id": "a", "status": "completed", "content": [said]}
          return {"trace": {"items": [{**item, "deep": deep}]}, "raw_outputs": []}
  scorers: [{type: string_equals, value: x, ground_truth: x}]
"""
    )
    (tmp_path / "d.jsonl").write_text('{"q": "deep"}\n{"q": "flat"}\n')

    model = write_script(tmp_path / "m.jsonl", default(text="x"))

    done = aigo("run", "t.yaml", "--model", model, "--out", "out", "--engine", engine)

    assert done.code == 1, done.out + done.err
    evidence = result_of(tmp_path / "out" / "t.tasklog.json")["evidence"]
    assert evidence["failures"] == {"num_errors": 1, "num_total": 2}
    deep, flat = (sample["trials"][0] for sample in evidence["samples"])
    assert [len(deep["errors"]), len(flat["errors"])] == [1, 0]
    assert flat["scores"][0]["values"] == {"is_correct": 1.0}
