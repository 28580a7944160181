"""The Inspect hook: any evaluation writes evidence if requested."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval_set, task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, Solver, TaskState, solver
from tests.support.commands import Run
from tests.support.forked import finished
from tests.support.inspect_logs import scripted as scripted_logs
from tests.support.loggers import heard

from aigo_bridge.dtypes import TaskResultLog
from aigo_inspect.benchmarks import hooks
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import import_file

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  trials: {num_trials: 2}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: '{{ sample.a }}'}
"""


def test_an_evaluation_writes_evidence_if_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "evidence"))
    log = scripted_logs.run("plain", tmp_path)
    (file,) = (tmp_path / "evidence").glob("*.tasklog.json")
    assert (
        TaskResultLog.model_validate_json(file.read_bytes()).model_dump()
        == import_log(log.location).model_dump()
    )


@pytest.mark.parametrize("fails", [False, True])
def test_an_aigo_bridge_run_keeps_its_own_evidence(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "evidence"))
    rows = [{"q": "France", "a": "Paris"}, {"q": "Atlantis", "a": "none"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(TASK)
    rules = [
        {"match": {"contains": "France"}, "reply": "Paris"},
        {"match": {"contains": "Atlantis"}, "reply": {"error": "no such place"} if fails else "none"},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out").code == int(fails)
    (file,) = (tmp_path / "evidence").glob("*.tasklog.json")
    assert json.loads(file.read_bytes()) == json.loads((tmp_path / "out" / "t.tasklog.json").read_bytes())
    # Without its origin, the log is imported like any other log.
    (log,) = (tmp_path / "out").glob("*.eval")
    result = import_file(log, tmp_path / "foreign")
    assert (result.exit_code, result.trials, result.failed) == (0, 4, int(fails))


def test_no_evidence_is_written_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(hooks.VARIABLE, raising=False)
    scripted_logs.run("plain", tmp_path)
    assert [file.suffix for file in tmp_path.iterdir()] == [".eval"]


def test_evidence_can_be_written_next_to_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hooks.VARIABLE, "log")
    scripted_logs.run("plain", tmp_path)
    assert len(list(tmp_path.glob("*.tasklog.json"))) == 1


def test_an_unwritable_folder_does_not_fail_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "file" / "evidence"))
    with heard(hooks.__name__, caplog, monkeypatch):
        assert scripted_logs.run("plain", tmp_path).status == "success"
    assert "evidence of" in caplog.text


# Failed, cancelled and retried tasks

FLAG = "AIGO_TEST_FAILS"


@solver
def fails_while_told_to() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if (flag := Path(os.environ[FLAG])).exists():
            if flag.read_text() == "once":
                flag.unlink()
            raise ValueError("no")
        return state

    return solve


@task
def doubtful() -> Task:
    return Task(dataset=[Sample("a", target="a", id=1)], solver=fails_while_told_to(), scorer=includes())


@solver
def does_nothing() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


def sound() -> Task:
    return Task(
        dataset=[Sample("a", target="a", id=1)], solver=does_nothing(), scorer=includes(), name="sound"
    )


@pytest.fixture
def evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "evidence"))
    monkeypatch.setenv(FLAG, str(tmp_path / "flag"))
    (tmp_path / "flag").write_text("always")
    return tmp_path / "evidence"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return every log whose evidence was written, once for each time."""
    found: list[str] = []
    real = hooks.write_evidence

    def write(log: str, folder: str) -> Any:
        found.append(log)
        return real(log, folder)

    monkeypatch.setattr(hooks, "write_evidence", write)
    return found


def outcomes(folder: Path) -> list[tuple[str, list[str]]]:
    """Return the task and the errors of each log that has evidence."""
    found = []
    for file in folder.glob("*.tasklog.json"):
        result = TaskResultLog.model_validate_json(file.read_bytes())
        found.append((str(result.specification.display_name), [e.error_type for e in result.errors]))
    return sorted(found)


OPTIONS: Any = {"model": "mockllm/model", "display": "none", "log_realtime": False}


def test_a_failed_task_writes_evidence_once(evidence: Path, written: list[str], tmp_path: Path) -> None:
    logs = run_eval([sound(), doubtful()], log_dir=str(tmp_path / "logs"), **OPTIONS)
    assert sorted(written) == sorted(log.location for log in logs)
    assert outcomes(evidence) == [("doubtful", ["EvaluationError"]), ("sound", [])]


@pytest.mark.parametrize(("how", "errors"), [("once", []), ("always", ["EvaluationError"])])
def test_an_eval_set_writes_evidence_of_its_last_attempts(
    how: str, errors: list[str], evidence: Path, written: list[str], tmp_path: Path
) -> None:
    (tmp_path / "flag").write_text(how)
    attempts: Any = {"retry_attempts": 1, "retry_wait": 0.01, "max_tasks": 1}
    _, logs = eval_set([doubtful(), sound()], log_dir=str(tmp_path / "logs"), **attempts, **OPTIONS)
    assert sorted(written) == sorted(log.location for log in logs)
    assert outcomes(evidence) == [("doubtful", errors), ("sound", [])]


RETRIED = """
import sys
from inspect_ai import Task, eval, eval_retry, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import solver

fails = [True]

@solver
def doubts():
    async def solve(state, generate):
        if fails.pop():
            raise ValueError("no")
        return state
    return solve

@task
def doubtful():
    return Task(dataset=[Sample("a", id=1)], solver=doubts())

options = {"log_dir": sys.argv[1], "display": "none", "log_realtime": False}
(failed,) = eval(doubtful(), model="mockllm/model", **options)
fails.append(False)
(again,) = eval_retry(failed, **options)
assert (failed.status, again.status) == ("error", "success")
"""

CANCELLED = """
import asyncio, os, signal, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.solver import solver

@solver
def interrupts(wanted):
    async def solve(state, generate):
        if wanted:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(600)
        return state
    return solve

tasks = [
    Task(dataset=[Sample("a", id=1)], name=name, solver=interrupts(name == "cancelled"))
    for name in ("sound", "cancelled")
]
eval(tasks, model="mockllm/model", log_dir=sys.argv[1], display="none", log_realtime=False, max_tasks=1)
"""


def evidence_of(program: str, folder: Path) -> list[tuple[str, list[str]]]:
    """Return the evidence of a program in a separate process, because a retry in Inspect changes asyncio."""
    environment = {
        **os.environ,
        "XDG_DATA_HOME": str(folder / "data"),
        hooks.VARIABLE: str(folder / "evidence"),
    }
    finished(["-c", program, folder / "logs"], env=environment)
    return outcomes(folder / "evidence")


def test_a_cancelled_task_writes_evidence(tmp_path: Path) -> None:
    assert evidence_of(CANCELLED, tmp_path) == [("cancelled", ["EvaluationCancelled"]), ("sound", [])]


def test_a_retried_task_has_evidence_of_both_logs(tmp_path: Path) -> None:
    assert evidence_of(RETRIED, tmp_path) == [("doubtful", []), ("doubtful", ["EvaluationError"])]
