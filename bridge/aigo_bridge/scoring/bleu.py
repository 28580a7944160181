"""`bleu`: sentence BLEU, computed by sacrebleu.

AI GO documents a score in [0, 1] and neither tokenizer, order nor smoothing. Ours are those that sacrebleu advises for single
sentences: 13a tokens, n-grams up to 4 and never longer than the answer (effective order), exponential smoothing of orders without a match.
The signature in the metadata names all of it and the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.extras import core_command
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.variables import answer_text, looks_at_output, render_compared, variables
from aigo_bridge.spec.scorers import BleuScorer
from aigo_bridge.templates import SampleTemplate

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU


class Bleu:
    """`bleu_score` in [0, 1] of the value against the ground truth as its only reference.

    An empty answer scores 0.0; an empty ground truth is an error of the sample, as nothing could ever match it.
    """

    def __init__(self, spec: BleuScorer):
        self._ground_truth = SampleTemplate(spec.ground_truth)
        self._value = None if spec.value is None else SampleTemplate(spec.value)
        self._looks_at_output = looks_at_output(self._ground_truth, self._value)
        self._bleu = _sentence_bleu()

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        values = variables(sample, output if self._looks_at_output else None)
        truth = render_compared(self._ground_truth, values, "ground_truth")
        answer = answer_text(output) if self._value is None else render_compared(self._value, values, "value")
        if not truth.strip():
            raise SampleError(
                "the ground truth is empty, expected a text to compare with",
                stage="score",
                kind="EmptyGroundTruth",
            )
        percent = self._bleu.sentence_score(answer, [truth]).score
        metadata = {
            "answer_gt": truth,
            "answer_pred": answer,
            "signature": str(self._bleu.get_signature()),
        }
        # Equal texts come out a rounding error above 100.
        return Outcome({"bleu_score": min(percent / 100, 1.0)}, metadata)


def _sentence_bleu() -> BLEU:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise UnsupportedPlanError(
            f"scorer 'bleu' needs sacrebleu; run: {core_command('sacrebleu')}"
        ) from error
    return BLEU(effective_order=True, tokenize="13a", smooth_method="exp", max_ngram_order=4)
