"""Scorer probe: changes stored outputs, scores them again and checks how the scores react.

The outputs come from a result log and the scorers from the user's own task. Both are combined as in `score`.
Code inside the result is never executed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.execution.codec import of_result_log
from aigo_bridge.execution.program import compile_program
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.judges import with_labels_reversed
from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost
from aigo_trust.probing.evidence import Case, Probe, ProbedScorer
from aigo_trust.probing.judges import Judges
from aigo_trust.probing.outputs import texts_of, with_group_reversed, with_texts
from aigo_trust.probing.perturbation import Inapplicable, Perturbation, StoredAnswer
from aigo_trust.probing.readers import Reader, readers, unprobed
from aigo_trust.probing.registry import chosen
from aigo_trust.probing.source import source_of
from aigo_trust.probing.verdicts import answer_verdict, changed

_AT_A_TIME = 64
"""Number of answers that a scorer receives at a time."""
_OWN_FAILURES = frozenset(
    {"UnreadableJudgeReply", "ScoreOutOfRange", "UnexpectedLabel", "TemplateError", "MissingValue"}
)
"""Failures that are the judge scorer's own, not caused by a missing model answer."""
_BETWEEN = "\n\n---\n\n"
"""Separator between the displayed answers of a group."""
_CONTROL = "(stored)"
"""Name used instead of a perturbation for the stored answer, which is scored first."""


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of a probe. All of them are recorded in the evidence."""

    limit: int = 20
    """Maximum number of answers to choose."""
    seed: int = 0
    """Random seed for choosing answers and replacement answers from other samples."""
    only: tuple[str, ...] = ()
    """Names of perturbations to apply; empty for all."""
    tolerance: float = 0.0
    """Maximum score difference that is ignored."""
    right: Mapping[str, str] = field(default_factory=dict)
    """Score that marks a correct answer for each scorer key. For a labeller, the label of a correct
    answer."""
    swaps: Mapping[str, str] = field(default_factory=dict)
    """Columns that a judge compares, mapped to the columns they are swapped with."""
    mirror: Mapping[str, str] = field(default_factory=dict)
    """Labels for these columns, mapped to the labels they are swapped with."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the evidence."""
        return {
            "limit": self.limit,
            "seed": self.seed,
            "only": list(self.only),
            "tolerance": self.tolerance,
            "right": dict(self.right),
            "swaps": dict(self.swaps),
            "mirror": dict(self.mirror),
        }


@dataclass(frozen=True)
class _Stored:
    """Stored answer."""

    row: ScorerRow
    trial: int
    texts: tuple[str, ...] | None
    """Last answer, or one for each conversation of a group; `None` without text."""


@dataclass(frozen=True)
class _Work:
    """One answer to be scored."""

    scorer: CompiledScorer
    row: ScorerRow
    stored: _Stored
    perturbation: Perturbation
    stored_outcome: Score
    """Scores of the stored answer."""
    text: str | None
    """Changed answer; `None` if the perturbation changes something else."""


def probe(plan: TaskPlan, result: Path, settings: ProbeSettings, judges: Judges, host: SnippetHost) -> Probe:
    """Probe the scorers of a task with the outputs of a result.

    Args:
        plan: plan of the user's own task with the result's outputs (see `scored_again`).
        result: path of the result log.
        settings: settings of the probe.
        judges: judge models of the task. Judges without a model are not probed.
        host: host that executes task code.

    Raises:
        UsageError: the task is a system task, or an option names an unknown item.
        EvidenceError: the result cannot be read.
        SpecError, UnsupportedPlanError: a scorer cannot be created.
    """
    if plan.entity == "system":
        raise UsageError(
            f"task {plan.task.key!r} is a system task, without scorers to probe", code=Code.UNFIT_RESULT
        )
    perturbations = chosen(settings.only)
    _check_swaps(plan, settings)
    probed_scorers = readers(plan, settings.right)
    scorers = tuple(
        ProbedScorer(
            reader.key,
            reader.spec.type,
            reader.main,
            reader.explains("same"),
            unprobed(plan, reader.spec) or _without_model(reader, judges),
        )
        for reader in probed_scorers
    )
    run = _Run(plan, settings, judges, host, perturbations)
    wanted = [
        reader for reader, scorer in zip(probed_scorers, scorers, strict=True) if scorer.unprobed is None
    ]
    anyio.run(run.all, result, wanted)
    return Probe(
        source=source_of(plan, result, run.num_unsolved),
        settings=settings.to_json(),
        models=dict(judges.names),
        scorers=scorers,
        perturbations=perturbations,
        trials=tuple((stored.row.sample.id, stored.trial) for stored in run.chosen),
        cases=tuple(run.cases),
        skipped=run.skipped,
    )


def _without_model(reader: Reader, judges: Judges) -> str | None:
    key = reader.spec.judge_key
    if key is None or key in judges.names:
        return None
    return f"no model was given for the judge {key!r} (use --model-map '{key}=PROVIDER/MODEL', or --replay)"


def _check_swaps(plan: TaskPlan, settings: ProbeSettings) -> None:
    columns = set() if plan.dataset is None else set(plan.dataset.columns)
    unknown = [name for pair in settings.swaps.items() for name in pair if name not in columns]
    if unknown:
        shown = ", ".join(map(repr, sorted(columns))) or "none"
        raise UsageError(
            f"--swap: no column {unknown[0]!r} in the result; it has {shown}", code=Code.UNKNOWN_CHOICE
        )
    if settings.mirror and not settings.swaps:
        raise UsageError(
            "--mirror needs --swap: labels only change places if columns do", code=Code.OPTIONS_APART
        )


class _Run:
    """Probe in progress."""

    def __init__(
        self,
        plan: TaskPlan,
        settings: ProbeSettings,
        judges: Judges,
        host: SnippetHost,
        perturbations: Sequence[Perturbation],
    ):
        self._plan = plan
        self._settings = settings
        self._judges = judges
        self._host = host
        self._perturbations = perturbations
        # Create scorers one by one, so that one broken scorer does not stop the others.
        without = plan.benchmark.model_copy(update={"scorers": ()})
        self._program = compile_program(replace(plan, definition=without), host)
        self.chosen: list[_Stored] = []
        self.num_unsolved = 0
        self.cases: list[Case] = []
        self.skipped: dict[tuple[str, str], Counter[str]] = {}

    async def all(self, result: Path, wanted: Sequence[Reader]) -> None:
        """Choose answers, then probe each scorer."""
        await self._choose(result)
        for reader in wanted:
            await self._reader(reader)

    async def _choose(self, result: Path) -> None:
        """Choose random answers, in result order."""
        replay = of_result_log(result)
        places = [
            (number, trial)
            for number in range(len(self._plan.samples))
            for trial in range(self._plan.num_trials)
        ]
        random.Random(self._settings.seed).shuffle(places)  # noqa: S311  # not for security
        taken: dict[tuple[int, int], list[_Stored]] = {}
        num_taken = 0
        for number, trial in places:
            if num_taken >= self._settings.limit:
                break
            solution = await replay.solution(self._program, self._plan.samples[number], trial)
            if solution is None or isinstance(solution, SampleFailure):
                self.num_unsolved += 1
                continue
            taken[number, trial] = [_Stored(row, trial, texts_of(row.output)) for row in solution.rows]
            num_taken += len(solution.rows)
        self.chosen = [stored for place in sorted(taken) for stored in taken[place]]

    async def _reader(self, reader: Reader) -> None:
        scorer = self._compiled(reader)
        turned = with_labels_reversed(reader.spec)
        reversed_scorer = None if turned is None else replace(scorer, score=turned)
        # Score the stored answers again, because changed answers must not be compared with stored scores.
        stored_answers = [(scorer, stored.row, stored, _CONTROL) for stored in self.chosen]
        stored_outcomes = await self._scored(reader, stored_answers)
        works: list[_Work] = []
        for stored, outcome in zip(self.chosen, stored_outcomes, strict=True):
            for perturbation in self._perturbations:
                if perturbation.judges_only and not reader.is_judge:
                    continue
                change = self._change(reader, stored, outcome, perturbation, reversed_scorer)
                if isinstance(change, Inapplicable):
                    self._skip(reader, perturbation, change.reason)
                    continue
                row, text = change
                assert isinstance(outcome, Score)
                with_scorer = reversed_scorer if perturbation.acts_on == "labels" else scorer
                assert with_scorer is not None
                works.append(_Work(with_scorer, row, stored, perturbation, outcome, text))
        changed_answers = [(work.scorer, work.row, work.stored, work.perturbation.name) for work in works]
        changed_outcomes = await self._scored(reader, changed_answers)
        for work, outcome in zip(works, changed_outcomes, strict=True):
            self._note(reader, work, outcome)

    def _skip(self, reader: Reader, perturbation: Perturbation, reason: str) -> None:
        self.skipped.setdefault((reader.key, perturbation.name), Counter())[reason] += 1

    def _compiled(self, reader: Reader) -> CompiledScorer:
        """Return the compiled scorer, as `score` compiles it."""
        plan = self._plan
        place = partial(plan.snippet_place, "scorers", reader.number, "compute_scores_snippet")
        (scorer,) = compile_scorers(
            [reader.spec], samples=plan.samples, host=self._host, snippet_place=lambda _: place()
        )
        return replace(scorer, key=reader.key)

    async def _scored(
        self, reader: Reader, work: Sequence[tuple[CompiledScorer, ScorerRow, _Stored, str]]
    ) -> list[Score | SampleFailure]:
        outcomes: list[Score | SampleFailure | None] = [None] * len(work)

        async def score(number: int) -> None:
            scorer, row, stored, name = work[number]
            with self._judges.asked_by(stored.row.sample.id, stored.trial, f"{reader.key}/{name}"):
                outcomes[number] = await self._program.score(
                    scorer, row, self._judges, let_through=(UsageError,)
                )

        for start in range(0, len(work), _AT_A_TIME):
            try:
                async with anyio.create_task_group() as group:
                    for number in range(start, min(start + _AT_A_TIME, len(work))):
                        group.start_soon(score, number)
            except* BridgeError as errors:  # the model cannot be created, which the user must fix
                raise errors.exceptions[0] from None
        return [outcome for outcome in outcomes if outcome is not None]

    def _change(
        self,
        reader: Reader,
        stored: _Stored,
        before: Score | SampleFailure,
        perturbation: Perturbation,
        reversed_scorer: CompiledScorer | None,
    ) -> tuple[ScorerRow, str | None] | Inapplicable:
        """Return the changed row, and the changed text if the perturbation changes the answer."""
        if isinstance(before, SampleFailure):
            return Inapplicable(
                _silence(reader, before) or f"the stored answer cannot be scored ({before.kind})"
            )
        if perturbation.acts_on == "labels":
            return (stored.row, None) if reversed_scorer else Inapplicable("its labels are not ordered")
        if perturbation.acts_on == "group":
            group = with_group_reversed(stored.row.output)
            return (
                Inapplicable("it is not a group of answers")
                if group is None
                else (replace(stored.row, output=group), None)
            )
        if perturbation.acts_on == "columns":
            return self._swapped(stored.row)
        if stored.texts is None or stored.row.output is None:
            return Inapplicable("the output does not contain text")
        merit = reader.merit(before.values)
        if perturbation.expectation == "worse" and merit is not None and merit <= 0:
            return Inapplicable("the stored answer is not scored as right")
        texts = [perturbation.text(answer) for answer in self._answers(reader, stored, before)]
        for text in texts:
            if isinstance(text, Inapplicable):
                return text
        changed_texts = [text for text in texts if isinstance(text, str)]
        row = replace(stored.row, output=with_texts(stored.row.output, changed_texts))
        return row, _BETWEEN.join(changed_texts)

    def _answers(self, reader: Reader, stored: _Stored, before: Score) -> list[StoredAnswer]:
        """Return the answer, or every answer of a group, to be changed."""
        neighbours = [
            text
            for neighbour in self.chosen
            if neighbour.row.sample.id != stored.row.sample.id
            for text in neighbour.texts or ()
        ]
        seed = f"{self._settings.seed}/{stored.row.sample.id}/{stored.trial}"
        random.Random(seed).shuffle(neighbours)  # noqa: S311  # not for security
        best = reader.best_verdict()
        verdict = None if best is None else best[0]
        has_best = best is not None and not changed(best[1], before.values)
        return [StoredAnswer(text, tuple(neighbours), verdict, has_best) for text in stored.texts or ()]

    def _swapped(self, row: ScorerRow) -> tuple[ScorerRow, None] | Inapplicable:
        if not self._settings.swaps:
            return Inapplicable("no columns were named (--swap)")
        data = dict(row.sample.data)
        missing = [name for pair in self._settings.swaps.items() for name in pair if name not in data]
        if missing:
            return Inapplicable(f"column {missing[0]!r} is missing from the row")
        for column, partner in self._settings.swaps.items():
            data[column], data[partner] = data[partner], data[column]
        return replace(row, sample=Sample(row.sample.id, data)), None

    def _note(self, reader: Reader, work: _Work, after: Score | SampleFailure) -> None:
        """Record the verdict on a scored answer."""
        perturbation, sample = work.perturbation, work.stored.row.sample
        silence = _silence(reader, after) if isinstance(after, SampleFailure) else None
        if silence is not None:
            self._skip(reader, perturbation, silence)
            return
        expected = work.stored_outcome.values
        if perturbation.acts_on == "columns":
            expected = dict(_mirrored(expected, self._settings.mirror))
        verdict = answer_verdict(
            perturbation.expectation, reader, expected, after, tolerance=self._settings.tolerance
        )
        self.cases.append(
            Case(
                sample=sample.id,
                trial=work.stored.trial,
                scorer=reader.key,
                perturbation=perturbation.name,
                expectation=perturbation.expectation,
                stored_scores=work.stored_outcome.values,
                changed_scores=None if isinstance(after, SampleFailure) else after.values,
                verdict=verdict.verdict,
                reason=verdict.reason,
                answer=None if verdict.verdict == "passed" else work.text,
            )
        )


def _silence(reader: Reader, failure: SampleFailure) -> str | None:
    """Return why a judge gave no answer, which is not evidence about the scorer; `None` for a scorer
    failure.
    """
    if not reader.is_judge or failure.kind in _OWN_FAILURES:
        return None
    if failure.kind == "NotRecorded":
        return "the judge's reply is not in the cassette"
    return f"the judge did not answer ({failure.kind})"


def _mirrored(values: Mapping[str, Any], mirror: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    labels = {**mirror, **{partner: label for label, partner in mirror.items()}}
    for name, value in values.items():
        yield name, labels.get(value, value) if isinstance(value, str) else value
