"""`aigo-bridge score` scores stored outputs again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]

HEAD = """key: {key}
display_name: T
description: ''
definition:
  dataset: {{key: d}}
  trials: {{num_trials: 2}}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]}}
"""
EQUALS = "  scorers:\n    - {type: string_equals, ground_truth: '{{ sample.a }}'}\n"
LENGTH = """  scorers:
    - type: python
      key: length
      metrics: [{type: mean, field: letters}]
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            return {"letters": len(solver_output.output.choices[0].message.content)}
"""


@pytest.fixture
def first(aigo: Run, tmp_path: Path) -> Path:
    """Run with three samples in two trials: right, wrong and failed."""
    rows = [{"q": "France", "a": "Paris"}, {"q": "Norway", "a": "Oslo"}, {"q": "Atlantis", "a": "none"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(HEAD.format(key="t") + EQUALS)
    (tmp_path / "u.yaml").write_text(HEAD.format(key="u") + LENGTH)
    rules = [
        {"match": {"contains": "France"}, "reply": "Paris"},
        {"match": {"contains": "Norway"}, "reply": "Bergen"},
        {"match": {"contains": "Atlantis"}, "reply": {"error": "no such place"}},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "first")
    assert done.code == 1  # Atlantis
    # From here on, the model cannot be called.
    (tmp_path / "m.jsonl").unlink()
    (tmp_path / "d.jsonl").unlink()
    return tmp_path / "first"


def trials(result: dict[str, Any]) -> dict[Any, list[dict[str, Any]]]:
    return {sample["sample_id"]: sample["trials"] for sample in result["evidence"]["samples"]}


def scores(result: dict[str, Any]) -> dict[Any, list[Any]]:
    return {sample_id: [trial.get("scores") for trial in each] for sample_id, each in trials(result).items()}


def test_same_task_has_the_same_evidence_when_rescored(
    aigo: Run, tmp_path: Path, first: Path, result_of: Load
) -> None:
    done = aigo("score", "t.yaml", "first/t.tasklog.json", "-o", "second")

    assert done.code == 1
    assert "2 of 3 samples scored, 1 failed" in done.out
    assert "no such place" in done.out
    before, after = result_of(first / "t.tasklog.json"), result_of(tmp_path / "second" / "t.tasklog.json")
    assert scores(after) == scores(before)
    assert after["evidence"]["metrics"] == before["evidence"]["metrics"]
    assert after["specification"]["evaluated_entity"] == before["specification"]["evaluated_entity"]
    assert [trial["errors"] for trial in trials(after)[2]] == [trial["errors"] for trial in trials(before)[2]]
    old, new = trials(before)[1][1]["solver"]["output"], trials(after)[1][1]["solver"]["output"]
    assert new["trace"]["items"] == old["trace"]["items"]
    assert new["raw_outputs"] == old["raw_outputs"]
    assert new["direct_ios"] == old["direct_ios"]
    # New events follow the events of the first run.
    assert new["trace"]["events"][: len(old["trace"]["events"])] == old["trace"]["events"]
    assert len(new["trace"]["events"]) > len(old["trace"]["events"])
    assert "model_usage" not in after["execution"]


@pytest.mark.parametrize("pattern", ["*.tasklog.json", "*.eval"])
def test_stored_outputs_are_scored_with_other_scorers(
    aigo: Run, tmp_path: Path, first: Path, result_of: Load, pattern: str
) -> None:
    (log,) = first.glob(pattern)

    done = aigo("score", "u.yaml", log, "-o", "second", "--json", "--fail-on-error", 1)

    assert done.code == 0, done.err
    (summary,) = done.json
    assert summary["metrics"] == [
        {
            "scorer": "length",
            "key": "mean",
            "name": "letters_mean",
            "label": "letters_mean",
            "score": "letters",
            "reducer": None,
            "value": 5.5,
            "num_scored": 2,
            "problem": None,
            "interval": None,
            "standard_error": None,
            "method": None,
            "reason": "2 samples are too few for the interval of a mean; 10 are needed",
            "samples": {
                "scored": 2,
                "failed": 1,
                "excluded": 0,
                "unfinished": 0,
                "no_aggregate": 0,
                "no_value": 0,
                "unscored": 1,
                "trials": 4,
                "missing_trials": 0,
            },
            "bounds": None,
        }
    ]
    assert summary["samples"]["failed"] == 1


def test_rescored_log_is_rescored_again(aigo: Run, tmp_path: Path, first: Path) -> None:
    aigo("score", "t.yaml", "first/t.tasklog.json", "-o", "second")
    (log,) = (tmp_path / "second").glob("*.eval")

    done = aigo("score", "u.yaml", log, "-o", "third", "--json", "--fail-on-error", 1)

    assert done.code == 0, done.err
    assert done.json[0]["metrics"][0]["value"] == 5.5


def test_a_judge_sees_the_conversation(aigo: Run, tmp_path: Path, first: Path, result_of: Load) -> None:
    judge = """  scorers:
    - {type: model_as_a_judge_scorer, model_key: j, score_min: 0, score_max: 10, system_prompt: Judge.,
       user_prompt: "{{ messages[0].content }} {{ model_output.choices[0].message.content }}"}
"""
    (tmp_path / "v.yaml").write_text(HEAD.format(key="v") + judge)
    (tmp_path / "j.jsonl").write_text(
        '{"match": {"contains": "Norway Bergen"}, "reply": "{\\"score\\": 2}"}\n'
        '{"match": {"contains": "France Paris"}, "reply": "{\\"score\\": 10}"}\n'
    )

    done = aigo(
        "score", "v.yaml", "first/t.tasklog.json", "-o", "second", "--model-map", "j=scripted/j.jsonl"
    )

    assert "60 %" in done.out
    result = result_of(tmp_path / "second" / "v.tasklog.json")
    (asked,) = trials(result)[0][0]["scores"][0]["direct_ios"]
    assert "France Paris" in asked["direct_input"]["body"]


def test_several_logs_have_their_own_folders(aigo: Run, tmp_path: Path, first: Path) -> None:
    (first / "t.tasklog.json").rename(tmp_path / "a.tasklog.json")
    (tmp_path / "b.tasklog.json").write_bytes((tmp_path / "a.tasklog.json").read_bytes())

    done = aigo("score", "u.yaml", "a.tasklog.json", "b.tasklog.json", "-o", "o", "--fail-on-error", 1)

    assert done.code == 0, done.err
    assert sorted(path.parent.name for path in (tmp_path / "o").rglob("*.tasklog.json")) == ["a", "b"]
    twice = aigo("score", "u.yaml", "a.tasklog.json", "a.tasklog.json", "-o", "o2")
    assert twice.code == 2
    assert "same name" in twice.err


def test_unscorable_samples_are_reported(aigo: Run, tmp_path: Path, first: Path) -> None:
    missing = aigo("score", "t.yaml", "nowhere.tasklog.json")
    assert (missing.code, missing.err) == (
        2,
        "error: result log 'nowhere.tasklog.json' does not exist [AB803]\n",
    )

    (tmp_path / "bad.tasklog.json").write_text('{"evidence": ')
    assert aigo("score", "t.yaml", "bad.tasklog.json").code == 2

    (tmp_path / "w.yaml").write_text(HEAD.format(key="w") + EQUALS.replace("sample.a", "sample.b"))
    column = aigo("score", "w.yaml", "first/t.tasklog.json")
    assert column.code == 2
    assert "`sample.b` is not a column of the dataset" in column.err
    assert not (tmp_path / "out" / "w.tasklog.json").exists()


SPLIT = """    postprocessor:
      type: python
      postprocess_snippet: |
        def postprocess(sample, solver_output):
            words = solver_output.output.choices[0].message.content.split()
            return [({**sample, "sample_id": word}, solver_output) for word in words]
"""


def test_row_made_in_some_trials_has_only_those_trials(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """It is not missing in the other trials: the post-processor never made it there."""
    (tmp_path / "d.jsonl").write_text('{"q": "x", "a": "x"}\n')
    (tmp_path / "t.yaml").write_text(HEAD.format(key="t") + SPLIT + LENGTH)
    rules = [{"match": {"contains": "x"}, "times": 1, "reply": "one two"}, {"default": True, "reply": "two"}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "first").code == 0

    done = aigo("score", "t.yaml", "first/t.tasklog.json", "-o", "again")

    assert (done.code, "2 of 2 samples scored" in done.out) == (0, True), done.err
    first, again = (result_of(tmp_path / name / "t.tasklog.json") for name in ("first", "again"))
    assert {row: len(each) for row, each in scores(first).items()} == {"one": 1, "two": 2}
    assert scores(again) == scores(first)
    assert again["evidence"]["metrics"] == first["evidence"]["metrics"]


def test_trial_without_post_processor_rows_has_no_scores(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    (tmp_path / "d.jsonl").write_text('{"q": "some", "a": "x"}\n{"q": "none", "a": "x"}\n')
    task = HEAD.format(key="t").replace("  trials: {num_trials: 2}\n", "") + SPLIT + LENGTH
    (tmp_path / "t.yaml").write_text(task)
    rules = [{"match": {"contains": "some"}, "reply": "one two"}, {"default": True, "reply": ""}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "first").code == 0
    assert aigo("score", "t.yaml", "first/t.tasklog.json", "-o", "again").code == 0
    first, again = (result_of(tmp_path / name / "t.tasklog.json") for name in ("first", "again"))
    assert scores(again) == scores(first)
    assert again["evidence"]["metrics"] == first["evidence"]["metrics"]
    assert first["evidence"]["metrics"][0]["values"] == {"letters_mean": 7.0}
