"""Scoring of stored outputs with the user's own task, and comparison with the stored scores.

Scorers that need only the output are executed: built-in ones directly, and task code in the worker, as in a
run. Judges are not called. Their replies come from the cassette if one is provided, otherwise from the
result. Code written by a model is not executed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio

from aigo_bridge.dtypes import SampleEvidence, SampleTrialEvidence, ScoresData
from aigo_bridge.errors import BridgeError
from aigo_bridge.execution.program import SampleProgram
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import scores_data
from aigo_bridge.results.reading import LogReader
from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers, scorer_keys
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.text.plurals import plural
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.replay import Cassette
from aigo_trust.verification.levels import Finding, Level, level
from aigo_trust.verification.numbers import score_differences
from aigo_trust.verification.replies import (
    CALLS,
    CassetteReplies,
    GivenReplies,
    NoReplies,
    ScoreReplies,
    like,
    run_name,
)

_MANY = 64
"""Number of samples to score at a time."""


def unscorable(plan: TaskPlan, number: int) -> str | None:
    """Return why a scorer of a plan is not executed again; `None` if it is."""
    if plan.benchmark.scorers[number].runs_answers:
        return "it runs code that the evaluated model wrote, for which a run has a sandbox"
    return None


async def rescored(
    plan: TaskPlan,
    host: SnippetHost,
    scorer: CompiledScorer,
    rows: Sequence[ScorerRow],
    models: Sequence[GivenReplies],
) -> list[Score | SampleFailure]:
    """Return a scorer's outcome for each row. Each row has separate model replies."""
    program = SampleProgram(plan, None, None, (scorer,), host, {})
    outcomes: list[Score | SampleFailure | None] = [None] * len(rows)

    async def score(number: int, row: ScorerRow) -> None:
        outcomes[number] = await program.score(scorer, row, models[number])

    async with anyio.create_task_group() as group:
        for number, row in enumerate(rows):
            group.start_soon(score, number, row)
    return [outcome for outcome in outcomes if outcome is not None]


def compiled(plan: TaskPlan, host: SnippetHost, samples: Sequence[Sample]) -> dict[str, CompiledScorer]:
    """Return the scorers of a plan that are executed again, by key.

    Raises:
        BridgeError: a scorer cannot be compiled.
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


def check_scores(
    reader: LogReader, plan: TaskPlan, host: SnippetHost, cassette: Cassette | None = None
) -> Level:
    """Return the level of the scores.

    Args:
        reader: reader of the result, which is a valid log.
        plan: user's own plan, whose code is executed.
        host: host that executes the code.
        cassette: cassette with the judge replies; `None` to use the replies in the result.
    """
    if plan.entity == "system":
        return level("scores", [], unchecked="a system task does not have scorers")
    return anyio.run(_checked, reader, plan, host, cassette)


@dataclass
class _Judged:
    """Use of stored replies by a scorer's models."""

    num_given: int = 0
    num_missing: int = 0
    """Number of trials without stored replies."""
    reason: str = ""
    """Reason for the first trial without replies."""


async def _checked(reader: LogReader, plan: TaskPlan, host: SnippetHost, cassette: Cassette | None) -> Level:
    keys = scorer_keys(plan.benchmark.scorers)
    reasons = {key: reason for number, key in enumerate(keys) if (reason := unscorable(plan, number))}
    try:
        scorers = compiled(plan, host, plan.samples)
    except BridgeError as error:
        return level("scores", [], unchecked=f"the scorers cannot be created: {error}")
    judged = {key: _Judged() for key in scorers}
    findings: list[Finding] = []
    num_scores = 0
    rows_of_plan = _rows_of(plan)
    for batch in _batches(reader):
        for key, scorer in scorers.items():
            rows = [_row(scored.trial, rows_of_plan) for scored in batch]
            replies = [_replies(scorer, plan, scored, cassette) for scored in batch]
            outcomes = await rescored(plan, host, scorer, rows, replies)
            for scored, reply, outcome in zip(batch, replies, outcomes, strict=True):
                judged[key].num_given += reply.num_given
                stored = _stored(scorer, scored.trial)
                if reply.missing is not None and (stored is not None or not scored.trial.errors):
                    judged[key].num_missing += 1
                    judged[key].reason = judged[key].reason or reply.missing
                if reply.missing is not None:
                    continue
                num_scores += 1
                findings += _compared(scorer, scored, outcome, reply)
    num_replies = sum(scored.num_given for scored in judged.values())
    source = "the result" if cassette is None else cassette.path.name
    notes = [f"{plural(num_scores, 'score')} computed by {', '.join(map(repr, scorers)) or 'no scorer'}"]
    if num_replies:
        notes.append(
            f"{plural(num_replies, 'reply', 'replies')} of models were taken from {source}; no"
            " model was called"
        )
    unrun = [f"not run: scorer {key!r}: {reason}" for key, reason in reasons.items()]
    unrun += [
        f"scorer {key!r}: {plural(scored.num_missing, 'score')} not computed: {scored.reason}"
        for key, scored in judged.items()
        if scored.num_missing
    ]
    unchecked = f"some scorers are not run again ({'; '.join(unrun)})" if unrun else None
    return level("scores", findings, notes=[*notes, *unrun], unchecked=unchecked)


def _replies(scorer: CompiledScorer, plan: TaskPlan, each: _Trial, cassette: Cassette | None) -> GivenReplies:
    if scorer.spec.judge_key is None:
        return NoReplies(f"scorer {scorer.key!r} calls a model, and its replies are not stored")
    if cassette is not None:
        solver = plan.benchmark.solver
        sample_id = each.trial.sample_id
        return CassetteReplies(
            cassette,
            run_name(plan, each.run),
            (sample_id, each.trial.index, f"{scorer.key}/{sample_id}"),
            any_sample=solver is not None and solver.postprocessor is not None,
        )
    score = _stored(scorer, each.trial)
    calls = None if score is None else (score.metadata or {}).get(CALLS)
    if isinstance(calls, list):
        return ScoreReplies(calls)
    if score is None:
        return NoReplies(
            "the score is missing, and so are the replies of its judge (they may be in the cassette)"
        )
    return NoReplies(
        "the result does not contain replies of its judge (pass the cassette of the run with --replay)"
    )


@dataclass(frozen=True)
class _Trial:
    """Trial in a result."""

    sample: SampleEvidence
    trial: SampleTrialEvidence
    run: int | None
    """Index of the run; `None` if the task was run once."""
    path: tuple[str | int, ...]


def _batches(reader: LogReader) -> Iterator[list[_Trial]]:
    batch: list[_Trial] = []
    frame = reader.frame()
    runs = (frame.evidence.runs if frame.evidence is not None else None) or ()
    for run in range(len(runs)) if runs else (None,):
        place = ("evidence",) if run is None else ("evidence", "runs", run)
        for number, sample in enumerate(reader.samples(run=run)):
            for position, trial in enumerate(sample.trials):
                if _is_scored(trial):
                    path = (*place, "samples", number, "trials", position)
                    batch.append(_Trial(sample, trial, run, path))
            if len(batch) >= _MANY:
                yield batch
                batch = []
    if batch:
        yield batch


def _is_scored(trial: SampleTrialEvidence) -> bool:
    """Return whether the trial was scored, because its solver succeeded."""
    return not any(error.stage is not None and error.stage.value == "solver" for error in trial.errors)


def _rows_of(plan: TaskPlan) -> Mapping[str, Mapping[str, Any]]:
    """Return the task's own rows; empty if rows are generated during the run.

    They are needed because evidence stores null for numbers that JSON cannot represent.
    """
    solver = plan.benchmark.solver
    if solver is not None and solver.postprocessor is not None:
        return {}
    return {str(sample.id): sample.data for sample in plan.samples}


def _row(trial: SampleTrialEvidence, rows: Mapping[str, Mapping[str, Any]]) -> ScorerRow:
    """Return the row that was scored in a trial."""
    data = rows.get(str(trial.sample_id), {} if trial.sample is None else dict(trial.sample.data))
    return ScorerRow(Sample(trial.sample_id, data), None if trial.solver is None else trial.solver.output)


def _stored(scorer: CompiledScorer, trial: SampleTrialEvidence) -> ScoresData | None:
    """Return a scorer's stored score in a trial; `None` if missing."""
    return next((score for score in trial.scores or () if score.scorer_key == scorer.key), None)


def _compared(
    scorer: CompiledScorer, each: _Trial, outcome: Score | SampleFailure, replies: GivenReplies
) -> Iterator[Finding]:
    stored = [score for score in each.trial.scores or () if score.scorer_key == scorer.key]
    shown = json.dumps(each.sample.sample_id, ensure_ascii=False)
    scores = (*each.path, "scores")
    metadata = (*scores, _number(stored, each.trial), "metadata") if stored else scores
    if stored and (replies.problem is not None or (surplus := replies.rest()) is not None):
        problem = replies.problem or surplus
        message = f"the judge's prompt has changed: {problem}"
        yield Finding(message, (*metadata, *replies.place), shown, scorer.key, CALLS)
        return
    if isinstance(outcome, SampleFailure):
        if stored:
            message = f"the result has a score, the scorer fails: {outcome.message:.200}"
            yield Finding(message, scores, shown, scorer.key)
        return
    if not stored and each.trial.errors:
        return  # the scorer failed in the run, for example at a time limit
    computed = scores_data(scorer.key, scorer.purpose, scorer.display_name, outcome.values, outcome.metadata)
    yield from score_differences(stored, [computed], shown, each.path)
    if stored and scorer.spec.judge_key is not None:
        for path, message in _metadata_differences(stored[0].metadata or {}, computed.metadata or {}):
            field = ".".join(step for step in path if isinstance(step, str))
            yield Finding(message, (*metadata, *path), shown, scorer.key, field)


def _number(stored: Sequence[ScoresData], trial: SampleTrialEvidence) -> int:
    return next(number for number, score in enumerate(trial.scores or ()) if score is stored[0])


def _metadata_differences(
    stored: Mapping[str, Any], computed: Mapping[str, Any]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the differences between the stored and the computed metadata of a judge's score."""
    for name in dict.fromkeys([*stored, *computed]):
        if name == CALLS:
            yield from _call_differences(stored.get(CALLS), computed.get(CALLS))
        elif not like(stored.get(name), computed.get(name)):
            message = f"the result has {stored.get(name)!r:.60}, the replies give {computed.get(name)!r:.60}"
            yield (name,), message


def _call_differences(stored: Any, computed: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if not isinstance(stored, list) or not isinstance(computed, list) or len(stored) != len(computed):
        many = [len(calls) if isinstance(calls, list) else 0 for calls in (stored, computed)]
        yield (CALLS,), f"the result has {plural(many[0], 'call')} of the judge, there were {many[1]}"
        return
    for number, (one, other) in enumerate(zip(stored, computed, strict=True)):
        reply, messages = (
            one.get(name) if isinstance(one, Mapping) else None for name in ("reply", "messages")
        )
        if not like(reply, other["reply"]):
            message = f"the result has {reply!r:.80}, recorded is {other['reply']!r:.80}"
            yield (CALLS, number, "reply"), message
        if not like(messages, other["messages"]):
            message = f"the request differs: {'; '.join(request_differences(other['messages'], messages))}"
            yield (CALLS, number, "messages"), message
