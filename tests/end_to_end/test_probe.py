"""`aigo-bridge probe` on results of real runs: a shipped task, and a judge with scripted replies."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, TASKS, Run

CAPITALS = REPOSITORY / "examples" / "capitals"

JUDGED = """key: judged
display_name: Judged
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - type: model_as_a_judge_scorer
      key: rating
      model_key: judge
      user_prompt: "Rate: {{ model_output }}"
      score_max: 10
"""


@pytest.fixture
def judged(aigo: Run, tmp_path: Path) -> Path:
    """Run with a judge that follows the instructions of the judged text."""
    (tmp_path / "judged.yaml").write_text(JUDGED)
    (tmp_path / "d.jsonl").write_text('{"q": "Oslo?"}\n{"q": "Rome?"}\n')
    (tmp_path / "m.jsonl").write_text(
        '{"match": {"contains": "Oslo"}, "reply": "A city by a fjord, and a capital."}\n'
        '{"default": true, "reply": "A city that was not built in a day."}\n'
    )
    (tmp_path / "j.jsonl").write_text(
        '{"match": {"contains": "{\\"score\\": 10}"}, "reply": "10"}\n'
        '{"match": {"regex": "(?i)city"}, "reply": "6"}\n'
        '{"default": true, "reply": "2"}\n'
    )
    done = aigo("run", "judged.yaml", "--model", "scripted/m.jsonl", "--model-map", "judge=scripted/j.jsonl")
    assert done.code == 0, done.err
    return tmp_path / "out" / "judged.tasklog.json"


def test_judge_is_probed_recorded_and_replayed(aigo: Run, tmp_path: Path, judged: Path) -> None:
    unasked = aigo("probe", "judged.yaml", judged)
    assert unasked.code == 3
    assert "rating (model_as_a_judge_scorer): not probed: no model was given for the judge" in unasked.out
    assert "no scorer was tested" in unasked.out

    options = ["--model-map", "judge=scripted/j.jsonl", "--record", "judge.cassette", "-o", "a.probe.json"]
    asked = aigo("probe", "judged.yaml", judged, *options)
    assert asked.code == 1, asked.err
    assert asked.out.splitlines()[-2] == (
        "6 of 30 reactions are wrong: other-answer, injection, injected-nothing"
    ), asked.out
    assert asked.out.splitlines()[-1] == "evidence  a.probe.json"
    assert "recorded 32 calls in judge.cassette" in asked.err

    (tmp_path / "j.jsonl").unlink()
    again = aigo("probe", "judged.yaml", judged, "--replay", "judge.cassette", "-o", "b.probe.json")
    assert again.code == 1, again.err
    assert again.err == "answered from judge.cassette: 32 calls\n"
    first, second = (json.loads((tmp_path / name).read_bytes()) for name in ("a.probe.json", "b.probe.json"))
    assert first.pop("models") == second.pop("models") == {"judge": "scripted/j.jsonl"}
    assert first == second


def test_replies_recorded_by_the_run_are_reported_as_insufficient(
    aigo: Run, tmp_path: Path, judged: Path
) -> None:
    run = ["run", "judged.yaml", "--model", "scripted/m.jsonl", "--model-map", "judge=scripted/j.jsonl"]
    assert aigo(*run, "--record", "run.cassette", "-o", "recorded").code == 0

    done = aigo("probe", "judged.yaml", judged, "--replay", "run.cassette", "--json", "--only", "lower-case")

    assert done.code == 3
    assert done.json["by_scorer"][0]["reasons"] == {"the judge's reply is not in the cassette": 2}


def test_probe_of_a_shipped_task_writes_evidence(aigo: Run, tmp_path: Path) -> None:
    model = f"scripted/{TASKS / 'winogrande' / 'answers.jsonl'}"
    assert aigo("run", "aigo_tasks/winogrande", "--model", model).code == 0
    result = tmp_path / "out" / "winogrande.tasklog.json"

    done = aigo("probe", "aigo_tasks/winogrande", result, "-o", "w.probe.json", "--limit", 5)

    assert done.code == 1
    assert done.err == ""
    assert done.out.startswith("winogrande: 5 answers of winogrande.tasklog.json, ")
    evidence = json.loads((tmp_path / "w.probe.json").read_bytes())
    assert evidence["evidence"] == "probe"
    assert evidence["result"]["sha256"] == hashlib.sha256(result.read_bytes()).hexdigest()
    provenance = json.loads(result.with_name("winogrande.provenance.json").read_bytes())
    assert evidence["result"]["sha256"] == provenance["result"]["sha256"]
    assert evidence["result"]["differences"] == []
    assert len(evidence["answers"]) == 5
    _check_sums(evidence)
    assert aigo("probe", "aigo_tasks/winogrande", result, "--limit", 5, "--json").json == evidence


def _check_sums(evidence: Any) -> None:
    """Check that the denominators are consistent."""
    totals, cases = evidence["totals"], evidence["cases"]
    verdicts = ("passed", "failed", "explained", "told")
    assert totals["probed"] == len(cases) == sum(totals[name] for name in verdicts) > 0
    for row in evidence["by_scorer"]:
        own = [
            case
            for case in cases
            if (case["scorer"], case["perturbation"]) == (row["scorer"], row["perturbation"])
        ]
        assert row["probed"] == len(own) == sum(row[name] for name in verdicts)
        assert row["failed"] == sum(case["verdict"] == "failed" for case in own)
        assert row["probed"] + row["not_applicable"] == len(evidence["answers"])
        assert sum(row["reasons"].values()) == row["not_applicable"]
    assert sum(row["not_applicable"] for row in evidence["by_scorer"]) == totals["not_applicable"]


def test_wrong_use_is_reported_and_nothing_is_written(aigo: Run, tmp_path: Path, judged: Path) -> None:
    cassette = tmp_path / "none.cassette"
    for options, words in (
        (["--model-map", "other=scripted/j.jsonl"], "no scorer of the task calls 'other'; they call 'judge'"),
        (["--record", "x.cassette"], "--record: no judge is called"),
        (
            ["--replay", cassette, "--model-map", "judge=x"],
            "--replay: calls that are answered from a cassette",
        ),
        (["--replay", cassette], "none.cassette"),
        (["-o", "x.json"], "expected a name that ends with .probe.json"),
        (["--only", "refusals"], "did you mean 'refusal'?"),
        (["--model-map", "judge=nobody/x", "--only", "unchanged"], "nobody"),
        (["--swap", "q=a"], "no column 'a'"),
    ):
        done = aigo("probe", "judged.yaml", judged, *options)
        assert (done.code, words in done.err) == (2, True), (options, done.err, done.out)
    gone = aigo("probe", "judged.yaml", "gone.tasklog.json")
    assert (gone.code, "does not exist" in gone.err) == (2, True)
    assert not list(tmp_path.glob("*.probe.json"))


def test_a_result_of_another_task_is_reported_next_to_the_table(
    aigo: Run, tmp_path: Path, judged: Path
) -> None:
    (tmp_path / "judged.yaml").write_text(JUDGED.replace("Rate:", "Grade:"))
    changed = aigo("probe", "judged.yaml", judged)
    assert "note: the task has changed since the result: " in changed.err
    assert "Rate:" in changed.err

    (tmp_path / "other.yaml").write_text(JUDGED.replace("key: judged", "key: other"))
    other = aigo("probe", "other.yaml", judged, "--json")
    assert "it belongs to task 'judged', not to 'other'" in other.err
    assert other.json["result"]["differences"] == ["it belongs to task 'judged', not to 'other'"]


def test_probe_of_a_system_task_is_refused(aigo: Run, tmp_path: Path) -> None:
    assert aigo("run", "aigo_tasks/governance-controls", "--allow", "network").code in (0, 1)
    done = aigo("probe", "aigo_tasks/governance-controls", "out/governance-controls.tasklog.json")
    assert (done.code, "without scorers to probe" in done.err) == (2, True)
