"""Engine operations on a plan: check gaps, translate to the engine's objects, run with evidence."""

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

from aigo_bridge.access.display_paths import refuse_address
from aigo_bridge.api.planning import StrPath
from aigo_bridge.codes import Code
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.protocol import Gap, Progress, RunSettings
from aigo_bridge.engine.registry import EngineName, load_engine, require_exact, required
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.planning import of_task
from aigo_bridge.evaluation.recordings import refuse_recordings, run_recording
from aigo_bridge.evaluation.running import prepare, run_evaluation
from aigo_bridge.execution.permissions import resolve_permissions
from aigo_bridge.plan.plan import CachePolicy, TaskPlan

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from lighteval.tasks.requests import Doc


def gaps(plan: TaskPlan, engine: EngineName | str = "inspect") -> tuple[Gap, ...]:
    """List the differences between a plan and its run by an engine; an empty tuple means that the run is
    exact.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    assert aigo_bridge.gaps(plan, "lighteval") == ()
    ```

    Args:
        plan: from `plan_task`.
        engine: `inspect`, `lighteval`, or another installed engine.

    Returns:
        One `Gap` per difference, with the `part` of the task, `reason`, `fidelity` and `hint`.

    Raises:
        UsageError: the engine is unknown.
        MissingEngineError: the engine's packages are not installed; the message contains the install
            command.
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
    """Translate a plan to an engine's own objects, for use with the engine's own functions.

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
        engine: `inspect` returns an `inspect_ai.Task` for `inspect_ai.eval`; `import_logs` reads its log
            as evidence of the plan. `lighteval` returns a list with one `Doc` per sample:
            the question and the correct answers, without the plan's scorers.
        model_map: AI GO model key → the engine's model, for the task's judges; in Inspect, model roles
            with the
            same names also work.
        allow_approximate: accept differences of `Fidelity.APPROXIMATE`.

    Raises:
        UnsupportedPlanError: the engine's objects cannot express the plan; the message lists every gap.
        UsageError: the engine is unknown or cannot translate tasks, or the task's code needs a permission
            that it
            does not have.
        MissingEngineError: the engine's packages are not installed.
    """
    chosen = load_engine(engine)
    tasks = required(chosen.capabilities.native_tasks, f"engine {engine!r} cannot translate tasks")()
    found = [*chosen.gaps(plan), *tasks.gaps(plan)]
    require_exact(found, engine=engine, allow_approximate=allow_approximate)
    return tasks.translate(resolve_permissions(plan), dict(model_map or {}))


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
    """Run a plan and write its evidence, like `aigo-bridge run`.

    The function returns when the run has ended. A running event loop, for example in a notebook, is
    blocked until then; `await asyncio.to_thread(aigo_bridge.run, plan, …)` keeps it responsive.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    assert (outcome.num_samples, outcome.num_failed) == (4, 0)
    assert [(row.name, row.value) for row in outcome.metrics] == [("Accuracy", 0.75)]
    ```

    Args:
        plan: from `plan_task`.
        model: the evaluated model by its engine name (`openai/gpt-4.1-nano`, `scripted/FILE`); `None` for
            tasks without model calls.
        model_map: AI GO model key → the engine's model, for judges and other models in the task.
        engine: `inspect`, `lighteval`, or another installed engine.
        out: folder for native logs and evidence; it is created if needed.
        resume: continue an interrupted run of the same plan with the same models in `out`. If the plan or the
            models have changed, Python warns before the first model call.
        cache: `reuse` uses earlier results in `out`, `update` calls the model again, `no-cache` excludes
            the run from
            later reuse.
        record: new file for every model call of the run (see docs/guides/resume-cache-and-replay.md); with
            `resume`, an existing file is appended to; `None`: do not record.
        replay: cassette that answers instead of all models, which then need no names; a sample fails with
            the error
            `NotRecorded` if a call is missing in it.
        fail_on_error: maximum failed samples, as a number (`3`) or a proportion (`0.1`): with one more,
            the run stops and can be resumed. `None`: no maximum.
        allow_approximate: accept differences of `Fidelity.APPROXIMATE`; they are listed in
            `Outcome.gaps`.
        max_connections: maximum concurrent model calls, at least 1; `None`: the engine decides.
        max_samples: maximum concurrent samples, at least 1; `None`: the engine decides.
        attempt_timeout: maximum seconds of one attempt at a model call, at least 1; the call is then
            retried, as after a server error.
        time_limit: maximum seconds of one sample, at least 1; its scorers get half of that in addition.
        token_limit: maximum tokens of one sample, at least 1.
        cost_limit: maximum cost of one sample, in the currency of the engine's price table.
        on_progress: function that is called after each finished trial and before a retry, possibly in
            another
            thread.

    Returns:
        The outcome: `result` is the result log for `read_log`, `metrics` contains the displayed numbers,
        `num_samples`, `num_failed` and `num_missing` count samples, `first_errors` explains failures.
        Failed samples raise no exception: they are in the evidence and excluded from the metrics.

    Raises:
        UnsupportedPlanError: the engine cannot run the plan exactly; the message lists every gap.
        UsageError: a model is missing or unknown, an argument is invalid, or the task's code needs a
            permission that it does not have.
        SnippetsRefusedError: the task's code cannot be sandboxed on this machine.
        MissingEngineError: the engine's packages are not installed.
        EngineError: the engine failed; its logs stay in `out`.
        EvidenceError: the evidence cannot be written, for example because the disk is full (the native
            log stays); or
            the cassette cannot be read; or it lacks calls of this run, whose evidence is complete.
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
    chosen = load_engine(engine)
    files = {"record": record, "replay": replay}
    refuse_recordings(files, [chosen], resumes=resume or cache == "reuse", option=str)
    paths = {name: None if file is None else Path(file) for name, file in files.items()}
    with run_recording(**paths, append=resume, show=lambda _: None) as recording:

        def evaluate() -> Outcome:
            (prepared,) = prepare(
                [of_task(replace(plan, cache=cache))],
                [chosen],
                ModelChoice(model, model_map),
                resume=resume,
                recorded=recording.models,
                allow_approximate=allow_approximate,
            )
            recorded = replace(settings, recording=recording.of_engine(chosen.name))
            tolerated = None if fail_on_error is None else str(fail_on_error)
            (outcome,) = run_evaluation(prepared, chosen, recorded, fail_on_error=tolerated).results
            return replace(outcome, gaps=prepared.gaps)

        outcome = outside_event_loops(evaluate)
    if recording.problem is not None:
        message = f"cannot write the cassette, so calls are missing ({recording.problem})"
        hint = f"the evidence is complete: {outcome.result}"
        raise EvidenceError(message, file=str(record), hint=hint, code=Code.DAMAGED_CASSETTE)
    return outcome


T = TypeVar("T")


def _warn_of_restart(reason: str) -> None:
    warnings.warn(reason, stacklevel=2)


def outside_event_loops(work: Callable[[], T]) -> T:
    """Run a function as if this thread had no running asyncio event loop.

    The loop is blocked, as during any blocking call. The function stays in this thread because Ctrl+C and a
    notebook's "interrupt" do not reach other threads.
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
    """Suspend a loop with asyncio's functions for authors of event loops (see "Extending" in its docs)."""
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
    """Reset anyio's record of the running async library."""
    if (sniffio := sys.modules.get("sniffio")) is not None:
        sniffio.current_async_library_cvar.set(None)
