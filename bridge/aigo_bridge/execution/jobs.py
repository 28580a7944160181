"""Start of a job, the same for every engine: a new run, a resumed run, a complete run, or a run that reuses
solver outputs.

An adapter reports the contents of its logs (`EarlierLogs`) and carries out the decision (`PlannedJob`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.execution.checkpoint import Checkpoint
from aigo_bridge.execution.earlier_runs import EarlierLogs, EarlierRun, F, restart_reason
from aigo_bridge.execution.progress import ProgressCounter, Tolerance
from aigo_bridge.plan.logged_plan import is_intact, logged_plan
from aigo_bridge.plan.plan import TaskPlan, mixed

if TYPE_CHECKING:
    from aigo_bridge.engine.recording import Recording, TaskRecording

M = TypeVar("M")
"""Model, in the form that the adapter uses."""

Identity = tuple[Any, ...]
"""Values that identify the plan of a run: digest, evaluation, specification, number of the run."""


@dataclass(frozen=True)
class PlannedJob(Generic[F]):
    """Job and the finished work of earlier runs."""

    job: Job
    """Job to run. If it resumes an earlier run, its plan has the combined fingerprints of both runs."""
    fingerprints: Mapping[str, str]
    """Fingerprints of the current models."""
    earlier: Path | None = None
    """Log of the run that is resumed or already complete."""
    finished: F | None = None
    """Reused trials; `None` if none or all trials are reused."""
    num_finished: int = 0
    is_complete: bool = False
    """Whether the earlier run is complete."""
    replay: Path | None = None
    """Log whose solver outputs are scored again."""
    other_model: bool = False
    """Whether reused trials come from a model that has changed since then."""

    @property
    def plan(self) -> TaskPlan:
        """Plan of the job."""
        return self.job.plan

    def log_ref(self, engine: str, path: Path, error: str | None = None) -> LogRef:
        """Return a reference to the job's log, with the number of reused trials."""
        return LogRef(
            engine,
            path,
            self.num_finished,
            self.earlier or self.replay,
            replayed=self.replay is not None,
            other_model=self.other_model,
            error=error,
        )

    def checkpoint(self, engine: str, models: Mapping[str, str], out: Path) -> Checkpoint:
        """Return the checkpoint of model answers, with those of the killed run if the job resumes."""
        identity = [engine, identity_of(self.plan.header()), dict(models), dict(self.fingerprints)]
        return Checkpoint(out, identity, goes_on=self.job.earlier == "resume")

    def counter(
        self, progress: ProgressCounter, checkpoint: Checkpoint | None, recording: TaskRecording | None = None
    ) -> ProgressCounter:
        """Return the counter for the trials of this job within the whole run."""
        tolerance = Tolerance(self.job.tolerated, self.plan.num_trials)
        return progress.of_task(self.plan.name, tolerance, checkpoint, recording)

    def recording(
        self, engine: str, models: Mapping[str, str], run: Recording | None
    ) -> TaskRecording | None:
        """Return the recording for the model calls of this job; see `Recording.of_task`."""
        return None if run is None else run.of_task(self.plan, engine, models)


def progress_of(starts: Sequence[PlannedJob[Any]], settings: RunSettings) -> ProgressCounter:
    """Return the counter for the trials of jobs that run together."""
    tasks = Counter[str]()
    for start in starts:
        tasks[start.plan.name] += _num_trials(start.plan) - start.num_finished
    trials = any(start.plan.num_trials > 1 for start in starts)
    return ProgressCounter(settings.on_progress, tasks.total(), trials=trials, tasks=tasks)


# Models


NO_MODEL = "the task evaluates a model; choose one with --model, e.g. --model openai/gpt-4.1-nano"


@dataclass(frozen=True)
class JobModels(Generic[M]):
    """Models of one job."""

    evaluated: M | None
    """Evaluated model; `None` if the job does not call one."""
    others: Mapping[str, M]
    """AI GO model key → judges and other models of the task."""

    def all(self) -> list[M]:
        """Return all models. A model with several keys is repeated."""
        return [*([] if self.evaluated is None else [self.evaluated]), *self.others.values()]

    def names(self, name_of: Callable[[M], str]) -> dict[str, str]:
        """Return AI GO model key (`""` for the evaluated model) → model name for the engine."""
        evaluated = {} if self.evaluated is None else {"": name_of(self.evaluated)}
        return evaluated | {key: name_of(model) for key, model in self.others.items()}


def make_models(jobs: Sequence[Job], make: Callable[[str], M]) -> list[JobModels[M]]:
    """Create the models of jobs. Jobs share one model, with its connections and counts, for the same name.

    Raises:
        UsageError: models cannot be created; lists all of them.
    """
    models_by_name: dict[str, M] = {}
    problems: dict[str, Code] = {}

    def model(name: str | None) -> M | None:
        if name is None:
            problems[NO_MODEL] = Code.NO_MODEL
            return None
        if name not in models_by_name:
            try:
                models_by_name[name] = make(name)
            except UsageError as error:
                problems[str(error)] = error.code
        return models_by_name.get(name)

    models: list[JobModels[M]] = []
    for job in jobs:
        plan = job.plan
        is_asked = plan.calls_model or (plan.entity == "model" and job.model is not None)
        evaluated = model(job.model) if is_asked else None
        named_models = {key: model(job.model_map[key]) for key in plan.model_keys if key in job.model_map}
        models.append(
            JobModels(
                evaluated,
                {key: named_model for key, named_model in named_models.items() if named_model is not None},
            )
        )
    if problems:
        raise UsageError("\n".join(problems), code=next(iter(problems.values())))
    return models


# Earlier runs


def earlier_runs(
    paths: Iterable[Path],
    head: Callable[[Path], EarlierRun | None],
    malformed: tuple[type[Exception], ...] = (),
) -> list[EarlierRun]:
    """Return the runs in native logs, the newest first. Unreadable logs are skipped, because an older one may
    be usable.

    Args:
        paths: native logs.
        head: returns the header of a log; `None` if aigo-bridge did not write it.
        malformed: exceptions, in addition to `EvidenceError`, that `head` raises for other files.
    """
    unreadable: tuple[type[Exception], ...] = (EvidenceError, *malformed)
    runs: list[EarlierRun] = []
    for path in sorted(paths, key=os.path.getmtime, reverse=True):
        try:
            run = head(path)
            if run is not None:
                logged_plan(run.plan)  # An invalid plan raises here, so its log is skipped.
                runs.append(run)
        except unreadable:
            continue
    return runs


def identity_of(header: Mapping[str, Any]) -> Identity:
    """Return the values in a plan header that identify the plan or its shard."""
    specification = header.get("specification") or {}
    return (
        header.get("digest"),
        specification.get("evaluation"),
        specification.get("key"),
        specification.get("run"),
        *([] if header.get("shard") is None else [tuple(header["shard"])]),
    )


def start_jobs(
    jobs: Sequence[Job], models: Sequence[Mapping[str, str]], settings: RunSettings, logs: EarlierLogs[F]
) -> list[PlannedJob[F]]:
    """Return the start of each job from its models (AI GO key → engine name) and earlier logs."""
    runs = logs.runs(settings.out) if any(job.earlier != "ignore" for job in jobs) else []
    starts = [_start(job, names, runs, settings, logs) for job, names in zip(jobs, models, strict=True)]
    for start, names in zip(starts, models, strict=True):
        if start.job.earlier == "resume" and start.earlier is None and settings.on_restart is not None:
            reason = restart_reason(start.plan, names, runs, logs.count)
            if reason is not None:
                settings.on_restart(reason)
    return starts


def _start(
    job: Job,
    models: Mapping[str, str],
    runs: Sequence[EarlierRun],
    settings: RunSettings,
    logs: EarlierLogs[F],
) -> PlannedJob[F]:
    if job.earlier == "ignore":
        return PlannedJob(job, job.plan.fingerprints)
    run = _same_run(runs, job.plan, models)
    if run is not None and (job.earlier == "resume" or _may_stand_in(run, job.plan, settings)):
        try:
            return _behind(run, job, logs)
        except EvidenceError:
            readable = [other for other in runs if other is not run]
            return _start(job, models, readable, settings, logs)
    solved = _same_solver(runs, job.plan, models, settings) if job.earlier == "reuse" else None
    return PlannedJob(job, job.plan.fingerprints, replay=None if solved is None else solved.path)


def _behind(run: EarlierRun, job: Job, logs: EarlierLogs[F]) -> PlannedJob[F]:
    fingerprints = job.plan.fingerprints
    both = mixed(run.plan.get("fingerprints") or {}, fingerprints)
    job = replace(job, plan=replace(job.plan, fingerprints=both))
    total = _num_trials(job.plan)
    finished: F | None = None
    is_complete = run.status == "success" and logs.count(run, job.plan) >= total
    if is_complete:
        num_finished = total
    else:
        finished, num_finished = logs.finished(run, job.plan)
    other_model = both != fingerprints and num_finished > 0
    return PlannedJob(
        job, fingerprints, run.path, finished, num_finished, is_complete, other_model=other_model
    )


def _num_trials(plan: TaskPlan) -> int:
    return len(plan.samples) * plan.num_trials


def _same_run(runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str]) -> EarlierRun | None:
    identity = identity_of(plan.header())
    # A plan that does not call a model can be resumed with any evaluated model.
    ignored = set() if "" in models else {""}
    for run in runs:
        same_models = {key: name for key, name in run.models.items() if key not in ignored} == models
        if identity_of(run.plan) == identity and same_models and is_intact(run.plan):
            return run
    return None


def _may_stand_in(run: EarlierRun, plan: TaskPlan, settings: RunSettings) -> bool:
    header = plan.header()
    same = all(run.plan.get(key) == header[key] for key in ("specification", "fingerprints"))
    return same and _is_cached(run, settings)


def _same_solver(
    runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str], settings: RunSettings
) -> EarlierRun | None:
    """Return the newest finished run with the same requests to the same models; `None` without a solver."""
    if plan.solver_digest is None:
        return None
    header = plan.header()
    keys = ("", *plan.solver_model_keys)
    compared = [key for key in keys if key or key in models]
    for run in runs:
        if (
            run.plan.get("solver_digest") == plan.solver_digest
            and all(run.models.get(key) == models.get(key) for key in compared)
            and _is_cached(run, settings)
            and _fingerprints(run.plan, keys) == _fingerprints(header, keys)
            and _number(run.plan) == _number(header)
            and is_intact(run.plan)
        ):
            return run
    return None


def _is_cached(run: EarlierRun, settings: RunSettings) -> bool:
    """Return whether a run can be reused. With other limits, the same sample may have another result."""
    limits = (settings.time_limit, settings.token_limit, settings.cost_limit)
    return run.status == "success" and run.limits == limits and run.plan.get("cache") != "no-cache"


def _fingerprints(header: Mapping[str, Any], keys: Sequence[str]) -> list[str | None]:
    fingerprints = header.get("fingerprints") or {}
    return [fingerprints.get(key) for key in keys]


def _number(header: Mapping[str, Any]) -> int:
    """Return the number of the run. Repeated runs measure variation, so one run never replaces another."""
    return int((header.get("specification") or {}).get("run") or 0)


def make_folder(out: Path) -> None:
    """Create the folder of the logs.

    Raises:
        UsageError: it cannot be created.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out: {str(out)!r} cannot be used as a folder: {error.strerror}", code=Code.UNUSABLE_OUTPUT
        ) from error
