"""Sharded runs of Inspect tasks. Each shard runs a part of the samples with Inspect's `eval`. A merge writes
one log, whose metrics Inspect computes over all samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inspect_ai._util.registry import registry_info, registry_params
from inspect_ai.log import EvalLog, read_eval_log_sample_summaries
from pydantic_core import to_json

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkPart, BenchmarkRun, PartLogs, PartRun
from aigo_bridge.engine.outcome import Outcome, errors_by_kind
from aigo_bridge.errors import UsageError
from aigo_bridge.execution.jobs import make_folder
from aigo_bridge.plan.shards import Shard
from aigo_bridge.redaction.secrets import redact
from aigo_inspect.benchmarks.merged_logs import merged_log
from aigo_inspect.benchmarks.options import EvalSettings
from aigo_inspect.benchmarks.outcomes import MAX_ERRORS, failures_of, file_name, log_file, outcome_of
from aigo_inspect.benchmarks.resume import TaskWithModel, asked_of, earlier_log
from aigo_inspect.benchmarks.run import NO_MODEL, evaluated, inspect_settings, tasks_of

_CHOOSING = {"limit", "sample_id", "sample_shuffle"}
"""Settings for the sample selection. The samples of a shard are already selected."""


def run(
    request: BenchmarkRun, shard: Shard, begin: Callable[[Sequence[BenchmarkPart]], bool]
) -> list[PartRun]:
    """Run a shard of each task; see `BenchmarkShards.run`."""
    make_folder(request.out)
    with inspect_settings(request) as settings:
        _refuse(settings)
        runs = tasks_of(settings)
        _refuse_tasks(runs)
        if not begin([_part(run, settings) for run in runs]):
            return []
        parameters = {name: settings.parameters[name] for name in settings.parameters.keys() - _CHOOSING}
        shard_settings = replace(settings, parameters=parameters)
        shares = [_share(run, shard) for run in runs]
        if request.resume:
            shares = [replace(run, earlier=earlier_log(run, shard_settings, request.out)) for run in shares]
        todo = [run for run in shares if len(run.samples)]
        logs = {_name(log.eval.task): log for log in evaluated(todo, shard_settings, request)} if todo else {}
        return [_outcome(logs.get(_name(run.task.name)), run, request) for run in shares]


def merge(
    request: BenchmarkRun, logs: Callable[[Sequence[BenchmarkPart]], Sequence[PartLogs]]
) -> list[Outcome]:
    """Write one log for each task, and its evidence; see `BenchmarkShards.merge`."""
    make_folder(request.out)
    with inspect_settings(request) as settings:
        _refuse(settings)
        runs = tasks_of(settings)
        parts = logs([_part(run, settings) for run in runs])
        merged = [
            merged_log(run, part, _chosen_by(settings), request.out)
            for run, part in zip(runs, parts, strict=True)
        ]
    taken: set[str] = set()
    return [outcome_of(log, request, file_name(log.eval.task, taken), 0, []) for log in merged]


def _refuse(settings: EvalSettings) -> None:
    problems = []
    if len(settings.models) > 1:
        problems.append("--shard: run one model at a time, each with its own --out")
    if settings.parameters.get("sample_shuffle") is True:
        problems.append("--shard: set a seed with --sample-shuffle, so that all shards use the same order")
    if problems:
        raise UsageError("\n".join(problems), code=Code.OPTIONS_APART)


def _refuse_tasks(runs: Sequence[TaskWithModel]) -> None:
    problems, names = [], set[str]()
    for run in runs:
        name = _name(run.task.name)
        if name in names:
            problems.append(f"--shard: two tasks are named {name!r}; run one at a time")
        names.add(name)
        if run.task.sample_source is not None:
            problems.append(
                f"--shard: task {name!r} generates its samples during the run, so it cannot be divided"
            )
        if run.task.early_stopping is not None:
            problems.append(
                f"--shard: task {name!r} stops early depending on all of its samples, and a shard"
                " has only some of them"
            )
    if problems:
        raise UsageError("\n".join(problems), code=Code.UNFIT_BENCHMARK)


def _name(task: str) -> str:
    return task.rpartition("/")[2]


def _part(run: TaskWithModel, settings: EvalSettings) -> BenchmarkPart:
    name = _name(run.task.name)
    used = str(run.used)
    models = {} if used == NO_MODEL else {"": used}
    roles = {role: str(model) for role, model in settings.roles.items()}
    return BenchmarkPart(name, _digest(run), len(run.samples), run.num_trials, {**models, **roles})


def _digest(run: TaskWithModel) -> str:
    """Return a checksum of the task name, the arguments and the selected samples."""
    digest = hashlib.sha256(_json([registry_info(run.task).name, dict(registry_params(run.task))]))
    for sample in run.samples:
        digest.update(_json([sample.id, asked_of(sample), sample.metadata]))
    return digest.hexdigest()


def _json(value: Any) -> bytes:
    return to_json(value, fallback=repr, inf_nan_mode="strings") + b"\n"


def _share(run: TaskWithModel, shard: Shard) -> TaskWithModel:
    """Return a task with only the samples of a shard. The samples already have ids."""
    begin, end = shard.bounds(len(run.samples))
    samples = run.samples[begin:end]
    run.task.dataset = samples
    return replace(run, samples=samples)


def _chosen_by(settings: EvalSettings) -> Mapping[str, Any]:
    """Return the sample selection of the whole run, as its log would record it."""
    return {name: settings.parameters.get(name) for name in _CHOOSING}


def _outcome(log: EvalLog | None, run: TaskWithModel, request: BenchmarkRun) -> PartRun:
    if log is None and not len(run.samples):
        return PartRun()
    path = None if log is None else log_file(log, request.out)
    if log is None or path is None:
        reason = log.error.message if log is not None and log.error is not None else "no log was written"
        return PartRun(status="error", error=redact(reason))
    summaries = read_eval_log_sample_summaries(str(path))
    failures = failures_of(path)
    error = redact(log.error.message) if log.error is not None else None
    return PartRun(
        path,
        num_samples=len({summary.id for summary in summaries}),
        num_failed=len(failures),
        status=log.status,
        error=error if log.status != "success" else None,
        num_reused=run.reused,
        first_errors=tuple(errors_by_kind(failures, MAX_ERRORS)),
    )
