"""Interrupted runs of Inspect's own tasks, continued: finished trials of an earlier log are taken over by Inspect itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.loader import resolve_tasks
from inspect_ai._eval.task import PreviousTask
from inspect_ai._eval.task.resolved import ResolvedTask
from inspect_ai._eval.task.util import task_file
from inspect_ai._util.registry import registry_info, registry_params
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import Model, get_model

from aigo_inspect.earlier import recovered


def earlier_log(
    task: Task, model: Model | None, roles: Mapping[str, Model], out: Path, num_trials: int | None
) -> EvalLog | None:
    """The log of an earlier run of the same task, arguments and models in `out`, with its finished trials; of several, the fullest.

    A trial of a row that has changed since is left out: Inspect knows rows by their ids only.
    """
    found: list[EvalLog] = []
    for path in sorted(out.glob("*.eval"), key=lambda each: each.stat().st_mtime, reverse=True):
        try:
            header = read_eval_log(str(path), header_only=True)
        except (OSError, ValueError, KeyError):
            continue  # damaged before it had a header, or no log: nothing to go on from
        if _is_same(header, task, model, roles):
            log = recovered(path)
            log.samples = _finished(log.samples or [], task, num_trials)
            found.append(log)
    return max(found, key=lambda log: len(log.samples or []), default=None)


def resumed(
    tasks: Sequence[Task],
    earlier: Sequence[EvalLog | None],
    model: Model | None,
    roles: Mapping[str, Model],
) -> list[ResolvedTask | PreviousTask]:
    """Tasks in the form in which Inspect takes new ones and continued ones together."""
    used = model or get_model()
    resolved: list[ResolvedTask | PreviousTask] = []
    for task, log in zip(tasks, earlier, strict=True):
        if log is None:
            given: dict[str, Any] = {**(task.model_roles or {}), **roles}
            resolved += resolve_tasks(
                task, {}, task.model or used, given or None, None, None, input_media_policy="trusted_pre_run"
            )
            continue
        resolved.append(
            PreviousTask(
                id=log.eval.task_id,
                task=task,
                task_args=dict(log.eval.task_args_passed or {}),
                model=task.model or used,
                model_roles={**(task.model_roles or {}), **roles} or None,
                sandbox=task.sandbox,
                log=log,
                log_info=None,
            )
        )
    return resolved


def planned_trials(task: Task, num_samples: int | None, num_trials: int | None) -> int:
    """How many trials a run of the task has."""
    number = len(task.dataset) if num_samples is None else min(num_samples, len(task.dataset))
    return number * (num_trials or task.epochs or 1)


def _is_same(log: EvalLog, task: Task, model: Model | None, roles: Mapping[str, Model]) -> bool:
    info, file = registry_info(task), task_file(task)
    names = {info.name, info.name.rpartition("/")[2]}
    if log.eval.task not in names or log.eval.task_registry_name not in (None, *names):
        return False
    if Path(log.eval.task_file or "").name != Path(file or "").name:
        return False
    if dict(log.eval.task_args_passed or {}) != dict(registry_params(task)):
        return False
    used = task.model or model
    if used is not None and log.eval.model != str(used):
        return False
    return _role_names(log.eval.model_roles or {}) == _role_names({**(task.model_roles or {}), **roles})


def _role_names(roles: Mapping[str, Any]) -> dict[str, list[str]]:
    found = {}
    for role, bound in roles.items():
        models = bound if isinstance(bound, list) else [bound]
        found[role] = [str(getattr(each, "model", None) or each) for each in models]
    return found


def _finished(samples: Sequence[EvalSample], task: Task, num_trials: int | None) -> list[EvalSample]:
    rows = {
        sample.id if sample.id is not None else number: _row(sample)
        for number, sample in enumerate(task.dataset, start=1)
    }
    last = num_trials or task.epochs or 1
    return [
        sample
        for sample in samples
        if sample.error is None
        and sample.completed_at
        and sample.epoch <= last
        and rows.get(sample.id) == _row(sample)
    ]


def _row(sample: Sample | EvalSample) -> tuple[Any, ...]:
    """What a sample asks and expects; ids of messages are new each time."""
    asked = (
        sample.input
        if isinstance(sample.input, str)
        else [(message.role, message.text) for message in sample.input]
    )
    target = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    return asked, target, list(sample.choices or [])
