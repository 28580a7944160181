"""A plan as an Inspect task, and the registered task by which Inspect itself finds AI GO task files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.errors import UsageError
from aigo_bridge.evaluate import parse_config, plan
from aigo_bridge.plan import PlanOrigin, TaskPlan
from aigo_bridge.program import Solution, compile_program
from aigo_bridge.replaying import Replay, of_native_log, of_result_log
from aigo_inspect.evidence import read
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.mirrors import aigo_trials, trials_reducer
from aigo_inspect.models import role_models
from aigo_inspect.namespace import in_namespace
from aigo_inspect.native_inputs import native_samples
from aigo_inspect.sandbox import available, needs_sandbox
from aigo_inspect.sandbox.running import SandboxCodeRunner
from aigo_inspect.scorers import hosted_scorers, system_scorer
from aigo_inspect.solvers import hosted_solver, no_solver


@dataclass(frozen=True)
class Run:
    """A run that was started by `aigo-bridge`, not by Inspect."""

    plan: TaskPlan
    """Already made, so that the registered task need not make it again from the file."""
    progress: ProgressCounter


_RUN: ContextVar[Run | None] = ContextVar("run", default=None)


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Let the registered task be part of a run."""
    token = _RUN.set(run)
    try:
        yield
    finally:
        _RUN.reset(token)


@task(name="task")
@in_namespace
def aigo_task(
    task: str,
    config: dict[str, Any] | str | None = None,
    dataset: dict[str, str] | str | None = None,
    num_samples: int | None = None,
    subsampling: Literal["head", "random"] | None = None,
    model_map: dict[str, str] | str | None = None,
    root: str | None = None,
    num_trials: int | None = None,
    stored: str | None = None,
    reuse: str | None = None,
    digest: str | None = None,
    allow_bad_tasks: bool = False,
) -> Task:
    """An AI GO task file as an Inspect task.

    All arguments are plain, so that Inspect can make the task again from its log (`inspect eval-retry`).

    Args:
        task: the task file (YAML, or JSONL task records), the name of a shipped task (`aigo_tasks/<name>`), or `<run file>#<task specification>`.
        config: values for the task's parameters: a mapping, or text like `key=value,other=value`.
        dataset: data set key → file: a mapping, or text like `key=file`.
        num_samples: run on that many samples only.
        subsampling: which ones: the first (`head`), or a random choice (always the same).
        model_map: AI GO model key → Inspect model, for judges: a mapping, or text like `key=provider/model`.
        root: folder that files of the task may reach; its project by default.
        num_trials: another number of trials than the task says.
        stored: result log whose samples and outputs are scored, in place of the task's data set and the model's answers.
        reuse: log of an earlier run of the same solver, whose outputs are scored; what it lacks is solved.
        digest: refuse to run unless the plan has this digest.
        allow_bad_tasks: leave invalid records out, of a file of task records.

    Raises:
        SpecError: the task file is invalid.
        UsageError: the task has changed since the run that is being continued.
    """
    origin = PlanOrigin(
        task=task,
        config=parse_config(task, _pairs(config, "config"), root=root),
        datasets=_pairs(dataset, "dataset"),
        num_samples=num_samples,
        subsampling=subsampling,
        num_trials=num_trials,
        root=root,
        stored=stored,
        allow_bad_tasks=allow_bad_tasks,
    )
    run = _RUN.get()
    made = run.plan if run is not None else plan(origin)
    if digest is not None and made.digest != digest:
        raise UsageError(
            f"task {made.task.key!r} or its data set has changed since this run began: its digest is"
            f" {made.digest[:12]}, the run's was {digest[:12]}; start a new run"
        )
    progress = run.progress if run is not None else ProgressCounter(None, len(made.samples))
    replay = None
    if stored is not None:
        replay = of_result_log(Path(stored))
    elif reuse is not None:
        replay = of_native_log(Path(reuse), made, read)
    return native_task(made, _pairs(model_map, "model_map"), progress, replay)


def native_task(
    made: TaskPlan, model_map: Mapping[str, str], progress: ProgressCounter, replay: Replay | None = None
) -> Task:
    """The Inspect task that carries out a plan; its metadata holds the plan, so that the log can be read back alone."""
    if made.entity == "system":
        return _system_task(made, progress)
    runs_code = needs_sandbox(made)
    program = compile_program(made, code_runner=SandboxCodeRunner() if runs_code else None)
    models = role_models(model_map)
    solutions: dict[str, Solution] = {}
    return Task(
        name=made.name,
        display_name=made.display_name,
        dataset=MemoryDataset(
            native_samples(made),
            name=made.dataset.key if made.dataset is not None else None,
        ),
        solver=hosted_solver(program, models, progress, solutions, replay),
        scorer=hosted_scorers(program, models, progress, solutions) or None,
        # A reducer even for one trial: Inspect's default one turns labels into 0.0.
        epochs=Epochs(made.num_trials, trials_reducer(made)),
        fail_on_error=False,
        sandbox=available()[0] if runs_code else None,
        metadata={HEADER_KEY: made.header()},
        tags=list(made.tags) or None,
    )


def _system_task(made: TaskPlan, progress: ProgressCounter) -> Task:
    """A system task: one sample without a question, whose scorer runs the author's code."""
    return Task(
        name=made.name,
        display_name=made.display_name,
        dataset=MemoryDataset(native_samples(made), name=made.task.key),
        solver=no_solver(),
        scorer=[system_scorer(made, progress)],
        epochs=Epochs(1, aigo_trials()),
        fail_on_error=False,
        metadata={HEADER_KEY: made.header()},
        tags=list(made.tags) or None,
    )


def _pairs(given: Mapping[str, Any] | str | None, name: str) -> dict[str, Any]:
    """A mapping, its JSON text, or `key=value,key=value`."""
    if given is None or given == "":
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if given.lstrip().startswith("{"):
        try:
            found = json.loads(given)
        except json.JSONDecodeError as error:
            raise UsageError(f"{name}: {given!r} is not JSON: {error}") from error
        return dict(found)
    pairs: dict[str, str] = {}
    for part in given.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{name}: found {part!r}, expected key=value")
        pairs[key.strip()] = value
    return pairs
