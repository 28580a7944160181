"""What the rows say is right, as far as that is known before a model is called: for viewers, never for scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aigo_bridge.errors import SampleError
from aigo_bridge.metrics.numbers import is_missing
from aigo_bridge.scoring.variables import render_compared
from aigo_bridge.spec import scorers as spec
from aigo_bridge.templates import SampleTemplate

Row = Mapping[str, Any]
Answers = Callable[[Row], tuple[str, ...]]
"""Row → the different texts that scorers compare with, in their order; empty where the row tells none."""


def right_answers(scorers: Sequence[spec.Scorer]) -> Answers:
    """The ground truths of a task's scorers."""
    found = [answers for scorer in scorers if (answers := _answers(scorer)) is not None]

    def answers_of(row: Row) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for answers in found for text in answers(row)))

    return answers_of


def _answers(scorer: spec.Scorer) -> Answers | None:
    match scorer:
        case spec.StringEqualsScorer() | spec.BleuScorer():
            return _rendered(scorer.ground_truth, "ground_truth")
        case spec.StringEqualsMCQAScorer():
            return _rendered(scorer.ground_truth_choice, "ground_truth_choice")
        case spec.RagCheckerScorer(target_column=str(column)):
            return lambda row: () if is_missing(row.get(column)) else (str(row[column]),)
    return None


def _rendered(source: str, field: str) -> Answers | None:
    template = SampleTemplate(source)
    if any(name[0] != "sample" for name in template.reads | template.optional_reads):
        return None

    def answers(row: Row) -> tuple[str, ...]:
        try:
            return (render_compared(template, {"sample": row}, field),)
        except SampleError:
            return ()  # an error of the sample, when it is scored

    return answers
