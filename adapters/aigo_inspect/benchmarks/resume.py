"""Preparation of Inspect task runs: the selected samples, and the trials to reuse from an interrupted run
with the same task, models and settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.loader import resolve_tasks
from inspect_ai._eval.task import PreviousTask
from inspect_ai._eval.task.resolved import ResolvedTask
from inspect_ai._eval.task.util import (
    resolve_task_sample_ids,
    sample_id_filter,
    slice_dataset,
    task_file,
)
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_info, registry_params
from inspect_ai.approval._policy import approval_policies_from_config, config_from_approval_policies
from inspect_ai.dataset import Dataset, Sample
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import GenerateConfig, Model
from inspect_ai.model._model_config import model_args_for_log, model_roles_to_model_roles_config
from pydantic_core import to_jsonable_python

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.text.plurals import plural
from aigo_inspect.benchmarks.options import TRANSPORT, EvalSettings, with_roles
from aigo_inspect.models.models import plain_text
from aigo_inspect.running.resume import recovered

_LIMITS = ("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit")
"""Sample limits. Trials with other limits cannot be reused."""


@dataclass(frozen=True)
class TaskWithModel:
    """A task and the model to run it with."""

    task: Task
    model: Model
    """Model of the run. The task may define its own model."""
    samples: Dataset
    """Selected samples."""
    num_trials: int
    """Number of trials for each sample."""
    earlier: EvalLog | None = None
    """Log of the earlier run to resume, with its finished trials."""

    @property
    def used(self) -> Model:
        """The evaluated model."""
        return self.task.model or self.model

    @property
    def reused(self) -> int:
        """Number of reused trials."""
        return 0 if self.earlier is None else len(self.earlier.samples or [])

    @property
    def planned(self) -> int:
        """Number of planned trials."""
        return len(self.samples) * self.num_trials


def task_runs(tasks: Sequence[tuple[Task, Model]], settings: EvalSettings) -> list[TaskWithModel]:
    """Return the tasks with their selected samples.

    Raises:
        UsageError: a sample id does not exist, or all tasks are without samples.
    """
    names = list(dict.fromkeys(task.name for task, _ in tasks))
    shuffle = settings.parameters.get("sample_shuffle")
    for task, _ in tasks:
        if shuffle and not task.dataset.shuffled:
            task.dataset.shuffle(None if shuffle is True else shuffle)
        for number, sample in enumerate(task.dataset, start=1):
            # The same numbers as Inspect's, which are assigned after shuffling.
            sample.id = number if sample.id is None else sample.id
    _refuse_unknown_ids([task for task, _ in tasks], names, settings.parameters.get("sample_id"))
    runs = [
        TaskWithModel(task, model, _chosen(task, names, settings), settings.num_trials or task.epochs or 1)
        for task, model in tasks
    ]
    _refuse_nothing(runs, settings)
    return runs


def _refuse_nothing(runs: Sequence[TaskWithModel], settings: EvalSettings) -> None:
    """Reject a run without samples, because it would end as a success."""
    if any(run.samples or run.task.sample_source is not None for run in runs):
        return
    numbers = ", ".join(
        {f"task {run.task.name!r} has {plural(len(run.task.dataset), 'sample')}": 0 for run in runs}
    )
    limit = settings.parameters.get("limit")
    if not isinstance(limit, tuple):
        raise UsageError(f"nothing to run: {numbers}", code=Code.NOTHING_TO_RUN)
    # Inspect parses `--limit A-B` to a pair that starts at 0.
    chosen = f"{limit[0] + 1}-{limit[1]}"
    raise UsageError(
        f"--limit: {chosen} selects no sample; {numbers}, numbered from 1", code=Code.WRONG_BENCHMARK_OPTION
    )


def _chosen(task: Task, names: Sequence[str], settings: EvalSettings) -> Dataset:
    ids = resolve_task_sample_ids(task.name, settings.parameters.get("sample_id"), names)
    try:
        return slice_dataset(
            task.dataset, settings.parameters.get("limit"), ids, task.sample_source is not None
        )
    except PrerequisiteError as error:
        raise UsageError(plain_text(error), code=Code.WRONG_BENCHMARK_OPTION) from error


def _refuse_unknown_ids(tasks: Sequence[Task], names: Sequence[str], ids: Any) -> None:
    if ids is None or any(task.sample_source is not None for task in tasks):
        return
    unknown = [name for name in ids if not any(_has(task, name, names) for task in tasks)]
    if unknown:
        number = sum(len(task.dataset) for task in tasks)
        samples = ", ".join(repr(sample.id) for sample in tasks[0].dataset[0:8])
        raise UsageError(
            f"--sample-id: no sample {', '.join(map(repr, unknown))} among {number}, e.g. {samples}",
            code=Code.UNKNOWN_CHOICE,
        )


def _has(task: Task, name: str | int, names: Sequence[str]) -> bool:
    ids = resolve_task_sample_ids(task.name, [name], names)
    return bool(ids) and any(sample_id_filter(ids or []).matches(sample.id) for sample in task.dataset)


# Resuming interrupted runs


def earlier_log(run: TaskWithModel, settings: EvalSettings, out: Path) -> EvalLog | None:
    """Return the log of an earlier run in `out` with the same task, arguments, models and settings.

    The log contains only finished trials. If several logs match, the one with the most trials is returned.
    Trials whose dataset row has changed are left out, because Inspect identifies rows only by id.
    """
    logs: list[EvalLog] = []
    for path in sorted(out.glob("*.eval"), key=lambda file: file.stat().st_mtime, reverse=True):
        try:
            header = read_eval_log(str(path), header_only=True)
        except (OSError, ValueError, KeyError):
            continue  # not a log, or damaged before its header was written
        if _is_same(header, run, settings):
            log = recovered(path)
            log.samples = _finished(log.samples or [], run)
            logs.append(log)
    return max(logs, key=lambda log: len(log.samples or []), default=None)


def resolved(runs: Sequence[TaskWithModel], settings: EvalSettings) -> list[ResolvedTask | PreviousTask]:
    """Return new and resumed runs in the form that Inspect accepts together. Several models are supported."""
    tasks: list[ResolvedTask | PreviousTask] = []
    parameters = settings.parameters
    for run in runs:
        task, log = run.task, run.earlier
        if log is None:
            tasks += resolve_tasks(
                task,
                {},
                run.model,
                with_roles(settings.roles) or None,
                parameters.get("sandbox"),
                parameters.get("sample_shuffle"),
                parameters.get("checkpoint"),
                input_media_policy="trusted_pre_run",
            )
            continue
        tasks.append(
            PreviousTask(
                id=log.eval.task_id,
                task=task,
                task_args=dict(log.eval.task_args_passed or {}),
                model=run.used,
                model_roles={**(task.model_roles or {}), **with_roles(settings.roles)} or None,
                sandbox=parameters.get("sandbox") or task.sandbox,
                log=log,
                log_info=None,
            )
        )
    return tasks


def _is_same(log: EvalLog, run: TaskWithModel, settings: EvalSettings) -> bool:
    task, info, file = run.task, registry_info(run.task), task_file(run.task)
    names = {info.name, info.name.rpartition("/")[2]}
    if log.eval.task not in names or log.eval.task_registry_name not in (None, *names):
        return False
    if Path(log.eval.task_file or "").name != Path(file or "").name:
        return False
    if dict(log.eval.task_args_passed or {}) != dict(registry_params(task)):
        return False
    return log.eval.model == str(run.used) and settings_in(log) == redact_value(_of_run(run, settings))


def settings_in(log: EvalLog) -> dict[str, Any]:
    """Return the settings in a log that affect answers."""
    spec, config = log.eval, log.eval.config
    return {
        "generation": _asked(log.plan.config),
        "model": [_asked(spec.model_generate_config), spec.model_base_url, spec.model_args],
        "roles": _roles(spec.model_roles),
        "solver": [spec.solver, spec.solver_args_passed] if spec.solver is not None else None,
        "sandbox": _sandbox(spec.sandbox),
        "approval": config.approval and config.approval.model_dump(mode="json"),
        "limits": [*(getattr(config, name) for name in _LIMITS), config.token_limit_type],
    }


def _of_run(run: TaskWithModel, settings: EvalSettings) -> dict[str, Any]:
    """Return the settings of this run in the form of `settings_in`."""
    task, model, parameters = run.task, run.used, settings.parameters
    limits = {name: parameters.get(name) or getattr(task, name) for name in _LIMITS}
    tokens, kind = limits["token_limit"], task.token_limit_type
    if parameters.get("token_limit") is not None:
        tokens, kind = getattr(tokens, "tokens", tokens), getattr(tokens, "type", None)
    solver, approval = parameters.get("solver"), parameters.get("approval") or task.approval
    if isinstance(approval, str):
        approval = approval_policies_from_config(approval)
    if isinstance(approval, list):
        approval = config_from_approval_policies(approval)
    roles = {**(task.model_roles or {}), **with_roles(settings.roles)}
    return {
        "generation": _asked(task.config.merge(settings.generation)),
        "model": [
            _asked(model.config),
            model.explicit_base_url,
            to_jsonable_python(model_args_for_log(model.model_args), fallback=str),
        ],
        "roles": _roles(model_roles_to_model_roles_config(roles)),
        "solver": [solver.solver, solver.args_passed] if solver is not None else None,
        "sandbox": _sandbox(parameters.get("sandbox") or task.sandbox),
        "approval": approval and approval.model_dump(mode="json"),
        "limits": [*{**limits, "token_limit": tokens}.values(), kind],
    }


def _asked(config: GenerateConfig) -> dict[str, Any]:
    """Return the generation settings that affect a request."""
    return config.model_dump(mode="json", exclude_none=True, exclude=set(TRANSPORT))


def _roles(roles: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    configs = {}
    for role, bound in (roles or {}).items():
        models = bound if isinstance(bound, list) else [bound]
        configs[role] = [[model.model, _asked(model.config), model.base_url, model.args] for model in models]
    return configs


def _sandbox(spec: Any) -> list[str] | None:
    """Return a sandbox without the folder of its config file. A log has the full path."""
    if spec is None:
        return None
    config = spec.config
    return [spec.type, config if not isinstance(config, str) else Path(config).name]


def _finished(samples: Sequence[EvalSample], run: TaskWithModel) -> list[EvalSample]:
    rows = {sample.id: asked_of(sample) for sample in run.samples}
    return [
        sample
        for sample in samples
        if sample.error is None
        and sample.completed_at
        and sample.epoch <= run.num_trials
        and rows.get(sample.id) == asked_of(sample)
    ]


def asked_of(sample: Sample | EvalSample) -> tuple[Any, ...]:
    """Return the question, target and choices of a sample. Message ids differ in each run and are left
    out.
    """
    question = (
        sample.input
        if isinstance(sample.input, str)
        else [(message.role, message.text) for message in sample.input]
    )
    target = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    return question, target, list(sample.choices or [])
