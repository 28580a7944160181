"""aigo-bridge runs in the viewer and tables of Inspect: input, target, answer, explanation, metrics with
standard errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import orjson
import pytest
from inspect_ai.analysis import evals_df, samples_df
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSample, read_eval_log
from tests.bridge.jsonl_spec.jsonl_records import record
from tests.support.commands import Finished, Run, called

import aigo_bridge
from aigo_bridge.evaluation.writing import write_result
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.scoring.scorer import Score
from aigo_inspect.running.codec import outcomes_of, score_fields, with_name
from aigo_inspect.running.evidence import read
from aigo_inspect.running.translate import native_samples

HEAD = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
"""
SINGLE = """  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {role: system, content: "Be brief."}
        - {role: user, content: "{{ sample.q }}"}
"""
TURNS = """  solver:
    type: multi_turn_solver
    message_builders:
      - {type: chat_message, role: user, content: "First {{ sample.q }}"}
      - {type: generate}
      - {type: chat_message, role: user, content: "Then {{ sample.q }}"}
      - {type: generate}
"""
RECORDED = "  solver: {type: pass_through_solver, trace_column: trace}\n"
CODE = """  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          raise ValueError("never")
"""
GROUP = """  solver:
    type: grouped_single_turn_solver
    input_builder: {type: generic, template: '[{"messages": [{"role": "user", "content": "a"}]}]'}
"""
SCORERS = """  scorers:
    - {type: string_equals, key: equal, ground_truth: "{{ sample.a }}"}
    - {type: string_equals_mcqa, key: letter, ground_truth_choice: "{{ sample.a[:1] }}", choices: [A, B]}
    - {type: bleu, key: bleu, ground_truth: "{{ sample.a }}"}
    - type: model_as_a_judge_classifier
      key: judged
      model_key: judge
      user_prompt: "{{ solver_output.output }}"
      correct_labels: [good]
      incorrect_labels: [bad]
    - type: labeler_via_model
      key: labelled
      model_key: judge
      user_prompt: "{{ solver_output.output }}"
    - type: python
      key: mine
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"long": len(solver_output.output.choices[0].message.content) > 2}
    - type: python
      key: pair
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"one": 1, "two": "b"}
"""
EQUAL = '  scorers:\n    - {type: string_equals, key: equal, ground_truth: "{{ sample.a }}"}\n'
ROWS = [{"q": "one?", "a": "Apple"}, {"q": "two?", "a": "Berry"}, {"q": "three?", "a": "Berry"}]


def write_task(folder: Path, task: str, *rows: dict[str, Any]) -> Path:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(HEAD + task)
    return folder / "t.yaml"


def planned(folder: Path, task: str, *rows: dict[str, Any]) -> list[Sample]:
    """Return the samples of a task for Inspect, which a run stores unchanged in its log."""
    return native_samples(aigo_bridge.plan_task(write_task(folder, task, *rows)))


def run(aigo: Run, folder: Path, task: str, *rows: dict[str, Any], **options: Any) -> Finished:
    write_task(folder, task, *(rows or ROWS))
    (folder / "m.jsonl").write_text('{"default": true, "reply": "Apple"}\n')
    (folder / "j.jsonl").write_text(
        '{"default": true, "reply": "{\\"reasoning\\": \\"It is round.\\", \\"prediction\\": \\"good\\"}"}\n'
    )
    arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    return aigo("run", "t.yaml", "--out", "out", *arguments)


def samples_of(folder: Path) -> tuple[str, list[EvalSample]]:
    (log,) = (folder / "out").glob("*.eval")
    return str(log), read_eval_log(str(log)).samples or []


MODEL = {"model": "scripted/m.jsonl"}


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run with every kind of scorer."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run(called, folder, SINGLE + SCORERS, **MODEL, model_map="judge=scripted/j.jsonl")
    assert done.code == 0, done.err
    return folder


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # pandas used by Inspect
def test_every_score_has_an_answer_and_an_explanation(scored: Path) -> None:
    log, (first, second, _) = samples_of(scored)
    assert not isinstance(first.input, str)
    assert [(message.role, message.text) for message in first.input] == [
        ("system", "Be brief."),
        ("user", "one?"),
    ]
    assert first.target == ["Apple", "A"]
    shown = {key: (score.value, score.answer, score.explanation) for key, score in second.scores.items()}  # type: ignore[union-attr]
    assert shown == {
        "equal": (0.0, "Apple", "differs from the ground truth, 'Berry'"),
        "letter": (0.0, "A", "correct: 'B' of A, B"),
        "bleu": (pytest.approx(0.0), "Apple", "differs from the ground truth, 'Berry'"),
        "judged": (1.0, "Apple", "judge: good; It is round."),
        "labelled": ("good", "Apple", "judge: good; It is round."),
        "mine": (True, "Apple", "long: True"),
        "pair": ({"one": 1, "two": "b"}, "Apple", "one: 1, two: 'b'"),
    }
    table = samples_df(log).sort_values("id", ignore_index=True)
    assert list(table["score_equal"]) == [1.0, 0.0, 0.0]
    assert table["input"][0] == "system:\nBe brief.\n\n\nuser:\none?\n"
    assert table["target"][1] == "Berry,B"
    row = evals_df(log).iloc[0]
    third = pytest.approx(1 / 3)
    error = pytest.approx(math.sqrt((1 / 3) / 3))
    assert (row["score_headline_metric"], row["score_headline_value"]) == ("accuracy", third)
    assert row["score_headline_stderr"] == error
    assert (row["score_letter_accuracy"], row["score_letter_stderr"]) == (third, error)
    assert row["score_judged_stderr"] == 0.0


def test_viewer_fields_are_not_in_the_evidence(scored: Path) -> None:
    result = orjson.loads((scored / "out" / "t.tasklog.json").read_bytes())
    trial = result["evidence"]["samples"][1]["trials"][0]
    scores = {score["scorer_key"]: score for score in trial["scores"]}
    assert trial["sample"]["data"] == ROWS[1]
    assert scores["equal"]["values"] == {"is_correct": 0.0}
    assert scores["equal"]["metadata"] == {"answer_gt": "Berry", "answer_pred": "Apple"}
    assert scores["mine"]["values"] == {"long": True}
    assert "metadata" not in scores["mine"]
    events = [
        event["data"]["score"]
        for event in trial["solver"]["output"]["trace"]["events"]
        if event.get("name") == "score"
    ]
    assert events[0]["value"] == {"is_correct": 0.0}
    assert '"aigo_bridge":' not in (scored / "out" / "t.tasklog.json").read_text()


@pytest.mark.parametrize(
    ("task", "row", "asked"),
    [
        (TURNS + EQUAL, ROWS[0], "First one?"),
        (CODE + EQUAL, ROWS[0], '{"q": "one?", "a": "Apple"}'),
        (GROUP + EQUAL.replace("ground_truth", "value: x, ground_truth"), ROWS[0], '{"q": "one?", "a": "Apple"}'),
        (EQUAL.replace("ground_truth", "value: x, ground_truth"), ROWS[0], '{"q": "one?", "a": "Apple"}'),
        (SINGLE.replace("sample.q", "1 / sample.n") + EQUAL, {"n": 0, "a": "Apple"}, '{"n": 0, "a": "Apple"}'),
        (SINGLE.partition("        - {role: system")[0] + '        - {role: user, content: "{{ sample.q }}"}\n' + EQUAL, ROWS[0], "one?"),
    ],
)  # fmt: skip
def test_the_input_is_the_first_question_or_the_row(
    tmp_path: Path, task: str, row: dict[str, Any], asked: str
) -> None:
    (sample,) = planned(tmp_path, task, row)
    assert (sample.input, sample.target) == (asked, "Apple")


def test_a_recorded_conversation_is_shown_without_its_answer(aigo: Run, tmp_path: Path) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        kind = {"assistant": {"type": "output_text", "annotations": []}}.get(role, {"type": "input_text"})
        return {
            "type": "message",
            "id": "",
            "status": "completed",
            "role": role,
            "content": [{**kind, "text": text}],
        }

    trace = [said("system", "s"), said("user", "u"), said("assistant", "Apple"), said("user", "more")]
    run(aigo, tmp_path, RECORDED + EQUAL, {"trace": trace, "a": "Apple"}, {"trace": "broken", "a": "x"})
    _, (first, second) = samples_of(tmp_path)
    assert not isinstance(first.input, str)
    assert [(message.role, message.text) for message in first.input] == [("system", "s"), ("user", "u")]
    assert second.input == '{"trace": "broken", "a": "x"}'


@pytest.mark.parametrize(
    ("truth", "target"),
    [
        ("{{ sample.none }}", ""),
        ("{{ solver_output.output }}", ""),
        ("{{ sample.a }}!", "Apple!"),
        ("yes", "yes"),
    ],
)
def test_the_target_comes_from_the_row_or_is_empty(tmp_path: Path, truth: str, target: str) -> None:
    task = SINGLE + EQUAL.replace("{{ sample.a }}", truth)
    (sample,) = planned(tmp_path, task, {"q": "x", "a": "Apple", "none": None})
    assert sample.target == target


def test_task_records_have_targets(tmp_path: Path) -> None:
    records = [record(task_id="a", targets=["41"]), record(task_id="b", targets=["x", "y"])]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))

    samples = native_samples(aigo_bridge.plan_task(path))

    assert [sample.target for sample in samples] == ["41", ["x", "y"]]
    assert "17 + 24" in str(samples[0].input)


def test_failed_scorers_have_an_explanation(aigo: Run, tmp_path: Path) -> None:
    run(
        aigo,
        tmp_path,
        SINGLE + EQUAL.replace("sample.a", "sample.none"),
        {"q": "x", "a": "Apple", "none": None},
        **MODEL,
    )
    _, (sample,) = samples_of(tmp_path)
    score = (sample.scores or {})["equal"]
    assert math.isnan(score.value)  # type: ignore[arg-type]
    assert score.answer == "Apple"
    assert "is null in this sample" in str(score.explanation)


def test_metrics_for_the_viewer_include_trials_and_action_rules(aigo: Run, tmp_path: Path) -> None:
    more = (
        "  trials: {num_trials: 2}\n  actions:\n    - key: out\n      action: exclude_from_metrics\n"
        '      filter: {op: equals, expression: "{{ sample.q }}", value: "three?"}\n'
    )
    done = run(aigo, tmp_path, SINGLE + EQUAL + more, **MODEL)
    assert done.code == 0, done.err
    log, samples = samples_of(tmp_path)
    assert sum(sample.scores["equal"].value for sample in samples if sample.scores) == 2.0  # type: ignore[misc]
    row = evals_df(log).iloc[0]
    assert (row["score_equal_accuracy"], row["score_equal_stderr"]) == (0.5, 0.5)
    reductions = read_eval_log(log).reductions or []
    assert [each.value for each in reductions[0].samples] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "outcome",
    [
        Score({"is_correct": 1.0}, {"a": 1}),
        Score({"label": "x"}),
        Score({"x": True}),
        Score({"x": 3, "y": "z"}, {"k": [1]}),
        Score({"x": None}),
        Score({"x": [1]}),
        Score({}),
        Score({"x": 1}, {"aigo_bridge": {"name": "mine"}}),
        Score({"name": 1.5, "values": 2}),
    ],
)
def test_stored_scores_equal_the_originals(outcome: Score) -> None:
    fields = orjson.loads(orjson.dumps(score_fields(outcome, "said")))
    assert outcomes_of(fields) == {None: outcome}


def test_scores_of_older_logs_are_read() -> None:
    """Older logs store every value under its name."""
    assert outcomes_of({"value": {"is_correct": 1.0}, "metadata": {"a": 1}}) == {
        None: Score({"is_correct": 1.0}, {"a": 1})
    }
    failed = SampleFailure("score", "E", "why")
    assert outcomes_of(score_fields(failed)) == {None: failed}
    assert with_name({"value": {"x": 1}, "metadata": None}) == {"value": {"x": 1}, "metadata": None}


def test_an_older_log_gives_the_same_evidence(aigo: Run, tmp_path: Path) -> None:
    """An older log of the same run has the row as input, no target, and values under their names."""
    run(aigo, tmp_path, SINGLE + EQUAL, **MODEL)
    (log,) = (tmp_path / "out").glob("*.eval")
    from inspect_ai.log import write_eval_log

    native = read_eval_log(str(log))
    for sample in native.samples or []:
        sample.input, sample.target = json.dumps(sample.metadata), ""
        score = (sample.scores or {})["equal"]
        score.value = {"is_correct": score.value}  # type: ignore[dict-item]
        score.answer = score.explanation = None
        score.metadata = {
            name: value for name, value in (score.metadata or {}).items() if name != "aigo_bridge"
        }
    older = tmp_path / "older.eval"
    write_eval_log(native, str(older))

    write_result(read(older), tmp_path / "older.tasklog.json", engine="inspect")

    def scores(path: Path) -> Any:
        evidence = orjson.loads(path.read_bytes())["evidence"]
        trials = [trial for sample in evidence["samples"] for trial in sample["trials"]]
        return evidence["metrics"], [(trial["sample"], trial["scores"]) for trial in trials]

    assert scores(tmp_path / "older.tasklog.json") == scores(tmp_path / "out" / "t.tasklog.json")


def test_a_system_task_shows_zero_model_calls(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "key: s\ndisplay_name: S\ndescription: ''\ndefinition:\n  type: system_task\n  compute_evidence_snippet: |\n"
        "    def compute_evidence():\n        return {'metrics': {'one': {'value': 1.5}}}\n"
    )
    done = aigo("run", "s.yaml", "--out", "out")
    assert done.code == 0, done.out + done.err
    _, (sample,) = samples_of(tmp_path)
    assert sample.input == "(no model call: the task's own code computes its metrics)"


def test_unusual_single_score_values_are_restored(aigo: Run, tmp_path: Path) -> None:
    """These are infinity, texts that Inspect converts to numbers, and integers beyond its floats."""
    kept = {"float('inf')": None, "float('nan')": None, "2**70": 2**70, "'C'": "C", "None": None}
    scorer = (
        "  scorers:\n    - type: python\n      key: odd\n      metrics: [{type: frequency, field: x}]\n      compute_scores_snippet: |\n"
        f"        def compute_scores(sample, solver_output):\n            return {{'x': [{', '.join(kept)}][sample['n']]}}\n"
    )
    run(aigo, tmp_path, SINGLE + scorer, *({"q": "?", "n": number} for number in range(len(kept))), **MODEL)
    samples = json.loads((tmp_path / "out" / "t.tasklog.json").read_text())["evidence"]["samples"]
    for sample, (value, expected) in zip(samples, kept.items(), strict=True):
        (score,) = sample["trials"][0]["scores"]
        assert score["values"] == {"x": expected}, value
        assert score.get("metadata", {}).get("not_finite") == ({"x": "inf"} if "inf" in value else None)
