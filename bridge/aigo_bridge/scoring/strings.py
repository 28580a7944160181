"""Scorers that compare text: `string_equals` and `string_equals_mcqa`."""

from __future__ import annotations

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.variables import answer_text, looks_at_output, render_compared, variables
from aigo_bridge.spec.scorers import StringEqualsMCQAScorer, StringEqualsScorer
from aigo_bridge.templates import SampleTemplate, as_list

NO_CHOICE = "ground_truth_is_choice"
"""In the metadata of a score, false: the right choice is none of the choices, so that no answer is right."""


class StringEquals:
    """1.0 if the value equals the ground truth, character for character; no trimming, no folding of case."""

    def __init__(self, spec: StringEqualsScorer):
        self._ground_truth = SampleTemplate(spec.ground_truth)
        self._value = None if spec.value is None else SampleTemplate(spec.value)
        self._looks_at_output = looks_at_output(self._ground_truth, self._value)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        values = variables(sample, output if self._looks_at_output else None)
        truth = render_compared(self._ground_truth, values, "ground_truth")
        answer = answer_text(output) if self._value is None else render_compared(self._value, values, "value")
        return Outcome(
            {"is_correct": 1.0 if answer == truth else 0.0}, {"answer_gt": truth, "answer_pred": answer}
        )


class StringEqualsMCQA:
    """1.0 if the answer's first character is the letter of the right choice.

    Nothing is stripped and nothing behind the first character is looked at (observed with release 3.17): `"B) Oslo"`
    predicts `B`, `" B"` predicts a space, `""` predicts nothing. Whether the letter is one of the choices is metadata and
    does not change the score.
    """

    def __init__(self, spec: StringEqualsMCQAScorer):
        self._truth = SampleTemplate(spec.ground_truth_choice)
        self._choices = (
            SampleTemplate(spec.choices) if isinstance(spec.choices, str) else [str(c) for c in spec.choices]
        )
        listed = self._choices if isinstance(self._choices, SampleTemplate) else None
        self._looks_at_output = looks_at_output(self._truth, listed)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
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
        return Outcome({"is_correct": 1.0 if predicted == truth else 0.0}, metadata)

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
