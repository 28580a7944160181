"""`contains`: whether the answer contains the expected text."""

from typing import Literal

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.scorer import Score, ScorerType
from aigo_bridge.scoring.variables import answer_text, render_compared
from aigo_bridge.spec.metrics import MeanMetric
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.templates import SampleTemplate


class ContainsScorer(ScorerSpec):
    """`contains`: 1.0 if the expected text is in the answer, otherwise 0.0."""

    scores = frozenset({"contains"})
    usual_metrics = (MeanMetric(type="mean", field="contains", name="hits"),)
    templates = ("expected",)
    previewed = ("expected",)
    truth = "expected"
    answer = "needed"
    is_extension = True

    type: Literal["contains"]
    expected: str
    """Template over `sample`."""


class Contains:
    """Scores one answer."""

    def __init__(self, spec: ContainsScorer):
        self._expected = SampleTemplate(spec.expected)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        """Return the score of one sample."""
        expected = render_compared(self._expected, {"sample": sample.data}, "expected")
        return Score({"contains": float(expected in answer_text(output))})


CONTAINS = ScorerType(ContainsScorer, lambda scorer, _: Contains(scorer))
