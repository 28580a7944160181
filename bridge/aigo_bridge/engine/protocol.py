"""Inputs and outputs of an engine: jobs and settings, gaps and progress, logs and evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from aigo_bridge.engine.recording import Recording
    from aigo_bridge.plan.logged_plan import LoggedPlan
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.records import StoredNumbers, TrialRecord


class Fidelity(Enum):
    """Fidelity of an engine for one part of a plan."""

    EXACT = "exact"
    """Same inputs, same metrics."""
    APPROXIMATE = "approximate"
    """Runs with a stated difference, which the evidence records."""
    UNSUPPORTED = "unsupported"
    """Rejected before any model call."""


@dataclass(frozen=True)
class Gap:
    """Difference between an engine and the plan, stated before anything runs."""

    part: str
    """Affected part of the task, for example `scorers[1] (rag_checker)`."""
    reason: str
    """Description of the lost or different behaviour."""
    fidelity: Fidelity
    hint: str | None = None
    """Suggestion for the user."""


@dataclass(frozen=True)
class Retry:
    """Failed model call that will be repeated."""

    model: str
    """Model name for the engine."""
    attempt: int
    """Number of the failed attempt, from 1."""
    wait: float
    """Seconds until the next attempt."""
    reason: str
    """Reason for the failure."""


@dataclass(frozen=True)
class ProgressTotals:
    """Totals of the finished trials for progress output. The evidence does not contain them."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Score → mean of its values so far. The name includes the scorer if there are several, and the task if
    the run has several.
    """
    tokens: int | None = None
    """Number of tokens used so far; `None` if unknown."""
    cost: float | None = None
    """Cost in the currency of the engine's price table; `None` if the table lacks the prices."""
    retries: int = 0
    """Number of calls that were or will be repeated."""


NOTHING = ProgressTotals()


@dataclass(frozen=True)
class Progress:
    """Progress of a run, passed to `RunSettings.on_progress` after each trial and before each retry."""

    done: int
    """Number of finished trials, including failed ones."""
    total: int
    """Number of trials in the whole run (samples × trials)."""
    failed: int
    """Number of trials that ended with a solver error."""
    sample_id: str | int | None = None
    """Sample whose trial has just finished; `None` at the start."""
    error: str | None = None
    """First line of the trial's error, if it failed."""
    task: str | None = None
    """Name of the trial's plan (`TaskPlan.name`); `None` at the start."""
    trials: bool = False
    """Whether samples have several trials, so that the numbers do not count samples."""
    trial: int | None = None
    """Number of the trial, from 0; `None` at the start and if each sample has one trial."""
    retry: Retry | None = None
    """Call that will be repeated; `None` after a finished trial or at the start."""
    totals: ProgressTotals = field(default_factory=lambda: NOTHING)
    """Totals of the trials so far."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Name of each plan of the run → its number of trials; empty if unknown."""


EarlierRuns = Literal["ignore", "resume", "reuse"]
"""Use of earlier runs in the same folder.

`ignore`: they are not used. `resume`: the newest run of the same plan with the same models is finished if
it is incomplete. `reuse`: a finished run that may be cached is reused; otherwise, solver outputs of such a
run of the same solver are scored again.
"""


@dataclass(frozen=True)
class Job:
    """One plan of a run, with its models and its use of earlier runs."""

    plan: TaskPlan
    model: str | None = None
    """Name of the evaluated model for the engine; `None` for tasks that do not call a model."""
    model_map: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key → model name for the engine, for judges and other models of the task."""
    earlier: EarlierRuns = "ignore"
    """Use of earlier runs."""
    tolerated: int | None = None
    """Number of samples that may fail. After one more failure, the job does not start further samples and can
    be resumed. `None` for any number.
    """


def earlier_runs(plan: TaskPlan, *, resume: bool) -> EarlierRuns:
    """Return the use of earlier runs, from the user's choice to resume and the cache policy of the plan."""
    return "resume" if resume else "reuse" if plan.cache == "reuse" else "ignore"


@dataclass(frozen=True)
class RunSettings:
    """Settings for running jobs together. They do not affect the results."""

    out: Path
    """Folder for the native logs. It is created if it is missing."""
    max_connections: int | None = None
    """Maximum number of concurrent model calls; `None` for the default of the engine."""
    max_samples: int | None = None
    """Maximum number of concurrent samples; `None` for the default of the engine."""
    attempt_timeout: int | None = None
    """Maximum seconds for one attempt of a model call before it fails and is repeated; `None` for the default
    of the model's client.
    """
    time_limit: int | None = None
    """Maximum seconds for one sample; `None` for unlimited."""
    token_limit: int | None = None
    """Maximum tokens for one sample; `None` for unlimited."""
    cost_limit: float | None = None
    """Maximum cost of one sample, in the currency of the engine's price table; `None` for unlimited."""
    on_progress: Callable[[Progress], None] | None = None
    """Called in the engine's thread after each finished trial and before each repeated call."""
    recording: Recording | None = None
    """Records or answers all model calls; `None`: the models are called, and nothing is recorded."""
    on_restart: Callable[[str], None] | None = None
    """Called with the reason before the first call of a job that starts again instead of resuming."""


@dataclass(frozen=True)
class LogRef:
    """Location of an engine's native log."""

    engine: str
    path: Path
    reused: int = 0
    """Number of trials that were reused from an earlier run, including their scores."""
    earlier: Path | None = None
    """Native log of the earlier run that was resumed or rescored; `None` without an earlier run."""
    replayed: bool = False
    """Whether only solver outputs were reused and scored again."""
    other_model: bool = False
    """Whether a model of the earlier run is known to have changed, although it has the same name."""
    error: str | None = None
    """Reason why the run as a whole failed, if the engine could not write it to the log (for example on a
    full disk); `None` otherwise.
    """


@dataclass(frozen=True)
class Execution:
    """Time and status of a native run."""

    status: str
    """`success`, or the engine's term for another status (`error`, `cancelled`, `started`)."""
    started_at: float
    """Start time, in Unix seconds."""
    ended_at: float
    """End time, in Unix seconds. Equal to the start time if the run did not end, or if the recorded end is
    before the start.
    """
    error: str | None = None
    """Reason why the run as a whole failed; `None` otherwise."""
    model_usage: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Model name for the engine → `num_prompt_tokens` and `num_completion_tokens` of the whole run."""

    def __post_init__(self) -> None:
        # The system clock may have been changed during the run, and a log may contain any value.
        started = self.started_at if 0 <= self.started_at < math.inf else 0.0
        ended = self.ended_at if started <= self.ended_at < math.inf else started
        object.__setattr__(self, "started_at", started)
        object.__setattr__(self, "ended_at", ended)


@dataclass(frozen=True)
class Evidence:
    """Content of one engine log."""

    plan: LoggedPlan
    """Plan in the log (without rows), as data that is never executed."""
    execution: Execution
    models: Mapping[str, str]
    """AI GO model key (`""` for the evaluated model) → engine's name of the model that answered."""
    trials: Callable[[], Iterator[TrialRecord]]
    """Opens a new stream of trial records in the order of the plan. The trials of a sample are
    consecutive.
    """
    numbers: StoredNumbers | None = None
    """Results of code and templates in the log; `None` if the log does not contain them."""


# Gaps common to all engines


def contradictions(plan: TaskPlan) -> Sequence[Gap]:
    """Return parts of a plan that contradict each other."""
    if plan.entity == "system":
        return []
    gaps = [*_unasked_likelihoods(plan)]
    solver = plan.benchmark.solver
    if solver is None or solver.postprocessor is None:
        return gaps
    reason = (
        "is called once with the rows of the dataset, but the post-processor creates other rows, sample by"
        " sample"
    )
    return gaps + [
        Gap(f"scorers[{number}] ({scorer.type})", reason, Fidelity.UNSUPPORTED, "use a python scorer")
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.sees_all_samples
    ]


def sandboxed_parts(plan: TaskPlan) -> Sequence[str]:
    """Return parts of a plan that execute model output and therefore need an engine with a sandbox."""
    if plan.entity == "system":
        return []
    benchmark = plan.benchmark
    tools = [f"solver ({benchmark.solver.type})"] if plan.runs_tools and benchmark.solver is not None else []
    judged = {f"scorers ({scorer.type})": None for scorer in benchmark.scorers if scorer.runs_answers}
    return [*tools, *judged]


def likelihood_gaps(plan: TaskPlan) -> Sequence[Gap]:
    """Return gaps of an engine whose models generate texts but do not return likelihoods of given texts.

    Outputs that are scored again contain the likelihoods, so such plans do not have a gap.
    """
    if plan.entity == "system" or not plan.calls_model:
        return []
    reason = "compares log-likelihoods of given texts, which this engine's models do not return"
    return [
        Gap(part, reason, Fidelity.UNSUPPORTED, "--engine lighteval --model transformers/PATH")
        for part in _compared_by_likelihood(plan)
    ]


def _unasked_likelihoods(plan: TaskPlan) -> Sequence[Gap]:
    """Return gaps of likelihood scorers. They need exactly one prompt, which the row must determine."""
    solver = plan.benchmark.solver
    if solver is None or not plan.calls_model:
        return []
    if solver.type != "single_turn_solver":
        reason = f"compares log-likelihoods after one prompt, which {solver.type!r} does not have"
    elif solver.postprocessor is not None:
        reason = "compares log-likelihoods after a prompt, which rows of a post-processor do not have"
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
