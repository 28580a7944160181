"""Runs of the sample program inside lighteval's own command line: with our models, or around answers that a backend has given."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import anyio
from anyio.from_thread import start_blocking_portal

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.errors import UsageError
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.program import Failure, SampleProgram, Solution, compile_program, contained
from aigo_bridge.results.assembling import Tally, count_samples, metrics_for
from aigo_bridge.results.trials import TrialRecord
from aigo_bridge.snippets import SnippetHost
from aigo_lighteval.calling import SAMPLE_ROW, Caller
from aigo_lighteval.evidence import trial_records
from aigo_lighteval.exporting.answers import GivenAnswer
from aigo_lighteval.exporting.commands import MODELS
from aigo_lighteval.hosting import TaskRun
from aigo_lighteval.likelihoods import likelihood_solver
from aigo_lighteval.models import HostedModel, Models, load_caller, make_caller
from aigo_lighteval.stored import as_json

NUM_ERRORS = "num_errors"
"""Under this name stands how many samples failed, beside the metrics: lighteval has no other place for it."""

logger = logging.getLogger(__name__)


@dataclass
class HostedRun(TaskRun):
    """A run whose evaluated model may have answered already."""

    given: Mapping[str, Sequence[GivenAnswer]] | None = None
    """Sample id as text → its answers, by trial; `None`: the model is still to be asked."""

    async def _solution(self, program: SampleProgram, sample: Sample, trial: int) -> Solution | Failure:
        if self.given is None:
            return await super()._solution(program, sample, trial)
        SAMPLE_ROW.set(sample.data)
        model = HostedModel("", self.given[str(sample.id)][trial], anyio.CapacityLimiter(1))
        if self.likelihoods is not None:
            return await contained(self.likelihoods.solve(program, sample, model, self.models), "solver")
        return await program.solve(sample, model, self.models)


@contextmanager
def working(
    plan: TaskPlan,
    numbers: Sequence[int],
    evaluated: str | None = None,
    given: Mapping[str, Sequence[GivenAnswer]] | None = None,
) -> Iterator[HostedRun]:
    """A run of some samples of a plan: of those that lighteval has chosen, in the plan's order.

    Args:
        plan: of the whole task.
        numbers: places of the samples in it.
        evaluated: the evaluated model, as users name it; `None`: it is not asked, or has answered already.
        given: its answers by sample id as text, by trial.
    """
    part = replace(plan, samples=tuple(plan.samples[number] for number in numbers))
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        others = {key: make_caller(name) for key, name in named_models(part).items()}
        model = None if evaluated is None or not plan.calls_model else make_caller(evaluated)
        for caller in [*others.values(), *([] if model is None else [model])]:
            load_caller(caller)
            stack.callback(portal.call, caller.aclose)
        host = SnippetHost()
        stack.callback(host.close)
        limited = {key: (caller, _limiter(caller)) for key, caller in others.items()}
        yield HostedRun(
            plan=part,
            program=compile_program(part, host),
            host=host,
            model=None if model is None else HostedModel("", model, _limiter(model)),
            models=Models(limited, "score"),
            portal=portal,
            progress=ProgressCounter(None, len(numbers) * plan.num_trials),
            likelihoods=likelihood_solver(part),
            given=given,
        )


def _limiter(caller: Caller) -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(max(1, int(caller.max_concurrent)))


def named_models(plan: TaskPlan) -> dict[str, str]:
    """The other models of a task, from the environment.

    Raises:
        UsageError: one is missing; all are named.
    """
    pairs = [pair.partition("=") for pair in os.environ.get(MODELS, "").split(",") if pair.strip()]
    named = {key.strip(): name.strip() for key, _, name in pairs}
    missing = [key for key in plan.model_keys if not named.get(key)]
    if missing:
        raise UsageError(
            f"task {plan.task.key!r} asks {', '.join(map(repr, missing))}: set {MODELS}='{missing[0]}=PROVIDER/MODEL', several with commas"
            " between them"
        )
    return {key: named[key] for key in plan.model_keys}


def metrics_of_run(run: HostedRun) -> dict[str, float]:
    """The plan's metrics by `<scorer>.<name>`, and how many samples failed."""
    plan = run.plan
    records: list[TrialRecord] = []
    for place, sample in enumerate(plan.samples):
        for trial in range(plan.num_trials):
            at = (place, trial)
            records += trial_records(sample, trial, as_json(run.solved[at]), as_json(run.scored[at]), plan)
    tally = Tally(plan)
    count_samples(records, tally)
    found = {
        f"{row.scorer_key}.{row.name}": float(row.value)
        for row in metrics_for(tally, run.host).rows
        if row.value is not None and math.isfinite(float(row.value))
    }
    for error in [error for record in records for error in record.errors][:5]:
        logger.warning("a sample of %s failed: %s", plan.task.key, error.message)
    return {**found, NUM_ERRORS: float(tally.failures.num_errors)}
