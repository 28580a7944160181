"""How a job starts, on every engine: new, behind an earlier run, complete, or with solver outputs of one.

An adapter says what its logs in a folder hold (`EarlierLogs`), and carries out what is decided here
(`Start`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.execution.earlier import EarlierLogs, EarlierRun, F, restart_reason
from aigo_bridge.execution.journal import Journal
from aigo_bridge.execution.progress import ProgressCounter, Tolerance
from aigo_bridge.plan.logged_plan import is_intact, logged_plan
from aigo_bridge.plan.plan import TaskPlan, mixed

if TYPE_CHECKING:
    from aigo_bridge.engine.tape import Tape, TaskTape

M = TypeVar("M")
"""A model, as an adapter makes it."""

Identity = tuple[Any, ...]
"""What tells the plans of one run apart: digest, evaluation, specification, number of the run."""


@dataclass(frozen=True)
class Start(Generic[F]):
    """A job, and what earlier runs have done of it."""

    job: Job
    """Its plan has the fingerprints of both runs where it goes on from an earlier one."""
    fingerprints: Mapping[str, str]
    """Those of the models as they are now."""
    earlier: Path | None = None
    """Log of the run that it goes on from, or that left nothing to do."""
    finished: F | None = None
    """Trials taken over; `None`: none, or all."""
    num_finished: int = 0
    is_complete: bool = False
    """Whether the earlier run has left nothing to do."""
    replay: Path | None = None
    """Log whose solver outputs are scored again."""
    other_model: bool = False
    """Whether what is taken over is of a model that has changed since."""

    @property
    def plan(self) -> TaskPlan:
        """The plan of the job."""
        return self.job.plan

    def log_ref(self, engine: str, path: Path, error: str | None = None) -> LogRef:
        """Where the job's log is, with what it has of others."""
        return LogRef(
            engine,
            path,
            self.num_finished,
            self.earlier or self.replay,
            replayed=self.replay is not None,
            other_model=self.other_model,
            error=error,
        )

    def journal(self, engine: str, models: Mapping[str, str], out: Path) -> Journal:
        """Journal of the models' answers, with those of a killed run where the job goes on from it."""
        identity = [engine, identity_of(self.plan.header()), dict(models), dict(self.fingerprints)]
        return Journal(out, identity, goes_on=self.job.earlier == "resume")

    def counter(
        self, progress: ProgressCounter, journal: Journal | None, tape: TaskTape | None = None
    ) -> ProgressCounter:
        """What counts the trials of this job among those of the whole run."""
        tolerance = Tolerance(self.job.tolerated, self.plan.num_trials)
        return progress.of_task(self.plan.name, tolerance, journal, tape)

    def tape(self, engine: str, models: Mapping[str, str], tape: Tape | None) -> TaskTape | None:
        """What the calls of this job go past; see `Tape.of_task`."""
        return None if tape is None else tape.of_task(self.plan, engine, models)


def progress_of(starts: Sequence[Start[Any]], settings: RunSettings) -> ProgressCounter:
    """What counts the trials of jobs that are run together."""
    total = sum(_num_trials(start.plan) - start.num_finished for start in starts)
    return ProgressCounter(
        settings.on_progress, total, trials=any(start.plan.num_trials > 1 for start in starts)
    )


# Models


NO_MODEL = "the task evaluates a model; choose one with --model, e.g. --model openai/gpt-4.1-nano"


@dataclass(frozen=True)
class JobModels(Generic[M]):
    """The models of one job."""

    evaluated: M | None
    """`None`: none is asked."""
    others: Mapping[str, M]
    """AI GO model key → judges and other models of the task."""

    def all(self) -> list[M]:
        """Each of them, those under several keys as often."""
        return [*([] if self.evaluated is None else [self.evaluated]), *self.others.values()]

    def names(self, name_of: Callable[[M], str]) -> dict[str, str]:
        """AI GO model key (`""` for the evaluated model) → the engine's name."""
        evaluated = {} if self.evaluated is None else {"": name_of(self.evaluated)}
        return evaluated | {key: name_of(model) for key, model in self.others.items()}


def make_models(jobs: Sequence[Job], make: Callable[[str, Mapping[str, Any]], M]) -> list[JobModels[M]]:
    """The models of jobs; of one name and the same arguments there is one, with its connections and counts.

    Args:
        jobs: the jobs.
        make: makes a model from the user's name for it and arguments for its provider.

    Raises:
        UsageError: some cannot be made; all are named.
    """
    models_by_key: dict[tuple[str, str], M] = {}
    problems: dict[str, Code] = {}

    def model(name: str | None, arguments: Mapping[str, Any]) -> M | None:
        if name is None:
            problems[NO_MODEL] = Code.NO_MODEL
            return None
        key = (name, repr(sorted(arguments.items())))
        if key not in models_by_key:
            try:
                models_by_key[key] = make(name, arguments)
            except UsageError as error:
                problems[str(error)] = error.code
        return models_by_key.get(key)

    models: list[JobModels[M]] = []
    for job in jobs:
        plan = job.plan
        is_asked = plan.calls_model or (plan.entity == "model" and job.model is not None)
        evaluated = model(job.model, job.model_args) if is_asked else None
        named_models = {key: model(job.model_map[key], {}) for key in plan.model_keys if key in job.model_map}
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
    """The runs of native logs, the newest first; what cannot be read is left out, an older one may do.

    Args:
        paths: the logs.
        head: gives what the head of a log says; `None`: it is none of ours.
        malformed: what it raises at a log that is none, beside `EvidenceError`.
    """
    unreadable: tuple[type[Exception], ...] = (EvidenceError, *malformed)
    runs: list[EarlierRun] = []
    for path in sorted(paths, key=os.path.getmtime, reverse=True):
        try:
            run = head(path)
            if run is not None:
                logged_plan(run.plan)  # what is no plan is left out here
                runs.append(run)
        except unreadable:
            continue
    return runs


def identity_of(header: Mapping[str, Any]) -> Identity:
    """What the header of a plan says about which plan it is, or which shard of one."""
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
) -> list[Start[F]]:
    """How jobs start.

    Args:
        jobs: the jobs.
        models: of each job, AI GO model key (`""` for the evaluated model) → the engine's name of the model.
        settings: of the run.
        logs: what the engine has logged before.
    """
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
) -> Start[F]:
    if job.earlier == "ignore":
        return Start(job, job.plan.fingerprints, replay=job.reuse)
    run = _same_run(runs, job.plan, models)
    if run is not None and (job.earlier == "resume" or _may_stand_in(run, job.plan, settings)):
        try:
            return _behind(run, job, logs)
        except EvidenceError:
            readable = [other for other in runs if other is not run]
            return _start(job, models, readable, settings, logs)
    replay = job.reuse
    if replay is None and job.earlier == "reuse":
        solved = _same_solver(runs, job.plan, models, settings)
        replay = None if solved is None else solved.path
    return Start(job, job.plan.fingerprints, replay=replay)


def _behind(run: EarlierRun, job: Job, logs: EarlierLogs[F]) -> Start[F]:
    """A job that goes on from an earlier run of the same plan, which may have left nothing to do."""
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
    return Start(job, fingerprints, run.path, finished, num_finished, is_complete, other_model=other_model)


def _num_trials(plan: TaskPlan) -> int:
    return len(plan.samples) * plan.num_trials


def _same_run(runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str]) -> EarlierRun | None:
    """The newest run of the same plan with the same models, whatever became of it."""
    identity = identity_of(plan.header())
    # A plan that asks no model can be gone on from whatever was named as the evaluated one.
    ignored = set() if "" in models else {""}
    for run in runs:
        same_models = {key: name for key, name in run.models.items() if key not in ignored} == models
        if identity_of(run.plan) == identity and same_models and is_intact(run.plan):
            return run
    return None


def _may_stand_in(run: EarlierRun, plan: TaskPlan, settings: RunSettings) -> bool:
    """Whether a run of the same plan may be taken in place of a new one."""
    header = plan.header()
    same = all(run.plan.get(key) == header[key] for key in ("specification", "fingerprints"))
    return same and _is_cached(run, settings)


def _same_solver(
    runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str], settings: RunSettings
) -> EarlierRun | None:
    """The newest finished run that asked the same models the same questions, if there is a solver."""
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
    """Whether a run may be used again: with other limits, the same sample may end otherwise."""
    limits = (settings.time_limit, settings.token_limit, settings.cost_limit)
    return run.status == "success" and run.limits == limits and run.plan.get("cache") != "no-cache"


def _fingerprints(header: Mapping[str, Any], keys: Sequence[str]) -> list[str | None]:
    fingerprints = header.get("fingerprints") or {}
    return [fingerprints.get(key) for key in keys]


def _number(header: Mapping[str, Any]) -> int:
    """Number of the run: repeated runs are there to differ, so none of them stands in for another."""
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
