"""For every engine, facts alone decide whether a job is new, resumed, complete or a rescoring."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import EarlierRuns, Job, RunSettings
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.execution.earlier_runs import EarlierLogs, EarlierRun
from aigo_bridge.execution.jobs import (
    PlannedJob,
    earlier_runs,
    make_folder,
    make_models,
    start_jobs,
)
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {{key: d}}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]}}
  scorers:
    - {{type: string_equals, ground_truth: {truth}, value: x}}
"""
MODELS = {"": "a/b"}


def make(folder: Path, truth: str = "x") -> TaskPlan:
    folder.mkdir(exist_ok=True)
    (folder / "d.jsonl").write_text('{"q": "one"}\n{"q": "two"}\n')
    (folder / "t.yaml").write_text(TASK.format(truth=truth))
    return replace(plan(PlanOrigin(task=str(folder / "t.yaml"))), fingerprints={"": "now"})


@pytest.fixture
def made(tmp_path: Path) -> TaskPlan:
    return make(tmp_path / "task")


def logged(
    of: TaskPlan, path: str = "old.log", finished: int = 2, **facts: Any
) -> tuple[EarlierRun, int | None]:
    """Return an earlier run with the given number of finished trials."""
    standard = {"status": "success", "models": MODELS, "limits": (None, None, None)}
    return EarlierRun(Path(path), of.header(), **{**standard, **facts}), finished


def start(
    job: TaskPlan,
    earlier: EarlierRuns,
    *runs: tuple[EarlierRun, int | None],
    models: Mapping[str, str] = MODELS,
    **options: Any,
) -> PlannedJob[str]:
    counts = {run.path: count for run, count in runs}

    def count(run: EarlierRun, plan: TaskPlan) -> int:
        found = counts[run.path]
        if found is None:
            raise EvidenceError("it cannot be read", code=Code.UNREADABLE_LOG)
        return found

    logs = EarlierLogs(
        lambda out: [run for run, _ in runs],
        count,
        lambda run, plan: (f"trials of {run.path}", count(run, plan)),
    )
    settings = RunSettings(Path("out"), **options)
    (started,) = start_jobs([Job(job, "a/b", earlier=earlier)], [models], settings, logs)
    return started


def test_earlier_runs_are_ignored_unless_requested(made: TaskPlan) -> None:
    assert start(made, "ignore", logged(made)).earlier is None


def test_finished_run_is_complete(made: TaskPlan) -> None:
    for earlier in ("resume", "reuse"):
        started = start(made, earlier, logged(made))
        assert (started.is_complete, started.num_finished, started.finished) == (True, 2, None)
        ref = started.log_ref("any", Path("old.log"))
        assert (ref.earlier, ref.reused, ref.replayed) == (ref.path, 2, False)


@pytest.mark.parametrize(("status", "finished"), [("success", 1), ("cancelled", 2), ("started", 0)])
def test_an_unfinished_run_is_resumed(made: TaskPlan, status: str, finished: int) -> None:
    started = start(made, "resume", logged(made, finished=finished, status=status))
    assert (started.is_complete, started.num_finished) == (False, finished)
    assert started.finished == "trials of old.log"


def test_newest_readable_run_is_used(made: TaskPlan) -> None:
    newest, older = logged(made, "new.log", 1), logged(made, "old.log", 2)
    assert start(made, "resume", newest, older).earlier == Path("new.log")
    unreadable = (newest[0], None)
    assert start(made, "resume", unreadable, older).earlier == Path("old.log")
    assert start(made, "resume", unreadable).earlier is None


@pytest.mark.parametrize(
    "facts", [{"models": {"": "a/c"}}, {"models": {"": "a/b", "judge": "a/c"}}, {"models": {}}]
)
def test_run_with_other_models_is_not_resumed(made: TaskPlan, facts: Any) -> None:
    assert start(made, "resume", logged(made, **facts)).earlier is None


def test_model_is_ignored_if_the_task_does_not_call_one(made: TaskPlan) -> None:
    assert start(made, "resume", logged(made), models={}).is_complete


def test_changed_model_is_reported_if_results_are_reused(made: TaskPlan) -> None:
    before = replace(made, fingerprints={"": "before"})
    started = start(made, "resume", logged(before))
    assert started.other_model
    assert started.fingerprints == {"": "now"}
    assert started.plan.fingerprints[""] not in ("now", "before")
    assert not start(made, "resume", logged(before, finished=0)).other_model
    assert start(made, "reuse", logged(before)).earlier is None


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({"status": "cancelled"}, {}),
        ({}, {"time_limit": 5}),
        ({"limits": (None, 7, None)}, {}),
    ],
)
def test_only_a_finished_run_with_the_same_limits_is_reused(made: TaskPlan, facts: Any, options: Any) -> None:
    assert start(made, "reuse", logged(made, **facts), **options).earlier is None
    assert start(made, "resume", logged(made, **facts), **options).earlier == Path("old.log")


def test_uncacheable_run_is_not_reused(made: TaskPlan) -> None:
    assert start(made, "reuse", logged(replace(made, cache="no-cache"))).earlier is None


def test_outputs_of_the_same_solver_are_rescored(made: TaskPlan, tmp_path: Path) -> None:
    other = make(tmp_path / "other", truth="y")
    started = start(made, "reuse", logged(other))
    assert (started.replay, started.earlier) == (Path("old.log"), None)
    ref = started.log_ref("any", Path("new.log"))
    assert (ref.replayed, ref.earlier, ref.reused) == (True, Path("old.log"), 0)
    assert start(made, "resume", logged(other)).replay is None
    assert start(made, "reuse", logged(replace(other, fingerprints={"": "before"}))).replay is None


def test_logs_are_searched_newest_first_and_other_files_are_skipped(made: TaskPlan, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("old", "new", "foreign", "broken", "no-plan")]
    for age, path in enumerate(paths):
        path.touch()
        os.utime(path, (age % 2, age % 2))

    def head(path: Path) -> EarlierRun | None:
        if path.name == "broken":
            raise KeyError("status")
        header = {} if path.name == "no-plan" else made.header()
        return None if path.name == "foreign" else EarlierRun(path, header, "success", {}, ())

    assert [run.path.name for run in earlier_runs(paths, head, (KeyError,))] == ["new", "old"]


def test_each_model_is_created_once_and_all_failures_are_listed(made: TaskPlan) -> None:
    def model(name: str) -> list[str]:
        if name != "a/b":
            raise UsageError(f"no {name}")
        return [name]

    first, second = make_models([Job(made, "a/b"), Job(made, "a/b")], model)
    assert first.evaluated is second.evaluated
    assert first.names(str) == {"": "['a/b']"}
    with pytest.raises(UsageError, match=r"^no x\nno y$"):
        make_models([Job(made, "x"), Job(made, "y"), Job(made, "x")], model)
    with pytest.raises(UsageError, match="the task evaluates a model; choose one with --model"):
        make_models([Job(made)], model)


def test_uncreatable_output_folder_is_reported_with_its_option(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--out: .* cannot be used as a folder"):
        make_folder(tmp_path / "file" / "out")
