"""Limits of a run and unusual data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]

SOLVER = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""


def write(folder: Path, definition: str, rows: list[dict[str, Any]], *rules: dict[str, Any]) -> None:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(SOLVER + definition)
    (folder / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))


def values(result: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{metric['scorer_key']}.{name}": value
        for metric in result["evidence"]["metrics"]
        for name, value in metric["values"].items()
    }


def errors(result: dict[str, Any]) -> dict[Any, list[tuple[str, str]]]:
    return {
        sample["sample_id"]: [
            (error["stage"], error["message"]) for trial in sample["trials"] for error in trial["errors"]
        ]
        for sample in result["evidence"]["samples"]
    }


YES = "  scorers:\n    - {type: string_equals, ground_truth: 'yes'}\n"


@pytest.mark.parametrize(
    ("limit", "slow", "message"),
    [
        (("--token-limit", 20), {"usage": {"input_tokens": 30, "output_tokens": 1}}, "token"),
        (("--time-limit", 1), {"delay": 30}, "time"),
    ],
)
def test_limit_ends_only_its_sample(
    aigo: Run, tmp_path: Path, result_of: Load, limit: tuple[object, ...], slow: dict[str, Any], message: str
) -> None:
    """The unsolved sample has no score, and the error names the limit."""
    write(
        tmp_path,
        YES,
        [{"q": "quick"}, {"q": "slow"}],
        {
            "match": {"contains": "quick"},
            "reply": {"text": "yes", "usage": {"input_tokens": 1, "output_tokens": 1}},
        },
        {"default": True, "reply": {"text": "yes", **slow}},
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out", *limit)

    assert done.code == 1, done.out
    assert "1 of 2 samples scored, 1 failed" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert values(result) == {"string_equals.accuracy": 1.0}
    found = errors(result)
    assert found[0] == []
    (stage, text), *others = found[1]
    assert (stage, others) == ("solver", [])
    assert message in text.lower()
    assert "limit" in text.lower()


@pytest.mark.usefixtures("snippet_workers")
def test_scoring_timeout_fails_only_its_sample(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """The error is at stage score; results of other scorers are kept."""
    write(tmp_path, "", [{"q": "x"}, {"q": "y"}])
    (tmp_path / "t.yaml").write_text("""key: t
display_name: T
description: ''
definition:
  scorers:
    - {type: string_equals, key: quick, ground_truth: x, value: "{{ sample.q }}"}
    - type: python
      key: endless
      compute_scores_snippet: |
        import time
        def compute_scores(sample):
            time.sleep(60 if sample["q"] == "x" else 0)
            return {"s": 1.0}
""")

    done = aigo("run", "t.yaml", "--dataset", "d=d.jsonl", "-o", "out", "--time-limit", 8)

    assert done.code == 1
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    message = "scorer 'endless': the time limit of the sample was exceeded; scoring may take half of it (4 s)"
    assert errors(result) == {0: [("score", message)], 1: []}
    assert values(result) == {"quick.accuracy": 0.5, "endless.s_mean": 1.0}


def test_infinite_score_is_null_with_its_value_as_text(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """JSON has no infinity. The score is excluded from the mean with a note; frequencies count it by name."""
    write(tmp_path, "", [{"v": 1.0}, {"v": 2.0}])
    (tmp_path / "t.yaml").write_text("""key: t
display_name: T
description: ''
definition:
  scorers:
    - type: python
      key: s
      metrics: [{type: mean, field: v}, {type: frequency, field: v}]
      compute_scores_snippet: |
        def compute_scores(sample):
            return {"v": float("-inf") if sample["v"] == 2.0 else sample["v"]}
""")

    done = aigo("run", "t.yaml", "--dataset", "d=d.jsonl", "-o", "out")

    assert done.code == 1
    assert "'v' has the value -inf, expected a finite number" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    first, second = (sample["trials"][0]["scores"][0] for sample in result["evidence"]["samples"])
    assert (first["values"], first.get("metadata")) == ({"v": 1.0}, None)
    assert (second["values"], second["metadata"]) == ({"v": None}, {"not_finite": {"v": "-inf"}})
    assert values(result) == {"s.v_1.0": 0.5, "s.v_-inf": 0.5}


def test_run_with_one_sample_has_its_metric(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    write(tmp_path, YES, [{"q": "?"}], {"default": True, "reply": "yes"})

    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out").code == 0
    assert values(result_of(tmp_path / "out" / "t.tasklog.json")) == {"string_equals.accuracy": 1.0}


@pytest.mark.parametrize("rows", [[], [{"q": "a", "use": False}]])
def test_run_without_samples_is_refused(aigo: Run, tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """An empty dataset or filter result is reported before a model is called."""
    write(tmp_path, YES, rows)
    (tmp_path / "d.yaml").write_text(
        "key: d\ndisplay_name: D\nsource:\n  type: local\n  file_path: d.jsonl\n"
        "  filters: [{op: is_true, expression: '{{ sample.use }}'}]\n"
    )

    done = aigo(
        "run", "t.yaml", "--model", "scripted/m.jsonl", "--dataset", "d=d.jsonl" if not rows else "d=d.yaml"
    )

    assert done.code == 2
    assert "expected" in done.err


def test_columns_named_like_methods_are_rendered(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    names = ("items", "keys", "values", "get", "sample", "self", "a b", "Ümlaut")
    row = {"q": "?", **{name: f"<{name}>" for name in names}}
    wanted = "|".join(f"<{name}>" for name in names)
    shown = (
        "{{ sample.items }}|{{ sample.keys }}|{{ sample.values }}|{{ sample.get }}|{{ sample.sample }}"
        "|{{ sample.self }}|{{ sample['a b'] }}|{{ sample.Ümlaut }}"
    )
    write(
        tmp_path,
        f"  scorers:\n    - {{type: string_equals, value: {json.dumps(shown)}, ground_truth: {json.dumps(wanted)}}}\n",
        [row],
        {"default": True, "reply": "yes"},
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.err
    assert values(result_of(tmp_path / "out" / "t.tasklog.json")) == {"string_equals.accuracy": 1.0}


def test_all_score_types_and_scorers_with_equal_names_are_recorded(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    """Booleans count as 0 and 1, texts as labels, null and NaN as missing; unnamed scorers get unique keys."""
    write(
        tmp_path,
        """
  scorers:
    - type: python
      metrics:
        - {type: mean, field: passed, name: passed}
        - {type: mean, field: maybe, name: maybe}
        - {type: frequency, field: label}
      compute_scores_snippet: |
        def compute_scores(sample, solver_output):
            maybe = {"a": 0.5, "b": None, "c": float("nan")}[sample["q"]]
            return {"passed": sample["q"] != "a", "label": "good" if sample["q"] == "a" else "bad", "maybe": maybe}
    - {type: string_equals, ground_truth: 'yes'}
    - {type: string_equals, ground_truth: 'no'}
""",
        [{"q": "a"}, {"q": "b"}, {"q": "c"}],
        {"default": True, "reply": "yes"},
    )

    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out")

    assert done.code == 0, done.out + done.err
    found = values(result_of(tmp_path / "out" / "t.tasklog.json"))
    assert found["python.passed"] == pytest.approx(2 / 3)
    assert found["python.maybe"] == 0.5
    assert (found["python.label_good"], found["python.label_bad"]) == pytest.approx((1 / 3, 2 / 3))
    others = {key: value for key, value in found.items() if "equals" in key}
    assert sorted(others.values()) == [0.0, 1.0]
    assert len(others) == 2
