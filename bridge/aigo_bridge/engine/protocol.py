"""What goes into an engine and comes out of it: jobs and settings, gaps and progress, logs and evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from aigo_bridge.engine.tape import Tape
    from aigo_bridge.plan.logged_plan import LoggedPlan
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.records import StoredNumbers, TrialRecord


class Fidelity(Enum):
    """How faithfully an engine carries out one part of a plan."""

    EXACT = "exact"
    """Same inputs, same numbers."""
    APPROXIMATE = "approximate"
    """Runs, with a stated difference; recorded in the evidence."""
    UNSUPPORTED = "unsupported"
    """Refused before any model call."""


@dataclass(frozen=True)
class Gap:
    """One departure of an engine from the plan, stated before anything runs."""

    part: str
    """The part of the task concerned, e.g. `scorers[1] (rag_checker)`."""
    reason: str
    """What is lost or different."""
    fidelity: Fidelity
    hint: str | None = None
    """What the user can do about it."""


@dataclass(frozen=True)
class Retry:
    """A call of a model has failed, and will be made again."""

    model: str
    """The engine's name of the model."""
    attempt: int
    """Number of the attempt that failed, from 1."""
    wait: float
    """Seconds until the next one."""
    reason: str
    """Why it failed."""


@dataclass(frozen=True)
class ProgressTotals:
    """What the trials that have finished came to: for people who watch, and in no evidence."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Score → mean of its numbers so far; with its scorer where there are several, with its task where a run
    has several."""
    tokens: int | None = None
    """Tokens used so far; `None`: nothing is known of them."""
    cost: float | None = None
    """What they cost, in the currency of the engine's price table; `None`: it knows no prices of them."""
    retries: int = 0
    """Calls that were made again, or will be."""


NOTHING = ProgressTotals()


@dataclass(frozen=True)
class Progress:
    """Where a run stands; handed to `RunSettings.on_progress` after every finished trial, and whenever a call
    is to be made again.
    """

    done: int
    """Trials finished, failed ones included."""
    total: int
    """Trials of the whole run (samples × trials)."""
    failed: int
    """Trials that ended with an error in the solver."""
    sample_id: str | int | None = None
    """The sample whose trial has just finished; `None` at the start."""
    error: str | None = None
    """First line of the trial's error, if it failed."""
    task: str | None = None
    """Name of the plan that the trial belongs to (`TaskPlan.name`); `None` at the start."""
    trials: bool = False
    """Whether samples have several trials, so that what is counted are not samples."""
    trial: int | None = None
    """Number of the trial, from 0; `None` at the start and where each sample has one."""
    retry: Retry | None = None
    """The call that will be made again; `None`: a trial has finished, or the run begins."""
    totals: ProgressTotals = field(default_factory=lambda: NOTHING)
    """What the trials so far came to."""


EarlierRuns = Literal["ignore", "resume", "reuse"]
"""What becomes of earlier runs in the same folder.

`ignore`: nothing. `resume`: the newest run of the same plan with the same models is finished, if it is not.
`reuse`: as `resume` for a run that came to its end and may be cached; failing that, solver outputs of such a
run of the same solver are scored again.
"""


@dataclass(frozen=True)
class Job:
    """One plan of a run, with its models and with what it may take from earlier runs."""

    plan: TaskPlan
    model: str | None = None
    """The engine's model string for the evaluated model; `None` for tasks that call none."""
    model_map: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key → the engine's model string, for judges and other models of the task."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Extra arguments for the evaluated model's provider (the engine's own names)."""
    earlier: EarlierRuns = "ignore"
    """What becomes of earlier runs."""
    reuse: Path | None = None
    """Native log of an earlier run with the same solver, rows and models: its solver outputs are scored, the
    model is not called. Samples that it lacks, or on which its solver failed, are solved."""
    tolerated: int | None = None
    """Failed samples that the job may have: with one more no further sample is begun, and the job can be
    resumed. `None`: any number."""


def earlier_runs(plan: TaskPlan, *, resume: bool) -> EarlierRuns:
    """What becomes of earlier runs: as the user wants to resume or not, and as the plan's cache is to be
    used.
    """
    return "resume" if resume else "reuse" if plan.cache == "reuse" else "ignore"


@dataclass(frozen=True)
class RunSettings:
    """How the jobs of a run are run together; nothing of it changes what is computed."""

    out: Path
    """Folder for the native logs; created when missing."""
    max_connections: int | None = None
    """Concurrent model calls; `None` leaves it to the engine."""
    max_samples: int | None = None
    """Samples in flight at a time; `None` leaves it to the engine."""
    attempt_timeout: int | None = None
    """Seconds that one attempt at a model call may take before it counts as failed, and is made again; `None`
    leaves it to the model's client."""
    time_limit: int | None = None
    """Seconds that one sample may take; `None` means no limit."""
    token_limit: int | None = None
    """Tokens that one sample may use; `None` means no limit."""
    cost_limit: float | None = None
    """Cost that one sample may incur, in the currency of the engine's price table; `None` means no limit."""
    on_progress: Callable[[Progress], None] | None = None
    """Called from the engine's own thread after each finished trial, and whenever a call is to be made
    again."""
    tape: Tape | None = None
    """What all calls of models go past, recorded or answered; `None`: nothing."""
    on_restart: Callable[[str], None] | None = None
    """Called with the reason before the first model call of a job that cannot be resumed and starts again."""


@dataclass(frozen=True)
class LogRef:
    """Where an engine put its native log."""

    engine: str
    path: Path
    reused: int = 0
    """Trials taken over from an earlier run, scores and all."""
    earlier: Path | None = None
    """Native log of the earlier run that was continued, or whose solver outputs were scored again; `None`:
    there was none."""
    replayed: bool = False
    """Whether only solver outputs were taken over, and scored again."""
    other_model: bool = False
    """Whether a model of the earlier run is known to have changed since, though it has the same name: what
    was taken over is its."""
    error: str | None = None
    """Why the run as a whole failed, as far as its engine could tell but not write into the log (a full disk,
    say); `None` when it did not."""


@dataclass(frozen=True)
class Execution:
    """When and how a native run took place."""

    status: str
    """`success`, or the engine's own word for anything else (`error`, `cancelled`, `started`)."""
    started_at: float
    """Unix time in seconds."""
    ended_at: float
    """Unix time in seconds; equal to `started_at` when the run never ended, or is said to have ended before
    it began."""
    error: str | None = None
    """Why the run as a whole failed; `None` when it did not."""
    model_usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Engine's model name → `num_prompt_tokens`, `num_completion_tokens` over the whole run."""

    def __post_init__(self) -> None:
        # The machine's clock may have been set while the run was under way, and a log may say anything.
        started = self.started_at if 0 <= self.started_at < math.inf else 0.0
        ended = self.ended_at if started <= self.ended_at < math.inf else started
        object.__setattr__(self, "started_at", started)
        object.__setattr__(self, "ended_at", ended)


@dataclass(frozen=True)
class Evidence:
    """What happened, as one engine's log tells it."""

    plan: LoggedPlan
    """The plan as the log carries it (without the rows): data, nothing of it can be run."""
    execution: Execution
    models: Mapping[str, str]
    """AI GO model key (`""` for the evaluated model) → the engine's model name that really answered."""
    trials: Callable[[], Iterator[TrialRecord]]
    """Opens a fresh stream of trial records, those of one sample next to each other, in the plan's order."""
    numbers: StoredNumbers | None = None
    """What the run computed by code and templates, as the log has it; `None`: it has nothing of that."""


# Gaps that every engine has


def contradictions(plan: TaskPlan) -> Sequence[Gap]:
    """Parts of a plan that contradict each other."""
    if plan.entity == "system":
        return []
    gaps = [*_unasked_likelihoods(plan)]
    solver = plan.benchmark.solver
    if solver is None or solver.postprocessor is None:
        return gaps
    reason = (
        "is called once with the rows of the dataset, but the post-processor makes other rows, sample by"
        " sample"
    )
    return gaps + [
        Gap(f"scorers[{number}] ({scorer.type})", reason, Fidelity.UNSUPPORTED, "use a python scorer")
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.sees_all_samples
    ]


def sandboxed_parts(plan: TaskPlan) -> Sequence[str]:
    """Parts of a plan that run what a model wrote, and so only where an engine has a sandbox."""
    if plan.entity == "system":
        return []
    benchmark = plan.benchmark
    tools = [f"solver ({benchmark.solver.type})"] if plan.runs_tools and benchmark.solver is not None else []
    judged = {f"scorers ({scorer.type})": None for scorer in benchmark.scorers if scorer.runs_answers}
    return [*tools, *judged]


def likelihood_gaps(plan: TaskPlan) -> Sequence[Gap]:
    """What an engine cannot run whose models say texts, and not how likely given texts are.

    Outputs that are scored again hold the likelihoods, so then there is no gap.
    """
    if plan.entity == "system" or not plan.calls_model:
        return []
    reason = "compares log-likelihoods of given texts, which this engine's models do not tell"
    return [
        Gap(part, reason, Fidelity.UNSUPPORTED, "--engine lighteval --model transformers/PATH")
        for part in _compared_by_likelihood(plan)
    ]


def _unasked_likelihoods(plan: TaskPlan) -> Sequence[Gap]:
    """Likelihoods follow one prompt, so there has to be exactly one, known from the row."""
    solver = plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return []
    if solver.type != "single_turn_solver":
        reason = f"compares log-likelihoods of what follows one prompt, and {solver.type!r} has not one"
    elif solver.postprocessor is not None:
        reason = "compares log-likelihoods of what follows a prompt, and rows of a post-processor have none"
    else:
        return []
    return [
        Gap(part, reason, Fidelity.UNSUPPORTED, "use a single_turn_solver without a post-processor")
        for part in _compared_by_likelihood(plan)
    ]


def _compared_by_likelihood(plan: TaskPlan) -> Sequence[str]:
    return [
        f"scorers[{number}] ({scorer.type}, loglikelihood)"
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.compares_likelihoods
    ]
