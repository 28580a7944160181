"""Conversion of a plan to an Inspect task, and the registered task through which Inspect loads AI GO task
files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary
from zipfile import BadZipFile

from anyio import to_thread
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as NativeSample
from inspect_ai.hooks import Hooks, TaskEnd, hooks
from inspect_ai.model import ChatMessage

from aigo_bridge.access.grants import granted, granting
from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Gap
from aigo_bridge.errors import BridgeError, SampleError, UnsupportedPlanError, UsageError
from aigo_bridge.evaluation.task import parse_config, plan
from aigo_bridge.execution.codec import Replay, replay_of
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.progress import ProgressCounter
from aigo_bridge.execution.solutions import Solution
from aigo_bridge.plan.logged_plan import LoggedPlan
from aigo_bridge.plan.plan import PlanOrigin, Sample, TaskPlan
from aigo_bridge.process.temporary import temporary_folder
from aigo_bridge.scoring.variables import right_answers
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.solving.registry import solver_type
from aigo_inspect.logs.shapes import HEADER_KEY
from aigo_inspect.logs.sources import local_path
from aigo_inspect.models.models import role_models
from aigo_inspect.models.registration import in_namespace
from aigo_inspect.models.requests import native_messages
from aigo_inspect.models.secrets import clean_logs_from_now_on
from aigo_inspect.running.agents import SandboxAgentRunner
from aigo_inspect.running.codec import store_numbers
from aigo_inspect.running.evidence import read
from aigo_inspect.running.hosted import hosted_scorers, hosted_solver, no_solver, system_scorer
from aigo_inspect.running.metrics import aigo_trials, trials_reducer
from aigo_inspect.sandbox import available, needs_sandbox
from aigo_inspect.sandbox.environment import SandboxCodeRunner, sandbox_of


@dataclass(frozen=True)
class BridgeRun:
    """A run that `aigo-bridge` started, not Inspect."""

    plan: TaskPlan
    """Existing plan, so that the registered task need not create it from the file again."""
    progress: ProgressCounter
    host: SnippetHost
    """Host for the author's code. The caller of the run closes it."""


_PLANNED: WeakValueDictionary[str, TaskPlan] = WeakValueDictionary()
"""Digest → plan of the tasks that this process created and still runs."""


def planned_here(logged: LoggedPlan) -> TaskPlan | None:
    """Return the plan that this process runs for a logged plan; `None` if this process does not run it."""
    return _PLANNED.get(logged.digest)


_RUN: ContextVar[BridgeRun | None] = ContextVar("run", default=None)


@contextmanager
def running(run: BridgeRun) -> Iterator[None]:
    """Make the registered task use a run in this block."""
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
    shard: str | None = None,
) -> Task:
    """Return an AI GO task file as an Inspect task.

    All arguments are plain values, so that Inspect can create the task again from its log (`inspect
    eval-retry`).

    Args:
        task: the task file (YAML, or JSONL task records), the name of a shipped task (`aigo_tasks/<name>`),
            or `<run file>#<task specification>`.
        config: values for the task parameters: a mapping, or text like `key=value,other=value`.
        dataset: dataset key → file: a mapping, or text like `key=file`.
        num_samples: maximum number of samples.
        subsampling: selection of samples: the first ones (`head`), or a reproducible random choice
            (`random`).
        model_map: AI GO model key → Inspect model, for judges: a mapping, or text like `key=provider/model`.
        root: folder that contains all files that the task may use [default: the project of the task].
        num_trials: number of trials [default: as the task defines].
        stored: result log whose samples and outputs are scored, in place of the task's dataset and new
            answers.
        reuse: log of an earlier run with the same solver, whose outputs are scored. Missing samples are
            solved.
        digest: expected digest of the plan. The task does not run if it differs.
        allow_bad_tasks: skip invalid records in a file of task records.
        shard: run only this part of the rows, for example `3/16`.

    Raises:
        SpecError: the task file is not valid.
        UsageError: the task has changed since the resumed run, or was created without a file.
    """
    run = _RUN.get()
    if run is None:
        clean_logs_from_now_on()
        origin = PlanOrigin(
            task=task,
            config=_pairs(config, "config"),
            datasets=_pairs(dataset, "dataset"),
            num_samples=num_samples,
            subsampling=subsampling,
            num_trials=num_trials,
            root=root,
            stored=stored,
            allow_bad_tasks=allow_bad_tasks,
            shard=shard,
        )
        task_plan = _planned(origin)
    else:
        task_plan = run.plan
    if digest is not None and task_plan.digest != digest:
        raise UsageError(
            f"task {task_plan.task.key!r} or its dataset has changed since this run began: its digest is"
            f" {task_plan.digest[:12]}, the run's was {digest[:12]}; start a new run",
            code=Code.CHANGED_SINCE,
        )
    progress = run.progress if run is not None else ProgressCounter(None, len(task_plan.samples))
    replay = replay_of(task_plan, _path(stored), _path(reuse), read)
    host = run.host if run is not None else None
    return native_task(task_plan, _pairs(model_map, "model_map"), progress, replay, host)


class InspectTasks:
    """Conversion of plans to Inspect tasks for programs that call Inspect themselves; see `NativeTasks`."""

    def gaps(self, task_plan: TaskPlan) -> tuple[Gap, ...]:
        """Return no gaps, because the engine runs the same Inspect task."""
        return ()

    def translate(self, task_plan: TaskPlan, model_map: Mapping[str, str]) -> Task:
        """Return the Inspect task. Its samples show the question and the expected answer."""
        clean_logs_from_now_on()
        return native_task(task_plan, model_map, ProgressCounter(None, len(task_plan.samples)))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _planned(origin: PlanOrigin) -> TaskPlan:
    """Return the plan for a run of Inspect's own command line. Rows are fetched as in `aigo-bridge run`."""
    if origin.unsaved:
        raise UsageError(
            f"the {' and '.join(origin.unsaved)} of the run were set in Python, so the log "
            "has only a part of the task; continue with aigo_bridge.run(…, resume=True)",
            code=Code.CHANGED_SINCE,
        )
    config = parse_config(origin.task, origin.config, root=origin.root)
    with granting(replace(granted(), network=True)):
        return plan(replace(origin, config=config))


def native_task(
    task_plan: TaskPlan,
    model_map: Mapping[str, str],
    progress: ProgressCounter,
    replay: Replay | None = None,
    host: SnippetHost | None = None,
) -> Task:
    """Return the Inspect task that runs a plan. Its metadata contains the plan for readers of the log.

    Without a `host`, the task creates one for the author's code. Its workers end with this process at the
    latest.
    """
    host = host or snippet_host(task_plan)
    _PLANNED[task_plan.digest] = task_plan
    if _RUN.get() is None and task_plan.outline.needs_code:
        store_numbers_from_now_on(planned_here)
    if task_plan.entity == "system":
        return _system_task(task_plan, progress, host)
    runs_code = needs_sandbox(task_plan)
    program = compile_program(
        task_plan,
        host,
        code_runner=SandboxCodeRunner() if runs_code else None,
        agent_runner=SandboxAgentRunner() if task_plan.runs_tools else None,
    )
    models = role_models(model_map)
    solutions: dict[str, Solution] = {}
    return Task(
        name=task_plan.name,
        display_name=task_plan.display_name,
        dataset=MemoryDataset(
            native_samples(task_plan),
            name=task_plan.dataset.key if task_plan.dataset is not None else None,
        ),
        solver=hosted_solver(program, models, progress, solutions, replay),
        scorer=hosted_scorers(program, models, progress, solutions) or None,
        # Needed even for one trial, because Inspect's default reducer converts labels to 0.0.
        epochs=Epochs(task_plan.num_trials, trials_reducer(task_plan)),
        fail_on_error=False,
        sandbox=sandbox_of(available()[0], task_plan) if runs_code else None,
        metadata={HEADER_KEY: task_plan.header()},
        tags=list(task_plan.tags) or None,
    )


def _system_task(task_plan: TaskPlan, progress: ProgressCounter, host: SnippetHost) -> Task:
    """Return the Inspect task of a system task: one sample without a question, whose scorer runs the author's
    code.
    """
    return Task(
        name=task_plan.name,
        display_name=task_plan.display_name,
        dataset=MemoryDataset(native_samples(task_plan), name=task_plan.task.key),
        solver=no_solver(),
        scorer=[system_scorer(task_plan, progress, host)],
        epochs=Epochs(1, aigo_trials()),
        fail_on_error=False,
        metadata={HEADER_KEY: task_plan.header()},
        tags=list(task_plan.tags) or None,
    )


def _pairs(written: Mapping[str, Any] | str | None, name: str) -> dict[str, Any]:
    """Return a mapping from a mapping, its JSON text, or `key=value,key=value`."""
    if written is None or written == "":
        return {}
    if isinstance(written, Mapping):
        return dict(written)
    if written.lstrip().startswith("{"):
        try:
            values = json.loads(written)
        except ValueError as error:
            raise UsageError(f"{name}: {written!r} is not JSON: {error}", code=Code.WRONG_OPTION) from error
        return dict(values)
    pairs: dict[str, str] = {}
    for part in written.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{name}: found {part!r}, expected key=value", code=Code.WRONG_OPTION)
        pairs[key.strip()] = value
    return pairs


# Samples. Evidence is read only from their metadata; input and target are for Inspect's viewer and tables.


NOTHING_ASKED = "(no model call: the task's own code computes its metrics)"


def native_samples(plan: TaskPlan) -> list[NativeSample]:
    """Return all samples of a plan."""
    if plan.entity == "system":
        return [
            NativeSample(id=sample.id, input=NOTHING_ASKED, metadata=dict(sample.data))
            for sample in plan.samples
        ]
    asked, answers = _asked(plan), right_answers(plan.benchmark.scorers)
    samples: list[NativeSample] = []
    for sample in plan.samples:
        right = answers(sample.data)
        target = right[0] if len(right) == 1 else list(right) or ""
        samples.append(
            NativeSample(id=sample.id, input=asked(sample), target=target, metadata=dict(sample.data))
        )
    return samples


def _asked(plan: TaskPlan) -> Callable[[Sample], str | list[ChatMessage]]:
    """Return a function for the first prompt of the evaluated model. If the prompt is only known during the
    run, it returns the row as JSON.
    """
    solver = plan.benchmark.solver
    opening = None if solver is None else solver_type(solver).opening(solver)
    if opening is None:
        return _row

    def asked(sample: Sample) -> str | list[ChatMessage]:
        try:
            messages = native_messages(opening(sample.data), "solver")
        except (SampleError, UnsupportedPlanError):
            return _row(sample)  # an error of the sample, or an input that is not a chat
        if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
            return messages[0].content
        return messages or _row(sample)

    return asked


def _row(sample: Sample) -> str:
    return json.dumps(dict(sample.data), ensure_ascii=False, default=str)


# Metrics of user code in logs of Inspect's own command line. As with `aigo-bridge run`, reading such a log
# then does not need the code.


_logger = logging.getLogger(__name__)


@cache
def store_numbers_from_now_on(planned_here: Callable[[LoggedPlan], TaskPlan | None]) -> None:
    """Store the metrics that user code computed in the log of every AI GO task that this process finishes.

    Args:
        planned_here: returns the plan in this process for a logged plan; `None` if the log belongs to another
            process.
    """

    @hooks(name="aigo_bridge_numbers", description="stores Python metrics in the log")
    class NumbersHook(Hooks):
        async def on_task_end(self, data: TaskEnd) -> None:
            """Store the metrics. A failure is logged and does not fail the evaluation."""
            path = local_path(data.log.location)
            if path is None or not path.endswith(".eval") or HEADER_KEY not in (data.log.eval.metadata or {}):
                return
            try:
                # In a thread, because reading a large log would block the other tasks of the event loop.
                await to_thread.run_sync(_store, Path(path), planned_here)
            except (BridgeError, OSError, BadZipFile) as error:
                _logger.warning("%s: Python metrics were not stored in the log: %s", path, error)


def _store(path: Path, planned_here: Callable[[LoggedPlan], TaskPlan | None]) -> None:
    from aigo_bridge.evaluation.writing import write_result

    evidence = read(path)
    plan = planned_here(evidence.plan)
    if plan is None or not plan.outline.needs_code:
        return
    with temporary_folder("aigo-numbers-") as folder:
        result = Path(folder, "numbers.tasklog.json")
        write_result(evidence, result, engine="inspect", own=plan, store=partial(store_numbers, path))
