"""Warnings at the end of a run about possible errors in the data or the judge; metrics stay unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.dtypes import ChatCompletionModelOutput, FunctionCall, SolverTrace, Trace
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.results.warnings import Doubts, is_empty
from aigo_bridge.solving.conversation import assistant_item, chat_output, text_item

Load = Callable[[Path], dict[str, Any]]

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
"""
EQUALS = '    - {type: string_equals, ground_truth: "{{ sample.a }}"}\n'
MCQA = '    - {type: string_equals_mcqa, ground_truth_choice: "{{ sample.a }}", choices: [A, B]}\n'
JUDGE = """    - type: model_as_a_judge_classifier
      key: judged
      model_key: judge
      user_prompt: "{{ solver_output.output }}"
      correct_labels: ["good"]
      incorrect_labels: ["bad"]
"""


def write(folder: Path, scorers: str, *rows: dict[str, Any], **scripts: dict[str, str]) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(TASK + scorers)
    for name, replies in scripts.items():
        rules = [
            {"default": True, "reply": reply}
            if text == "default"
            else {"match": {"exact": text}, "reply": reply}
            for text, reply in replies.items()
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))


def told(done: Any) -> list[str]:
    return [line.removeprefix("warning: ") for line in done.out.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_empty_answers_and_unexpected_labels_are_warnings(
    aigo: Run, tmp_path: Path, result_of: Load, engine: str
) -> None:
    rows = [{"q": f"q{number}", "a": "x"} for number in range(5)]
    model = {"q0": "", "q1": "\n ", "q2": "one", "q3": "two", "default": "x"}
    judge = {"one": '{"prediction": "maybe"}', "two": '{"prediction": "Good"}', "default": '{"prediction": "unsure"}'}  # fmt: skip
    write(tmp_path, EQUALS + JUDGE, *rows, model=model, judge=judge)
    run = ["run", "t.yaml", "--model", "scripted/model.jsonl", "--model-map", "judge=scripted/judge.jsonl"]

    done = aigo(*run, "--engine", engine)

    assert done.code == 0, done.err
    assert told(done) == [
        "2 of 5 answers are empty, and scored as they are",
        "judge of 'judged' gave a label outside the allowed ones 4 times: 'unsure' (3 times), 'maybe', which counts as incorrect",
    ]
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    values = {metric["scorer_key"]: metric["values"]["accuracy"] for metric in result["evidence"]["metrics"]}
    assert values == {"string_equals": 0.2, "judged": 0.2}
    assert result["status"] == "success"
    assert result["evidence"]["errors"] == []
    marks = [
        trial["scores"][1]["metadata"].get("unexpected_label")
        for sample in result["evidence"]["samples"]
        for trial in sample["trials"]
    ]
    assert marks == [True, True, True, None, True]
    shown = aigo(*run, "--engine", engine, "--json", "--out", "again").json
    assert [warning["message"] for warning in shown["warnings"]] == told(done)


def test_planning_warnings_are_not_repeated(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    write(tmp_path, MCQA, {"q": "q", "a": "A"}, {"q": "q", "a": "E"}, model={"default": "A"})

    done = aigo("run", "t.yaml", "--model", "scripted/model.jsonl", "--json")

    assert done.code == 0
    (warning,) = done.json["warnings"]
    assert warning["message"].startswith(
        "'ground_truth_choice' is not one of the choices in 1 of 2 samples: 'E'"
    )
    assert warning["place"].endswith("t.yaml:10:55")
    assert warning["message"] in done.err
    assert done.json["metrics"][0]["value"] == 0.5
    samples = result_of(tmp_path / "out" / "t.tasklog.json")["evidence"]["samples"]
    metadata = [sample["trials"][0]["scores"][0]["metadata"] for sample in samples]
    assert [each.get("ground_truth_is_choice") for each in metadata] == [None, False]


def test_post_processor_rows_are_checked_during_the_run(aigo: Run, tmp_path: Path) -> None:
    solver = TASK.replace(
        "  scorers:\n",
        "    postprocessor:\n      type: python\n      postprocess_snippet: |\n"
        "        def postprocess(sample, solver_output):\n"
        "            return [({'a': letter}, solver_output) for letter in 'AEE']\n  scorers:\n",
    )
    write(tmp_path, MCQA, {"q": "q"}, model={"default": "A"})
    (tmp_path / "t.yaml").write_text(solver + MCQA)

    done = aigo("run", "t.yaml", "--model", "scripted/model.jsonl")

    assert done.code == 0, done.err
    assert told(done) == [
        "'string_equals_mcqa': the correct choice is not one of the choices 2 times: 'E' (2 times), which counts as wrong"
    ]


def test_warnings_are_printed_for_each_specification(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path, EQUALS, {"q": "q", "a": "x"}, {"q": "r", "a": "x "}, model={"default": ""})
    (tmp_path / "run.yaml").write_text(
        "tasks: [{$ref: t.yaml}]\ndatasets: [{key: d, display_name: D, description: '', source: {type: local, file_path: d.jsonl}}]\n"
        "evaluation:\n  key: e\n  display_name: E\n  description: ''\n  task_specifications: [{task_key: t, model_key: m}]\n"
    )

    done = aigo("run", "run.yaml", "--model", "scripted/model.jsonl")

    assert done.code == 0, done.out + done.err
    assert "t: warning: 2 of 2 answers are empty, and scored as they are" in done.out
    (result,) = json.loads((tmp_path / "out" / "evaluation.json").read_text())["results"]
    first, second = result["warnings"]
    assert "begins or ends with whitespace" in first["message"]
    assert second == {
        "message": "2 of 2 answers are empty, and scored as they are",
        "place": None,
        "hint": None,
    }


def test_a_rule_over_a_score_that_never_occurred_is_reported(aigo: Run, tmp_path: Path) -> None:
    python = """    - type: python
      key: py
      compute_scores_snippet: "def compute_scores(sample, solver_output): return {'length': len(sample['q'])}"
  actions:
    - {key: wide, action: exclude_from_metrics, filter: {op: greater_than, expression: "{{ scores.py.width }}", value: 1}}
    - {key: asked, action: exclude_from_metrics, filter: {op: exists, expression: "{{ scores.py.width }}"}}
    - {key: long, action: exclude_from_metrics, filter: {op: greater_than, expression: "{{ scores.py.length }}", value: 1}}
"""
    write(tmp_path, EQUALS + python, {"q": "q", "a": "x"}, {"q": "qq", "a": "x"}, model={"default": "x"})

    done = aigo("run", "t.yaml", "--model", "scripted/model.jsonl")

    assert told(done) == [
        "action rule 'wide' selects no sample: 'py' never gave a score 'width' (it gave 'length')"
    ]


def test_excluded_samples_have_no_warnings(aigo: Run, tmp_path: Path) -> None:
    rule = (
        "  actions:\n    - key: silent\n      action: exclude_from_metrics\n"
        '      filter: {op: equals, expression: "{{ solver_output.output }}", value: ""}\n'
    )
    rows = ({"q": "one", "a": "x"}, {"q": "two", "a": "x"})
    write(tmp_path, EQUALS + rule, *rows, model={"one": "", "default": "x"})
    done = aigo("run", "t.yaml", "--model", "scripted/model.jsonl")
    assert "1 excluded from metrics" in done.out
    assert told(done) == []


CALL = FunctionCall(type="function_call", id="", call_id="c", name="f", arguments="{}", status="completed")


@pytest.mark.parametrize(
    ("items", "raw", "empty"),
    [
        ([assistant_item("")], chat_output(""), True),
        ([assistant_item("")], chat_output(" \n"), True),
        ([assistant_item("x")], chat_output("x"), False),
        ([CALL], chat_output(""), None),
        ([CALL, text_item("user", "?"), assistant_item("")], chat_output(""), True),
        ([], {"log_likelihoods": []}, None),
        ([], "", None),
        ([], ChatCompletionModelOutput(choices=[]), None),
        (
            [assistant_item("")],
            ChatCompletionModelOutput.model_validate(
                {"choices": [{"message": {"role": "assistant", "content": "", "refusal": "No."}}]}
            ),
            None,
        ),
    ],
)
def test_only_blank_answers_count_as_empty(items: list[Any], raw: Any, empty: bool | None) -> None:
    output = SolverTrace(trace=Trace(items=items), raw_outputs=[raw], direct_ios=[])
    assert is_empty(output) is empty


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_redacted_answers_are_a_warning(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """An environment variable has the value of an answer, so the scored text differs from the model's reply."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BUILD_TOKEN", "Port-Moresby-1")
    rows = [{"q": "Papua", "a": "Port-Moresby-1"}, {"q": "Peru", "a": "Lima"}]
    write(tmp_path, EQUALS, *rows, m={"Papua": "Port-Moresby-1", "default": "Lima"})

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--engine", engine)

    (line,) = told(done)
    assert line.startswith("1 trial has [secret] or [redacted: …] in the answer or the row")
    again = aigo("score", "t.yaml", "out/t.tasklog.json", "--out", "again", "--engine", engine, "--json")
    (summary,) = again.json
    assert [warning["message"] for warning in summary["warnings"]] == [line]


def test_correct_run_has_no_warnings() -> None:
    output = SolverTrace(trace=Trace(items=[]), raw_outputs=[chat_output("x")], direct_ios=[])
    doubts = Doubts()
    doubts.note(TrialRecord(0, 0, {}, output, ()))
    doubts.note(TrialRecord(1, 0, {}, None, ()))
    assert list(doubts.lines()) == []
