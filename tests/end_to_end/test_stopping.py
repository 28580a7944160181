"""`--fail-on-error`: a run that cannot succeed stops with a reason and can be resumed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion

Load = Callable[[Path], dict[str, Any]]
ENGINES = pytest.mark.parametrize("engine", ["inspect", "lighteval"])
SAMPLES = 30
AT_ONCE = 4


@pytest.fixture
def server(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Server that refuses every key, with a task of thirty questions."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    endpoint.answer = lambda _: (
        401,
        {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}},
    )
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(SAMPLES)))
    (tmp_path / "task.yaml").write_text(TASK)
    return endpoint


TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""
MODEL = ("--model", "openai-api/local/m", "--max-connections", AT_ONCE, "--max-samples", AT_ONCE)


@ENGINES
@pytest.mark.parametrize(("tolerance", "number"), [("0", 0), ("5", 5), ("0.1", 3)])
def test_exceeded_error_tolerance_stops_the_run(
    aigo: Run, server: Endpoint, tmp_path: Path, result_of: Load, engine: str, tolerance: str, number: int
) -> None:
    """A proportion refers to all samples; calls in progress finish, and no new ones start."""
    done = aigo("run", "task.yaml", *MODEL, "--engine", engine, "--fail-on-error", tolerance)

    assert done.code == 1
    failed = len(server.requests)
    assert number < failed <= number + AT_ONCE
    reason = f"stopped: {failed} sample{'s' * (failed > 1)} failed, --fail-on-error tolerates {number}"
    assert f"the run did not finish ({reason}); continue it with --resume [AB618]" in done.out
    assert f"{SAMPLES - failed} missing" in done.out
    result = result_of(tmp_path / "out" / "t.tasklog.json")
    assert result["status"] == "failure"
    assert reason in result["errors"][0]["message"]
    assert len(result["evidence"]["samples"]) == failed


@ENGINES
def test_a_stopped_run_is_resumed(aigo: Run, server: Endpoint, engine: str) -> None:
    run = ("run", "task.yaml", *MODEL, "--engine", engine, "--fail-on-error", "3", "--json")

    def half(body: Any) -> Any:
        asked = len(server.requests)
        return (200, completion("yes")) if asked <= 20 else (401, {"error": {"message": "Incorrect API key"}})

    server.answer = half
    assert aigo(*run).json["status"] == "error"
    server.requests.clear()
    server.answer = lambda _: (200, completion("yes"))

    done = aigo(*run, "--resume")

    assert done.code == 0
    assert done.json["samples"]["reused"] == 20
    assert done.json["samples"]["scored"] == SAMPLES
    assert len(server.requests) == SAMPLES - 20


@ENGINES
def test_run_without_fail_on_error_is_not_stopped(aigo: Run, server: Endpoint, engine: str) -> None:
    """A warning is printed early, and the error is reported once."""
    done = aigo("run", "task.yaml", *MODEL, "--engine", engine)

    assert done.code == 1
    assert len(server.requests) == SAMPLES
    assert done.err.count("Incorrect API key provided") == 2
    assert "all 5 samples so far failed with this error. Ctrl-C stops" in done.err
    # Which of them fails first is chance: they are asked at the same time.
    assert re.search(rf"^{SAMPLES - 1} more with the same error as: sample \d+", done.err, re.MULTILINE)
    assert done.out.count("Incorrect API key provided") == 1
    assert f"(and {SAMPLES - 1} more samples)" in done.out


@ENGINES
def test_error_tolerance_applies_to_each_specification(
    aigo: Run, server: Endpoint, tmp_path: Path, engine: str
) -> None:
    """A stopped specification does not affect the others."""
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    (tmp_path / "run.yaml").write_text(
        """
evaluation:
  key: e
  display_name: E
  task_specifications:
    - {key: bad, task_key: t, model_key: bad}
    - {key: good, task_key: t, model_key: good}
tasks:
  - $ref: task.yaml
"""
    )

    done = aigo(
        "run", "run.yaml", "--model-map", "bad=openai-api/local/m", "--model-map", "good=scripted/yes.jsonl",
        "--max-samples", AT_ONCE, "--max-connections", AT_ONCE, "--engine", engine, "--fail-on-error", "0.1", "--json",
    )  # fmt: skip

    bad, good = done.json["results"]
    assert (bad["status"], good["status"]) == ("error", "success")
    assert 3 < bad["samples"]["failed"] <= 3 + AT_ONCE
    assert bad["problem"].startswith("stopped: ")
    assert good["samples"]["scored"] == SAMPLES


def test_failed_scorers_and_trials_count_as_samples(aigo: Run, server: Endpoint, tmp_path: Path) -> None:
    """A sample has failed if all its trials have failed."""
    (tmp_path / "task.yaml").write_text(
        TASK + "    - {type: model_as_a_judge_scorer, key: j, model_key: j, user_prompt: '{{ sample.q }}'}\n"
    )
    (tmp_path / "yes.jsonl").write_text('{"default": true, "reply": "yes"}\n')

    done = aigo(
        "run", "task.yaml", "--model", "scripted/yes.jsonl", "--model-map", "j=openai-api/local/m", "--num-trials", 3,
        "--max-samples", AT_ONCE, "--fail-on-error", "2", "--json",
    )  # fmt: skip

    assert done.json["status"] == "error"
    assert 2 * 3 < len(server.requests) <= 2 * 3 + AT_ONCE


def test_benchmarks_of_inspect_are_stopped_and_resumed(aigo: Run, server: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        f"""
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def t():
    return Task([Sample(f"q{{n}}", target="yes") for n in range({SAMPLES})], solver=generate(), scorer=includes())
"""
    )
    run = ("run", "inspect:own.py", *MODEL, "--fail-on-error", "0.1", "--json")

    (stopped,) = aigo(*run).json

    assert 3 < len(server.requests) <= 3 + AT_ONCE
    assert stopped["status"] == "error"
    assert stopped["error"].startswith("stopped: ")
    assert stopped["samples"]["missing"] == SAMPLES - len(server.requests)
    assert stopped["samples"]["stopped"] == 0
    server.answer = lambda _: (200, completion("yes"))
    done = aigo(*run, "--resume")
    assert done.code == 0, done.err
    assert done.json[0]["samples"]["scored"] == SAMPLES


def test_tasks_of_lighteval_are_stopped(aigo: Run, server: Endpoint, tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "answer": f"{n} #### {n}"} for n in range(SAMPLES)]
    (tmp_path / "rows").mkdir()
    for split in ("train", "test"):
        (tmp_path / "rows" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    done = aigo("run", "lighteval:gsm8k", "--data-dir", "rows", *MODEL, "--fail-on-error", "3", "--json")

    assert done.code == 1
    assert 3 < len(server.requests) <= 3 + AT_ONCE
    assert done.json[0]["status"] == "error"
    assert done.json[0]["error"].startswith("stopped: ")
