"""What an engine makes of a plan: its gaps, its own objects, a run with evidence."""

from __future__ import annotations

import asyncio
import sys
import warnings
from asyncio.events import _set_running_loop
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

from aigo_bridge.access.mirrored import refuse_address
from aigo_bridge.api.planning import StrPath
from aigo_bridge.codes import Code
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Gap, Progress, RunSettings, earlier_runs
from aigo_bridge.engine.registry import EngineName, load_engine, require_exact, required
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.recordings import recorded_choice, refuse_tapes, run_tape
from aigo_bridge.evaluation.task import lone_job
from aigo_bridge.evaluation.task import run as run_job
from aigo_bridge.execution.permissions import confined
from aigo_bridge.plan.plan import CachePolicy, TaskPlan

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from lighteval.tasks.requests import Doc


def gaps(plan: TaskPlan, engine: EngineName | str = "inspect") -> tuple[Gap, ...]:
    """What an engine would do differently from the plan, or not at all; empty when everything is exact.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    assert aigo_bridge.gaps(plan, "lighteval") == ()
    ```

    Args:
        plan: from `plan_task`.
        engine: `inspect`, `lighteval`, or another engine that is installed.

    Returns:
        One `Gap` for each departure, with its `part` of the task, `reason`, `fidelity` and `hint`.

    Raises:
        UsageError: there is no such engine.
        MissingEngineError: its packages are not installed; the message has the command that installs them.
    """
    return tuple(load_engine(engine).gaps(plan))


@overload
def translate(
    plan: TaskPlan,
    engine: Literal["inspect"] = "inspect",
    *,
    model_map: Mapping[str, str] | None = None,
    allow_approximate: bool = False,
) -> InspectTask: ...
@overload
def translate(
    plan: TaskPlan,
    engine: Literal["lighteval"],
    *,
    model_map: Mapping[str, str] | None = None,
    allow_approximate: bool = False,
) -> list[Doc]: ...
@overload
def translate(
    plan: TaskPlan,
    engine: str,
    *,
    model_map: Mapping[str, str] | None = None,
    allow_approximate: bool = False,
) -> Any: ...
def translate(
    plan: TaskPlan,
    engine: EngineName | str = "inspect",
    *,
    model_map: Mapping[str, str] | None = None,
    allow_approximate: bool = False,
) -> Any:
    """The plan as an engine's own objects, for that engine's own functions.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    task = aigo_bridge.translate(plan)
    assert task.dataset[0].target == "Oslo"

    docs = aigo_bridge.translate(plan, "lighteval", allow_approximate=True)
    assert docs[0].choices[docs[0].gold_index] == "Oslo"
    ```

    Args:
        plan: from `plan_task`.
        engine: `inspect` gives an `inspect_ai.Task`, for `inspect_ai.eval`; its log is one that `import_logs`
            reads back as the evidence of the plan. `lighteval` gives a list of `Doc`, one for each sample:
            the question and the right answers, without the plan's scorers.
        model_map: AI GO model key → the engine's model, for judges of the task; in Inspect they can be model
            roles of the same names as well.
        allow_approximate: accept differences that `Fidelity.APPROXIMATE` stands for.

    Raises:
        UnsupportedPlanError: the engine's objects cannot say what the plan does; the message lists every gap.
        UsageError: there is no such engine, it translates nothing, or the task's code needs what it was not
            allowed.
        MissingEngineError: its packages are not installed.
    """
    chosen = load_engine(engine)
    tasks = required(chosen.capabilities.native_tasks, f"engine {engine!r} cannot translate tasks")()
    found = [*chosen.gaps(plan), *tasks.gaps(plan)]
    require_exact(found, engine=engine, allow_approximate=allow_approximate)
    return tasks.translate(confined(plan), dict(model_map or {}))


def run(
    plan: TaskPlan,
    model: str | None = None,
    *,
    model_map: Mapping[str, str] | None = None,
    engine: EngineName | str = "inspect",
    out: StrPath = "out",
    resume: bool = False,
    cache: CachePolicy = "update",
    record: StrPath | None = None,
    replay: StrPath | None = None,
    fail_on_error: float | None = None,
    allow_approximate: bool = False,
    max_connections: int | None = None,
    max_samples: int | None = None,
    attempt_timeout: int | None = None,
    time_limit: int | None = None,
    token_limit: int | None = None,
    cost_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run a plan and write its evidence, as `aigo-bridge run` does.

    It returns when the run has ended, also where an event loop is running, as in a notebook: the loop then
    waits. `await asyncio.to_thread(aigo_bridge.run, plan, …)` lets it go on.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    assert (outcome.num_samples, outcome.num_failed) == (4, 0)
    assert [(row.name, row.value) for row in outcome.metrics] == [("Accuracy", 0.75)]
    ```

    Args:
        plan: from `plan_task`.
        model: the evaluated model as the engine names it (`openai/gpt-4.1-nano`, `scripted/FILE`); `None` for
            tasks that call none.
        model_map: AI GO model key → the engine's model, for judges and other models that the task names.
        engine: `inspect` or `lighteval`, or another engine that is installed.
        out: folder for native logs and evidence; it is made if need be.
        resume: continue an interrupted run of the same plan with the same models in `out`. If the plan or the
            models have changed since, a Python warning says so before the first model call.
        cache: `reuse` takes earlier results in `out`, `update` asks again, `no-cache` keeps the run from
            being taken later.
        record: new file for every model call of the run (see docs/guides/resume-cache-and-replay.md); with
            `resume`, an existing file is appended to; `None`: none.
        replay: cassette that answers in place of all models, which then need not be named; what is not in it
            fails its sample with the error `NotRecorded`.
        fail_on_error: failed samples that are tolerated, as a number (`3`) or a share (`0.1`): with one more
            the run is stopped, and can be resumed. `None`: it goes on.
        allow_approximate: accept differences that `Fidelity.APPROXIMATE` stands for; they are in
            `Outcome.gaps`.
        max_connections: model calls at a time, at least 1; `None` leaves it to the engine.
        max_samples: samples in flight at a time, at least 1; `None` leaves it to the engine.
        attempt_timeout: seconds that one attempt at a model call may take, at least 1; the call is then made
            again, as after a server error.
        time_limit: seconds that one sample may take, at least 1; its scorers have half of that again.
        token_limit: tokens that one sample may use, at least 1.
        cost_limit: cost that one sample may incur, in the currency of the engine's price table.
        on_progress: called after each finished trial, and when a call is to be made again; maybe in another
            thread.

    Returns:
        The outcome: `result` is the result log for `read_log`, `metrics` has the numbers as they are shown,
        `num_samples`, `num_failed` and `num_missing` count samples, `first_errors` says why some failed.
        Failed samples are no exception: they are in the evidence, and stay out of the metrics.

    Raises:
        UnsupportedPlanError: the engine cannot run the plan as written; the message lists every gap.
        UsageError: a model is missing or unknown, an argument makes no sense, or the task's code needs what
            it was not allowed.
        SnippetsRefusedError: the task's code cannot be confined here.
        MissingEngineError: the engine's packages are not installed.
        EngineError: the engine failed; what it has logged stays in `out`.
        EvidenceError: the evidence cannot be written, on a full disk say, and the native log stays; or the
            cassette cannot be read, or lacks calls of this run, whose evidence is complete.
    """
    refuse_address(out, "out")
    if cache not in get_args(CachePolicy):
        raise UsageError(
            f"cache: found {cache!r}, expected {', '.join(map(repr, get_args(CachePolicy)))}",
            code=Code.WRONG_OPTION,
        )
    limits: dict[str, Any] = {
        "max_connections": max_connections,
        "max_samples": max_samples,
        "attempt_timeout": attempt_timeout,
        "time_limit": time_limit,
        "token_limit": token_limit,
    }
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise UsageError(f"{name}: found {limit}, expected at least 1", code=Code.WRONG_OPTION)
    settings = RunSettings(
        Path(out), cost_limit=cost_limit, on_progress=on_progress, on_restart=_warn_of_restart, **limits
    )
    cached = replace(plan, cache=cache)
    choice = ModelChoice(model, model_map)
    chosen = load_engine(engine)
    files = {"record": record, "replay": replay}
    refuse_tapes(files, [chosen], resumes=resume or cache == "reuse", option=str)
    paths = {name: None if file is None else Path(file) for name, file in files.items()}
    with run_tape(**paths, append=resume, show=lambda _: None) as tape:
        settings = replace(settings, tape=tape.of_engine(chosen.name))
        if tape.models is not None:
            choice = recorded_choice(plan, choice, tape.models)
        job = lone_job(
            cached,
            choice,
            earlier=earlier_runs(cached, resume=resume),
            fail_on_error=None if fail_on_error is None else str(fail_on_error),
        )
        outcome = outside_event_loops(
            lambda: run_job(job, chosen, settings, allow_approximate=allow_approximate)
        )
    if tape.problem is not None:
        message = f"cannot write the cassette, so calls are missing ({tape.problem})"
        hint = f"the evidence is complete: {outcome.result}"
        raise EvidenceError([Issue(message, file=str(record), hint=hint, code=Code.DAMAGED_CASSETTE)])
    return outcome


T = TypeVar("T")


def _warn_of_restart(reason: str) -> None:
    warnings.warn(reason, stacklevel=2)


def outside_event_loops(work: Callable[[], T]) -> T:
    """Do something as if no event loop of asyncio were running in this thread.

    That loop stands still meanwhile, as during any call that blocks. The work stays in the thread, so that
    ctrl-C and a notebook's "interrupt" reach it, and not in another one, to which they do not come.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with _set_aside(loop):
        context = copy_context()
        context.run(_forget_library)
        return context.run(work)


@contextmanager
def _set_aside(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """By the functions that asyncio has for who writes event loops (its documentation's "Extending")."""
    task = asyncio.current_task(loop)
    if task is not None:
        _leave_task(loop, task)
    _set_running_loop(None)
    try:
        yield
    finally:
        _set_running_loop(loop)
        if task is not None:
            _enter_task(loop, task)


def _forget_library() -> None:
    """What anyio has noted of the loop that was started with it."""
    if (sniffio := sys.modules.get("sniffio")) is not None:
        sniffio.current_async_library_cvar.set(None)
