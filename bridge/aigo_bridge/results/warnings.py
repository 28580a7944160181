"""Facts that lower the metrics but may not be caused by the model's answers: empty answers, masked answers,
unexpected judge labels, ground truths that match no choice, and rules that read missing scores.

The metrics remain as AI GO defines them. Each fact can be verified in the samples of the evidence (answers
and score metadata). A run prints one line for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    FunctionCall,
    GroupedSolverOutput,
    GroupedSolverTrace,
    Message,
    MessageRole,
    RAGCompletionOutput,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
)
from aigo_bridge.redaction.secrets import MASK
from aigo_bridge.results.records import PlainOutput
from aigo_bridge.scoring.scorer import NO_CHOICE, UNEXPECTED_LABEL
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import short

if TYPE_CHECKING:
    from aigo_bridge.results.records import TrialRecord
    from aigo_bridge.spec.task import ActionRuleSpec

_REDACTED = "[redacted: "
"""Prefix of the text with which an import replaces a possible API key."""

SHOWN = 3
"""Maximum number of different values to name in a line."""


@dataclass
class Doubts:
    """Counts over the trials of a result, updated while they are streamed."""

    num_answers: int = 0
    """Number of text answers of the evaluated model."""
    num_empty: int = 0
    """Number of answers that contain only whitespace, without a function call or refusal."""
    num_masked: int = 0
    """Number of trials from whose answer or row a secret, or a text that looks like one, was removed. The
    original text might have other scores.
    """
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    """Scorer key → labels that its judge gave although they are not allowed."""
    choices: dict[str, Counter[str]] = field(default_factory=dict)
    """Scorer key → ground truths that are not among the choices."""

    scores: dict[str, set[str]] = field(default_factory=dict)
    """Scorer key → names of the scores that it gave, including excluded samples."""

    def note_names(self, scorer: str, names: Iterable[str]) -> None:
        """Record the score names of a scorer."""
        self.scores.setdefault(scorer, set()).update(names)

    def note(self, record: TrialRecord) -> None:
        """Count one trial."""
        output = record.output
        outputs = _single(output.answer if isinstance(output, PlainOutput) else output)
        if not all(text.strip() for output in outputs for text in _texts(output)):
            outputs = _single(record.solver)  # Whether an answer without text is empty depends on its trace.
        for single in outputs:
            empty = is_empty(single)
            self.num_answers += empty is not None
            self.num_empty += empty is True
        self.num_masked += any(_is_masked(text) for output in outputs for text in _texts(output)) or any(
            isinstance(value, str) and _is_masked(value) for value in record.data.values()
        )
        for score in record.scores:
            metadata: Mapping[str, Any] = score.metadata or {}
            if metadata.get(UNEXPECTED_LABEL) is True:
                self.labels.setdefault(score.scorer_key, Counter())[str(metadata.get("prediction"))] += 1
            if metadata.get(NO_CHOICE) is False:
                truth = str(metadata.get("ground_truth_correct_choice"))
                self.choices.setdefault(score.scorer_key, Counter())[truth] += 1

    def lines(self, planned: Collection[str] = (), rules: Sequence[ActionRuleSpec] = ()) -> Iterator[str]:
        """Yield one line for each fact; empty for a run without doubts. Ground truths of the scorers in
        `planned` were already reported.
        """
        if self.num_empty:
            answers = "answer" if self.num_answers == 1 else "answers"
            verb, pronoun = ("is", "it is") if self.num_empty == 1 else ("are", "they are")
            yield f"{self.num_empty} of {self.num_answers} {answers} {verb} empty, and scored as {pronoun}"
        if self.num_masked:
            trials = "trial has" if self.num_masked == 1 else "trials have"
            yield (
                f"{self.num_masked} {trials} {MASK} or [redacted: …] in the answer or the row, where"
                " something was taken for a key: "
                "the original text may score differently (docs/reference/models.md#secrets)"
            )
        for key, labels in self.labels.items():
            yield (
                f"judge of {key!r} gave a label outside the allowed ones {_times(labels)}, which counts as"
                " incorrect"
            )
        for key, truths in self.choices.items():
            if key in planned:
                continue
            yield (
                f"{key!r}: the correct choice is not one of the choices {_times(truths)}, which "
                "counts as wrong"
            )
        for rule in rules:
            yield from self._unknown_scores(rule)

    def _unknown_scores(self, rule: ActionRuleSpec) -> Iterator[str]:
        """Yield the scores that a rule reads but a scorer never gave. Scores from Python are only known after
        a run.
        """
        if rule.filter.op in ("exists", "not_exists"):
            return
        from aigo_bridge.templates import SampleTemplate

        for name in sorted(SampleTemplate(rule.filter.expression).reads):
            names = self.scores.get(name[1]) if name[0] == "scores" and len(name) > 2 else None
            if names and name[2] not in names and name[2].split(".")[0] not in names:
                selects = "every" if rule.filter.op in ("not_equals", "not_in") else "no"
                listed = ", ".join(map(repr, sorted(names)[:SHOWN]))
                yield (
                    f"action rule {rule.key!r} selects {selects} sample: {name[1]!r} never gave a score"
                    f" {name[2]!r} (it gave {listed})"
                )


def is_empty(output: SingleSolverOutput | SolverTrace) -> bool | None:
    """Return whether the last answer is empty; `None` if it is missing or not a text."""
    answer = output.output
    if not isinstance(answer, ChatCompletionModelOutput | RAGCompletionOutput) or not answer.choices:
        return None
    message = answer.choices[0].message
    if message.content.strip():
        return False
    extra = message.model_extra or {}
    if message.refusal or extra.get("tool_calls") or extra.get("function_call"):
        return None
    return None if isinstance(output, SolverTrace) and _has_called(output) else True


def _texts(output: SingleSolverOutput | SolverTrace) -> Iterator[str]:
    """Yield the last text of the model in each of its choices."""
    answer = output.output
    if isinstance(answer, ChatCompletionModelOutput | RAGCompletionOutput):
        yield from (choice.message.content for choice in answer.choices)


def _is_masked(text: str) -> bool:
    return MASK in text or _REDACTED in text


def _has_called(output: SolverTrace) -> bool:
    """Return whether the model called functions after the last user message, so that its text may be
    empty.
    """
    for item in reversed(output.items):
        if isinstance(item, FunctionCall):
            return True
        if isinstance(item, Message) and item.role is MessageRole.user:
            return False
    return False


def _single(output: SolverOutput | None) -> list[SingleSolverOutput | SolverTrace]:
    if isinstance(output, GroupedSolverOutput | GroupedSolverTrace):
        group = output.solver_outputs
        return [*(group.values() if isinstance(group, dict) else group)]
    return [] if output is None else [output]


def _times(values: Counter[str]) -> str:
    number_of, different = values.total(), values.most_common(SHOWN)
    shown = ", ".join(
        short(value) + (f" ({plural(count, 'time')})" if count > 1 else "") for value, count in different
    )
    more = f" and {len(values) - SHOWN} others" if len(values) > SHOWN else ""
    return f"{plural(number_of, 'time')}: {shown}{more}"
