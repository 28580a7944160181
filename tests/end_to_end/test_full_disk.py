"""Files that do not fit on the disk are reported with their path and remaining content."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalError, read_eval_log
from tests.support.commands import Run
from tests.support.forked import finished
from tests.support.jobs import run_task

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.errors import EngineError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.writing import outcome_of
from aigo_bridge.execution.jobs import PlannedJob, identity_of
from aigo_bridge.plan.plan import PlanOrigin
from aigo_inspect.running.run import _engine_errors, _result

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: x}
"""


LIMITED = """import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))  # as a full disk
from aigo_bridge.cli import main
main()"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.jsonl").write_text('{"q": "1"}\n{"q": "2"}\n')
    (tmp_path / "t.yaml").write_text(TASK)
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": "x"}\n')
    return tmp_path / "t.yaml"


def test_full_disk_for_the_native_log_is_reported(task: Path, tmp_path: Path) -> None:
    """The log is truncated after its beginning; only the engine object has the reason."""
    engine = load_engine("inspect")
    made = plan(PlanOrigin(task=str(task)))
    whole = run_task(engine, made, tmp_path / "out", model="scripted/m.jsonl").native_log
    native = read_eval_log(str(whole), header_only=True)
    native.status, native.error = (
        "error",
        EvalError(message="OSError(28, 'No space left on device')", traceback="", traceback_ansi=""),
    )
    with zipfile.ZipFile(whole) as archive:
        start = archive.read("_journal/start.json")
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("_journal/start.json", start)

    ref = _result(PlannedJob(Job(made), {}), {identity_of(made.header()): native}, tmp_path / "out")

    assert isinstance(ref, LogRef)
    outcome = outcome_of(made, ref, engine, tmp_path / "out")
    assert outcome.error == "OSError(28, 'No space left on device')"
    assert (outcome.num_samples, outcome.num_missing) == (0, 2)
    assert not outcome.passed(2)


def test_unwritten_evidence_can_be_imported_later(
    aigo: Run, task: Path, tmp_path: Path, result_of: Callable[[Path], dict[str, Any]]
) -> None:
    (tmp_path / "out" / "t.tasklog.json").mkdir(parents=True)

    done = aigo("run", task, "--model", "scripted/m.jsonl")

    assert done.code == 1
    assert "out/t.tasklog.json: error: the evidence cannot be written: Is a directory" in done.err
    assert "[AB713]" in done.err
    (log,) = (tmp_path / "out").glob("*.eval")
    assert "hint: the engine log is complete; free some space, then run: aigo-bridge import " in done.err
    assert f"{log.name} --out out" in done.err
    assert aigo("import", log, "--out", "later").code == 0
    (later,) = (tmp_path / "later").rglob("*.tasklog.json")
    assert [metric["values"] for metric in result_of(later)["evidence"]["metrics"]] == [{"accuracy": 1.0}]


@pytest.mark.parametrize(
    "cause", [OSError(28, "No space left on device"), sqlite3.OperationalError("disk full")]
)
def test_an_inspect_write_error_is_one_line(cause: Exception) -> None:
    with (
        pytest.raises(EngineError, match=r"Inspect cannot write its files: .*(No space|disk full)") as caught,
        _engine_errors(),
    ):
        raise ExceptionGroup("tasks", [ExceptionGroup("samples", [cause])])
    assert caught.value.code == Code.UNUSABLE_OUTPUT


def test_an_error_before_the_inspect_log_is_an_engine_error() -> None:
    with pytest.raises(EngineError, match="needs docker") as caught, _engine_errors():
        raise PrerequisiteError("[bold]needs docker[/bold]")
    assert (str(caught.value), caught.value.code) == ("needs docker", Code.FAILED_ENGINE)


def test_other_errors_of_inspect_are_not_hidden() -> None:
    with pytest.raises(ExceptionGroup), _engine_errors():
        raise ExceptionGroup("tasks", [ZeroDivisionError()])


def test_a_file_that_does_not_fit_on_the_disk_is_named(task: Path, tmp_path: Path) -> None:
    noise = "".join(chr(33 + number * number % 89) + str(number) for number in range(60_000))
    (tmp_path / "d.jsonl").write_text(json.dumps({"q": noise}) + "\n")
    run_task(load_engine("inspect"), plan(PlanOrigin(task=str(task))), tmp_path, model="scripted/m.jsonl")
    files = set(tmp_path.iterdir())

    for words in (
        "table t.tasklog.json --out rows.csv",
        "table t.tasklog.json --out rows.parquet",
        "export t.tasklog.json --to inspect-log --out logs",
        "export t.tasklog.json --to aigo --out folder",
    ):
        done = finished(["-c", LIMITED, *words.split()], cwd=tmp_path)

        assert done.returncode not in (0, 1), done.stderr
        assert f"{words.split()[-1]}: File too large [AB906]" in done.stderr
        assert set(tmp_path.iterdir()) == files
