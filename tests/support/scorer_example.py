"""A scorer that tasks do not have, in one file as a new one would be: how many words of the answer are in the expected text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import Issue
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.scorer import Score, ScorerType
from aigo_bridge.scoring.variables import answer_text, render_compared
from aigo_bridge.spec.base import Path
from aigo_bridge.spec.metrics import MeanMetric
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.templates import SampleTemplate


class KnownWordsScorer(ScorerSpec):
    """`known_words`: share of the answer's words that the expected text has."""

    scores = frozenset({"known_words"})
    usual_metrics = (MeanMetric(type="mean", field="known_words", name="vocabulary"),)
    templates = ("expected",)
    previewed = ("expected",)
    truth = "expected"
    answer = "needed"
    is_extension = True

    type: Literal["known_words"]
    expected: str
    """Template over `sample`: the text with the words."""
    min_length: int = 1
    """Shorter words do not count."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        if document.get("min_length") == 0:
            yield Issue("'min_length': found 0, expected 1 or more", path=(*path, "min_length"))


class KnownWords:
    """Scores one answer."""

    def __init__(self, spec: KnownWordsScorer):
        self._expected = SampleTemplate(spec.expected)
        self._min_length = spec.min_length

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        known = render_compared(self._expected, {"sample": sample.data}, "expected").split()
        words = [word for word in answer_text(output).split() if len(word) >= self._min_length]
        return Score({"known_words": sum(word in known for word in words) / len(words) if words else None})


KNOWN_WORDS = ScorerType(
    KnownWordsScorer,
    lambda scorer, _: KnownWords(scorer),
    preview=lambda scorer, row: {"min_length": str(scorer.min_length)},
)
