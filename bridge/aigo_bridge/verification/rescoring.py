"""Whether the scorers of the user's own task give the stored scores again, from the stored outputs.

Scorers that need nothing but the output are run: our own, and the author's code in the worker, as in a run.
Judges are not asked (their answers may differ each time), and code that a model wrote is not run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from aigo_bridge.dtypes import SampleEvidence, SampleTrialEvidence, ScoresData
from aigo_bridge.errors import BridgeError, SampleError
from aigo_bridge.execution.program import Failure, Row, SampleProgram
from aigo_bridge.models.protocol import Model
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.reading import LogReader
from aigo_bridge.scoring import CompiledScorer, compile_scorers, scorer_keys
from aigo_bridge.scoring.scorer import Outcome
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.verification.levels import Finding, Level, level
from aigo_bridge.verification.numbers import score_differences

_MANY = 64
"""Samples that are scored at a time."""


class _AsksModel(Exception):  # noqa: N818  # no error: what a scorer does
    """A scorer asked a model."""


class _NoModels:
    """Stands where models would be; whether somebody looked for one is noted."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, key: str) -> Model:
        self.asked = True
        raise SampleError(f"no model is asked here, {key!r} neither", stage="score", kind="NoModel")


def unscorable(plan: TaskPlan, number: int) -> str | None:
    """Why a scorer of a plan is not run again; `None`: it is."""
    scorer = plan.benchmark.scorers[number]
    if scorer.judge_key is not None:
        return "a model judges"
    if scorer.runs_answers:
        return "it runs code that the evaluated model wrote, for which a run has a sandbox"
    return None


async def rescored(
    plan: TaskPlan, host: SnippetHost, scorer: CompiledScorer, rows: Sequence[Row], models: _NoModels
) -> list[Outcome | Failure]:
    """What a scorer says of rows, at a time."""
    program = SampleProgram(plan, None, None, (scorer,), host, {})
    outcomes: list[Outcome | Failure | None] = [None] * len(rows)

    async def score(number: int, row: Row) -> None:
        outcomes[number] = await program.score(scorer, row, models)

    async with anyio.create_task_group() as group:
        for number, row in enumerate(rows):
            group.start_soon(score, number, row)
    return [outcome for outcome in outcomes if outcome is not None]


def compiled(plan: TaskPlan, host: SnippetHost, samples: Sequence[Sample]) -> dict[str, CompiledScorer]:
    """The scorers of a plan that are run again, by their keys.

    Raises:
        BridgeError: one cannot be compiled.
    """
    keys = scorer_keys(plan.benchmark.scorers)
    ready: dict[str, CompiledScorer] = {}
    for number, (key, spec) in enumerate(zip(keys, plan.benchmark.scorers, strict=True)):
        if unscorable(plan, number) is None:
            place = partial(_place, plan, number)
            (scorer,) = compile_scorers([spec], samples=samples, host=host, snippet_place=place)
            ready[key] = CompiledScorer(key, scorer.display_name, scorer.purpose, spec, scorer.score)
    return ready


def _place(plan: TaskPlan, number: int, _: int) -> tuple[str, int] | None:
    return plan.snippet_place("scorers", number, "compute_scores_snippet")


def check_scores(reader: LogReader, plan: TaskPlan, host: SnippetHost) -> Level:
    """The level of the scores.

    Args:
        reader: of the result, which is a valid log.
        plan: the user's own; its code is run.
        host: where that runs.
    """
    if plan.entity == "system":
        return level("scores", [], unchecked="a system task has no scorers")
    return anyio.run(_checked, reader, plan, host)


async def _checked(reader: LogReader, plan: TaskPlan, host: SnippetHost) -> Level:
    keys = scorer_keys(plan.benchmark.scorers)
    reasons = {key: reason for number, key in enumerate(keys) if (reason := unscorable(plan, number))}
    try:
        scorers = compiled(plan, host, plan.samples)
    except BridgeError as error:
        return level("scores", [], unchecked=f"the scorers cannot be made: {error}")
    models = {key: _NoModels() for key in scorers}
    findings: list[Finding] = []
    num_scores = 0
    rows_of_plan = _rows_of(plan)
    for batch in _batches(reader):
        for key, scorer in scorers.items():
            rows = [
                Row(
                    Sample(trial.sample_id, rows_of_plan.get(str(trial.sample_id), _data(trial))),
                    _output(trial),
                )
                for _, trial, _ in batch
            ]
            outcomes = await rescored(plan, host, scorer, rows, models[key])
            num_scores += len(outcomes)
            for (sample, trial, path), outcome in zip(batch, outcomes, strict=True):
                findings += _compared(scorer, sample, trial, path, outcome)
    for key, asked in models.items():
        if asked.asked:
            reasons[key] = "its code asks a model"
    findings = [finding for finding in findings if finding.scorer not in reasons]
    notes = [f"{num_scores} scores computed by {', '.join(map(repr, scorers)) or 'no scorer'}"]
    notes += [f"not run: scorer {key!r}: {reason}" for key, reason in reasons.items()]
    unchecked = f"not every scorer is run again ({'; '.join(notes[1:])})" if reasons else None
    return level("scores", findings, notes=notes, unchecked=unchecked)


_Trial = tuple[SampleEvidence, SampleTrialEvidence, tuple[str | int, ...]]


def _batches(reader: LogReader) -> Iterator[list[_Trial]]:
    batch: list[_Trial] = []
    frame = reader.frame()
    runs = (frame.evidence.runs if frame.evidence is not None else None) or ()
    for run in range(len(runs)) if runs else (None,):
        place = ("evidence",) if run is None else ("evidence", "runs", run)
        for number, sample in enumerate(reader.samples(run=run)):
            for position, trial in enumerate(sample.trials):
                if _is_scored(trial):
                    batch.append((sample, trial, (*place, "samples", number, "trials", position)))
            if len(batch) >= _MANY:
                yield batch
                batch = []
    if batch:
        yield batch


def _is_scored(trial: SampleTrialEvidence) -> bool:
    """Whether the scorers were given this trial: its solver did not fail."""
    return not any(error.stage is not None and error.stage.value == "solver" for error in trial.errors)


def _rows_of(plan: TaskPlan) -> Mapping[str, Mapping[str, Any]]:
    """The task's own rows: evidence has null for what is no number in JSON. Empty where rows are made in the
    run.
    """
    solver = plan.benchmark.solver
    if solver is not None and solver.postprocessor is not None:
        return {}
    return {str(sample.id): sample.data for sample in plan.samples}


def _data(trial: SampleTrialEvidence) -> dict[str, Any]:
    return {} if trial.sample is None else dict(trial.sample.data)


def _output(trial: SampleTrialEvidence) -> Any:
    return None if trial.solver is None else trial.solver.output


def _compared(
    scorer: CompiledScorer,
    sample: SampleEvidence,
    trial: SampleTrialEvidence,
    path: tuple[str | int, ...],
    outcome: Outcome | Failure,
) -> Iterator[Finding]:
    stored = [score for score in trial.scores or () if score.scorer_key == scorer.key]
    shown = json.dumps(sample.sample_id, ensure_ascii=False)
    if isinstance(outcome, Failure):
        if stored:
            message = f"the result has a score, the scorer fails: {outcome.message:.200}"
            yield Finding(message, (*path, "scores"), shown, scorer.key)
        return
    computed: list[ScoresData] = [
        scores_data(scorer.key, scorer.purpose, scorer.display_name, outcome.values, outcome.metadata)
    ]
    if not stored and trial.errors:
        return  # it failed then: a time limit, say
    yield from score_differences(stored, computed, shown, path)
