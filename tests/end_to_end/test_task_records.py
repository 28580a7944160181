"""Task record files run unchanged: on both engines, with Inspect itself, with and without invalid lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.errors import SpecError
from aigo_bridge.jsonl_spec import fixture_file, metric_score, post_process, validate_file

Load = Callable[[Path], dict[str, Any]]

ANSWERS = f"scripted/{fixture_file('answers.jsonl')}"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Shipped records, except those that need a sandbox."""
    lines = fixture_file().read_text().splitlines()
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines if '"code_exec"' not in line))
    return path


def answer(prompt: str) -> str:
    """Return the scripted answer."""
    replies = [json.loads(line) for line in fixture_file("answers.jsonl").read_text().splitlines()]
    text: str = next(each["reply"]["text"] for each in replies if each["match"]["contains"] in prompt)
    return text


def test_both_engines_compute_the_scores_of_the_format(aigo: Run, records: Path, result_of: Load) -> None:
    done = aigo("run", records, "--engine", "inspect,lighteval", "--model", ANSWERS, "--json")

    assert done.code == 0, done.err
    assert done.json["parity"]["equal"] is True
    expected: dict[str, list[float]] = {}
    for task in validate_file(records)[0]:
        prediction = post_process(task.post_process, answer(task.prompt))
        score = metric_score(task.metric_name, prediction, task.targets)
        expected.setdefault(task.metric_name, []).append(score)
    for engine in ("inspect", "lighteval"):
        log = result_of(records.parent / "out" / engine / "records.tasklog.json")
        assert {
            name: value for each in log["evidence"]["metrics"] for name, value in each["values"].items()
        } == {name: pytest.approx(sum(scores) / len(scores)) for name, scores in expected.items()}
        assert log["specification"]["task"]["description"] == "8 tasks of records.jsonl"


def test_skipped_records_are_reported_counted_and_kept_in_the_evidence(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    lines = fixture_file().read_text().splitlines()
    (tmp_path / "t.jsonl").write_text(
        "\n".join([lines[0], "// the second is broken", lines[1][:-1], lines[2]])
    )

    refused = aigo("run", "t.jsonl", "--model", ANSWERS)
    assert refused.code == 2
    assert "t.jsonl:3:" in refused.err
    assert not (tmp_path / "out").exists()

    done = aigo("run", "t.jsonl", "--model", ANSWERS, "--allow-bad-tasks")
    assert done.code == 3
    assert "2 of 2 samples scored, 2 invalid and skipped" in done.out
    assert "t.jsonl:2:1: warning: not JSON" in done.err
    description = result_of(tmp_path / "out" / "t.tasklog.json")["specification"]["task"]["description"]
    assert description == "2 tasks of t.jsonl; 2 of 4 records are invalid and skipped"

    again = aigo("run", "t.jsonl", "--model", ANSWERS, "--allow-bad-tasks", "--resume", "--json")
    assert again.code == 3
    assert (
        again.json["samples"] | {"planned": 2, "scored": 2, "reused": 2, "invalid": 2}
        == again.json["samples"]
    )
    # Failed samples weigh more than records that were left out knowingly.
    (tmp_path / "silent.jsonl").write_text('{"default": true, "reply": {"error": "down"}}\n')
    failed = aigo("run", "t.jsonl", "--model", "scripted/silent.jsonl", "--allow-bad-tasks", "--out", "f")
    assert failed.code == 1


def test_inspect_eval_runs_task_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`inspect eval aigo_bridge/task -T task=t.jsonl -T allow_bad_tasks=true`."""
    from inspect_ai import eval as inspect_eval

    monkeypatch.chdir(tmp_path)
    lines = fixture_file().read_text().splitlines()
    (tmp_path / "t.jsonl").write_text("\n".join([*lines[:2], "{"]))

    def logs(**arguments: Any) -> list[Any]:
        return inspect_eval(
            "aigo_bridge/task",
            task_args={"task": "t.jsonl", **arguments},
            model=ANSWERS,
            log_dir="logs",
            display="none",
        )

    with pytest.raises(SpecError, match="1 of 3 records is invalid"):
        logs()
    (log,) = logs(allow_bad_tasks=True)
    assert log.status == "success"
    assert (log.eval.dataset.samples, log.results.completed_samples) == (2, 2)
    assert [scorer.name for scorer in log.results.scores] == ["task_metric"]
