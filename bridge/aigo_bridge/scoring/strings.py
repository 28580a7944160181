"""Scorers that compare text: `string_equals`, `string_equals_mcqa` and `bleu`.

`bleu` is sentence BLEU, computed by sacrebleu. AI GO documents a score in [0, 1], but no tokenizer, order or
smoothing. aigo-bridge uses sacrebleu's recommendations for single sentences: 13a tokens, n-grams up to 4 but
not longer than the answer (effective order), exponential smoothing of orders without a match. The signature
in the metadata contains all settings and the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, TemplateError, UnsupportedPlanError
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.process import core_command
from aigo_bridge.scoring.likelihoods import MostLikelyChoice, preview
from aigo_bridge.scoring.scorer import NO_CHOICE, RunContext, Score, ScoreFunction, ScorerType
from aigo_bridge.scoring.variables import answer_text, looks_at_output, render_compared, variables
from aigo_bridge.spec.scorers import BleuScorer, StringEqualsMCQAScorer, StringEqualsScorer
from aigo_bridge.templates import SampleTemplate, as_list

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU


SETTINGS: dict[str, Any] = {
    "effective_order": True,
    "tokenize": "13a",
    "smooth_method": "exp",
    "max_ngram_order": 4,
}
"""Settings for sacrebleu."""


class _Compared:
    """Base class for comparisons of the ground truth with the value or the answer."""

    def __init__(self, spec: StringEqualsScorer | BleuScorer):
        self._ground_truth = SampleTemplate(spec.ground_truth)
        self._value = None if spec.value is None else SampleTemplate(spec.value)
        self._looks_at_output = looks_at_output(self._ground_truth, self._value)

    def texts(self, sample: Sample, output: SolverOutput | None) -> tuple[str, str]:
        """Return ground truth and answer."""
        values = variables(sample, output if self._looks_at_output else None)
        truth = render_compared(self._ground_truth, values, "ground_truth")
        answer = answer_text(output) if self._value is None else render_compared(self._value, values, "value")
        return truth, answer


class StringEquals(_Compared):
    """Scorer that gives 1.0 if the value equals the ground truth exactly, without trimming or case
    folding.
    """

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        truth, answer = self.texts(sample, output)
        return Score(
            {"is_correct": 1.0 if answer == truth else 0.0}, {"answer_gt": truth, "answer_pred": answer}
        )


class Bleu(_Compared):
    """Scorer with `bleu_score` in [0, 1]; the ground truth is the only reference.

    An empty answer scores 0.0. An empty ground truth is an error of the sample, because no answer could match
    it.
    """

    def __init__(self, spec: BleuScorer):
        super().__init__(spec)
        self._bleu = _sentence_bleu()

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        truth, answer = self.texts(sample, output)
        if not truth.strip():
            raise SampleError(
                "the ground truth is empty, expected a text to compare with",
                stage="score",
                kind="EmptyGroundTruth",
            )
        percent = self._bleu.sentence_score(answer, [truth]).score
        signature = str(self._bleu.get_signature())
        metadata = {"answer_gt": truth, "answer_pred": answer, "signature": signature}
        # Rounding can give equal texts slightly more than 100.
        return Score({"bleu_score": min(percent / 100, 1.0)}, metadata)


def _sentence_bleu() -> BLEU:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise UnsupportedPlanError(
            f"scorer 'bleu' needs sacrebleu; run: {core_command('sacrebleu')}", code=Code.MISSING_PACKAGE
        ) from error
    return BLEU(**SETTINGS)


class StringEqualsMCQA:
    """Scorer that gives 1.0 if the answer's first character is the letter of the correct choice.

    Whitespace is not stripped, and text after the first character is ignored (observed with release 3.17):
    `"B) Oslo"` predicts `B`, `" B"` predicts a space, `""` predicts nothing. The metadata records whether the
    letter is one of the choices; this does not affect the score.
    """

    def __init__(self, spec: StringEqualsMCQAScorer):
        self._truth = SampleTemplate(spec.ground_truth_choice)
        self._choices = (
            SampleTemplate(spec.choices) if isinstance(spec.choices, str) else [str(c) for c in spec.choices]
        )
        listed = self._choices if isinstance(self._choices, SampleTemplate) else None
        self._looks_at_output = looks_at_output(self._truth, listed)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        values = variables(sample, output if self._looks_at_output else None)
        truth = render_compared(self._truth, values, "ground_truth_choice")
        choices = self._letters(values)
        predicted = answer_text(output)[:1]
        metadata = {
            "ground_truth_choices": choices,
            "ground_truth_correct_choice": truth,
            "predicted_choice": predicted,
            "completion_validity": "valid" if predicted in choices else "invalid",
            **({} if truth in choices else {NO_CHOICE: False}),
        }
        return Score({"is_correct": 1.0 if predicted == truth else 0.0}, metadata)

    def _letters(self, values: dict[str, object]) -> list[str]:
        if isinstance(self._choices, list):
            return self._choices
        try:
            letters = as_list(self._choices.evaluate(**values))
        except TemplateError as error:
            raise SampleError(f"choices: {error}", stage="score", kind="TemplateError") from error
        if not all(isinstance(letter, str) for letter in letters):
            raise SampleError(
                f"choices: found {letters!r}, expected a list of texts", stage="score", kind="InvalidChoices"
            )
        return letters


def _choice(scorer: StringEqualsMCQAScorer, context: RunContext) -> ScoreFunction:
    return MostLikelyChoice(scorer) if scorer.compares_likelihoods else StringEqualsMCQA(scorer)


STRING_EQUALS = ScorerType(StringEqualsScorer, lambda scorer, _: StringEquals(scorer))
STRING_EQUALS_MCQA = ScorerType(StringEqualsMCQAScorer, _choice, preview=preview)
SENTENCE_BLEU = ScorerType(BleuScorer, lambda scorer, _: Bleu(scorer))
