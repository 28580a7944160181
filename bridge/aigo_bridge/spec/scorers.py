"""Specifications of AI GO's scorers and aigo-bridge's own."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.spec.base import (
    OneOf,
    Path,
    SpecModel,
    Templated,
    TemplatedModelKey,
    TypeTable,
    has_marker,
    not_finite,
    number,
    texts,
)
from aigo_bridge.spec.metrics import FrequencyMetric, MeanMetric
from aigo_bridge.spec.scorer import Normalisation, ScorerSpec

RagScore = Literal[
    "recall",
    "precision",
    "f1_score",
    "claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
]
RagMode = Literal["all_claims", "required_only", "required_and_optional"]

# The documented default prompts; a different wording would give different scores than the platform's.
JUDGE_SYSTEM_PROMPT = "You are a helpful assistant and will be used to judge the output of another model."
LABELER_SYSTEM_PROMPT = (
    "You are a helpful assistant and will be used to label the output of another model or a dataset sample."
)


# Constructed without validation: building the validators would slow down every command.
_ACCURACY = (MeanMetric.model_construct(type="mean", field="is_correct", name="accuracy"),)


class StringEqualsScorer(ScorerSpec):
    """`is_correct`: 1.0 if the text equals the ground truth exactly, otherwise 0.0."""

    scores = frozenset({"is_correct"})
    right_or_wrong = scores
    usual_metrics = _ACCURACY
    templates = ("ground_truth", "value")
    previewed = ("ground_truth", "value")
    truth = "ground_truth"
    compares_exactly = True
    answer = "unless_value"

    type: Literal["string_equals"]
    ground_truth: str
    """Right answer; a template over `sample`."""
    value: str | None = None
    """Answer to compare; a template over `sample` and `solver_output`. `None`: the last model message."""


class StringEqualsMCQAScorer(ScorerSpec):
    """`is_correct`: whether the first character of the answer is the letter of the correct choice.

    With `method: loglikelihood` (extension), nothing is generated: the prediction is the choice with the most
    likely continuation after the question. Only models that return likelihoods of given texts support this.
    """

    scores = frozenset({"is_correct"})
    right_or_wrong = scores
    usual_metrics = _ACCURACY
    templates = ("ground_truth_choice", "choices", "continuations")
    previewed = ("ground_truth_choice", "choices")
    truth = "ground_truth_choice"
    answer = "needed"
    takes_group = False
    extension_fields = ("method", "continuations", "length_normalisation")

    type: Literal["string_equals_mcqa"]
    ground_truth_choice: str
    """Correct letter; a template over `sample`."""
    choices: str | tuple[str, ...]
    """All letters: a list, its JSON text, or a template over `sample`. With `method: loglikelihood`, texts of
    any length.
    """
    method: Literal["first_character", "loglikelihood"] = "first_character"
    """Extension. `first_character` reads the answer; `loglikelihood` compares the likelihoods of the
    continuations.
    """
    continuations: str | tuple[str, ...] | None = None
    """Extension: one text per choice, whose likelihood directly after the prompt is measured. A list, its
    JSON text, or a template over `sample`. `None`: the choices.
    """
    length_normalisation: Normalisation = "none"
    """Extension: length that divides the log-likelihood, of the continuation (`characters`, `tokens`) or
    of its choice (`choice_characters`, `choice_bytes` in UTF-8). `pmi` subtracts the log-likelihood after
    the input's `unconditioned_query`.
    """

    @property
    def answer_choices(self) -> str | tuple[str, ...]:
        return self.choices

    @property
    def answer_texts(self) -> str | tuple[str, ...] | None:
        return self.continuations

    @property
    def compares_likelihoods(self) -> bool:
        return self.method == "loglikelihood"

    @property
    def normalisation(self) -> Normalisation:
        return self.length_normalisation if self.compares_likelihoods else "none"

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        """Comparison of multiple choice answers: by letters, or by likelihoods of continuations."""
        if document.get("method", "first_character") == "first_character":
            for name, usual in (("continuations", None), ("length_normalisation", "none")):
                if document.get(name) not in (None, usual):
                    message = f"{name!r} has no effect here: answers are compared by their first character"
                    yield Issue(
                        message,
                        path=(*path, name),
                        hint="add 'method: loglikelihood'",
                        code=Code.WRONG_CHOICES,
                    )
            yield from _check_letters(document.get("choices"), (*path, "choices"))
            return
        choices, continuations = document.get("choices"), document.get("continuations")
        for name, listed in (("choices", choices), ("continuations", continuations)):
            for index, text in enumerate(listed) if isinstance(listed, list) else ():
                if text == "":
                    yield Issue(
                        f"{name!r}: an empty text has no likelihood",
                        path=(*path, name, index),
                        code=Code.WRONG_CHOICES,
                    )
        if (
            isinstance(choices, list)
            and isinstance(continuations, list)
            and len(choices) != len(continuations)
        ):
            count = f"found {len(continuations)}, expected one for each of the {len(choices)} choices"
            yield Issue(f"'continuations': {count}", path=(*path, "continuations"), code=Code.WRONG_CHOICES)


class BleuScorer(ScorerSpec):
    """`bleu_score` in [0, 1]."""

    scores = frozenset({"bleu_score"})
    ranges: ClassVar = {"bleu_score": (0.0, 1.0)}
    usual_metrics = (MeanMetric.model_construct(type="mean", field="bleu_score"),)
    templates = ("ground_truth", "value")
    previewed = ("ground_truth", "value")
    truth = "ground_truth"
    answer = "unless_value"

    type: Literal["bleu"]
    ground_truth: str
    """Reference text; a template over `sample`."""
    value: str | None = None
    """Answer to compare; a template over `sample` and `solver_output`. `None`: the last model message."""


class _Judge(ScorerSpec):
    templates = ("system_prompt", "user_prompt")

    model_key: TemplatedModelKey
    """Key of the judge model."""
    user_prompt: str
    """Prompt of the judge; a template over `sample` and, with a solver, `solver_output`, `messages`,
    `model_output` …
    """
    use_structured_outputs: bool = False
    """Whether to request the answer as JSON with a schema."""

    @property
    def judge_key(self) -> str:
        return self.model_key

    @property
    def asks_for_json(self) -> bool:
        return self.use_structured_outputs


class ModelAsAJudgeClassifierScorer(_Judge):
    """`is_correct`: 1.0 if the judge assigns one of the correct labels, otherwise 0.0."""

    scores = frozenset({"is_correct"})
    right_or_wrong = scores
    usual_metrics = _ACCURACY

    type: Literal["model_as_a_judge_classifier"]
    system_prompt: str = JUDGE_SYSTEM_PROMPT
    """System prompt of the judge; a template over the same variables as `user_prompt`."""
    correct_labels: Templated[tuple[str, ...]]
    """Labels that score 1.0."""
    incorrect_labels: Templated[tuple[str, ...]]
    """Labels that score 0.0."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        correct, incorrect = texts(document.get("correct_labels")), texts(document.get("incorrect_labels"))
        for label in dict.fromkeys(correct):
            if label in incorrect:
                at = (*path, "incorrect_labels", incorrect.index(label))
                yield Issue(
                    f"label {label!r} is in both 'correct_labels' and 'incorrect_labels'",
                    path=at,
                    code=Code.LABELS_OVERLAP,
                )
        for name, labels in (("correct_labels", correct), ("incorrect_labels", incorrect)):
            if document.get(name) == [] and not labels:
                other = "0" if name == "correct_labels" else "1"
                yield Issue(
                    f"{name!r} is empty, so every known label counts as {other}",
                    path=(*path, name),
                    severity="warning",
                    code=Code.LABELS_OVERLAP,
                )

    def problems(self) -> Iterator[tuple[Path, Issue]]:
        """Yield labels that are both correct and incorrect, ignoring case and surrounding whitespace."""
        correct = {label.strip().casefold() for label in self.correct_labels}
        for number_of, label in enumerate(self.incorrect_labels):
            if label.strip().casefold() in correct:
                message = (
                    f"label {label!r} is among the correct and the incorrect labels, so it counts as correct"
                )
                yield (
                    ("incorrect_labels", number_of),
                    Issue(message, severity="warning", code=Code.LABELS_OVERLAP),
                )


class ModelAsAJudgeScorer(_Judge):
    """`score`: the judge's number, scaled from [`score_min`, `score_max`] to [0, 1]."""

    scores = frozenset({"score"})
    ranges: ClassVar = {"score": (0.0, 1.0)}
    usual_metrics = (MeanMetric.model_construct(type="mean", field="score"),)

    type: Literal["model_as_a_judge_scorer"]
    system_prompt: str = JUDGE_SYSTEM_PROMPT
    """System prompt of the judge; a template over the same variables as `user_prompt`."""
    score_min: Templated[float] = 0.0
    """Lowest number that the judge can give."""
    score_max: Templated[float] = 1.0
    """Highest number that the judge can give."""

    @classmethod
    def check(cls, document: Mapping[str, Any], path: Path) -> Iterator[Issue]:
        yield from not_finite(document.get("score_min"), (*path, "score_min"))
        yield from not_finite(document.get("score_max"), (*path, "score_max"))
        low, high = number(document.get("score_min", 0.0)), number(document.get("score_max", 1.0))
        if low is not None and high is not None and low >= high:
            message = f"'score_min' is {low:g}, expected less than 'score_max' ({high:g})"
            yield Issue(
                message,
                path=(*path, "score_min" if "score_min" in document else "score_max"),
                code=Code.WRONG_SCORE_RANGE,
            )

    def problems(self) -> Iterator[tuple[Path, Issue]]:
        if not float(self.score_min) < float(self.score_max):
            message = f"score_min is {self.score_min}, expected a number below score_max ({self.score_max})"
            yield ("score_min",), Issue(message, code=Code.WRONG_SCORE_RANGE)


class LabelerViaModelScorer(_Judge):
    """`label`: the label that the judge assigns."""

    scores = frozenset({"label"})
    labels: ClassVar = {"label": "valid_labels"}
    usual_metrics = (FrequencyMetric.model_construct(type="frequency", field="label"),)

    type: Literal["labeler_via_model"]
    system_prompt: str = LABELER_SYSTEM_PROMPT
    """System prompt of the judge; a template over the same variables as `user_prompt`."""
    valid_labels: Templated[tuple[str, ...]] = ()
    """Allowed labels; an empty list allows any label."""


class PythonScorer(ScorerSpec):
    """Scores computed by task code, one sample at a time."""

    snippet = "compute_scores_snippet"

    type: Literal["python"]
    compute_scores_snippet: str
    """Defines `compute_scores(sample, solver_output)` or, without a solver, `compute_scores(sample)`."""


class PythonAllSamplesScorer(ScorerSpec):
    """Scores computed by task code from all samples together."""

    snippet = "compute_scores_snippet"
    sees_all_samples = True

    type: Literal["python_all_samples"]
    compute_scores_snippet: str
    """Defines `compute_scores(samples)`, which returns one entry per sample in the same order."""


class RagCheckerScorer(ScorerSpec):
    """RAGChecker scores, all in [0, 1], by claims that a judge extracts and checks."""

    scores = frozenset(get_args(RagScore))
    ranges: ClassVar = dict.fromkeys(get_args(RagScore), (0.0, 1.0))
    answer = "needed"

    type: Literal["rag_checker"]
    judge_model_key: TemplatedModelKey
    """Key of the model that extracts and checks claims."""
    query_column: str = "query"
    """Column that contains the question."""
    target_column: str | None = None
    """Column that contains the right answer."""
    scores_to_compute: tuple[RagScore, ...] | None = None
    """Scores to compute; `None`: all scores that the columns allow."""
    mode: Templated[RagMode] = "all_claims"
    """Claims to count, by their labels."""
    target_claims_column: str | None = None
    """Column that contains the claims of the target; without it, the judge extracts them."""
    response_claims_column: str | None = None
    """Column that contains the claims of the response; without it, the judge extracts them."""
    claim_extraction_instructions: str | None = None
    """Additional instructions for the extraction of claims."""
    target_labels_column: str | None = None
    """Column that contains the labels of the target's claims."""
    response_labels_column: str | None = None
    """Column that contains the labels of the response's claims."""
    claim_labeling_instructions: str | None = None
    """Additional instructions for the labels of claims."""

    @classmethod
    def scores_of(cls, document: Mapping[str, Any]) -> frozenset[str] | None:
        return frozenset(texts(document.get("scores_to_compute"))) or cls.scores

    @property
    def judge_key(self) -> str:
        return self.judge_model_key

    @property
    def truth_column(self) -> str | None:
        return self.target_column


class RequiredCall(SpecModel):
    """A function call that must have been made."""

    name: str
    """Name of the function."""
    arguments: dict[str, object] | None = None
    """Exact arguments; `None`: any arguments."""


class FunctionCallCoverageScorer(ScorerSpec):
    """Whether, and how many of, the required function calls were made."""

    scores = frozenset(
        {
            "all_required_calls_made",
            "required_calls_coverage",
            "num_required_calls_made",
            "num_required_calls_not_made",
            "num_required_calls_total",
            "num_unrequired_calls",
        }
    )
    right_or_wrong = frozenset({"all_required_calls_made"})
    ranges: ClassVar = {"required_calls_coverage": (0.0, 1.0)}
    templates = ("function_calls",)
    previewed = ("function_calls",)
    answer = "needed"
    takes_group = False

    type: Literal["function_call_coverage"]
    function_calls: str | tuple[str | RequiredCall, ...]
    """Required calls: a list, its JSON text, or a template over `sample`."""
    mode: Literal["any_order", "in_order"] = "any_order"
    """Whether `all_required_calls_made` requires the order of the list."""


class CodeExecScorer(ScorerSpec):
    """`code_exec`: 1.0 when code that the model wrote passes its tests, else 0.0. Our extension: AI GO has no
    such scorer.

    The code runs only in a sandbox of the engine; without one the task is refused.
    """

    scores = frozenset({"code_exec"})
    right_or_wrong = scores
    usual_metrics = (MeanMetric.model_construct(type="mean", field="code_exec"),)
    templates = ("code", "tests", "post_process", "when")
    answer = "needed"
    runs_answers = True
    is_extension = True

    type: Literal["code_exec"]
    tests: str
    """Column that contains the tests: one Python program, or a list of them. Each runs after the code, in the
    same namespace. Also a template (`{{ … }}`) that renders such a list as JSON.
    """
    code: str | None = None
    """Code to run; a template. `None`: the model's answer."""
    post_process: str = "none"
    """How to get the code from the text: `none`, `strip_whitespace` or `extract_code_block`; a template."""
    when: str | None = None
    """Condition; a template. Samples for which it does not render `True` get no score."""

    def rendered(self) -> Iterator[tuple[str, str]]:
        return ((name, text) for name, text in super().rendered() if name != "tests" or "{{" in text)


def _check_letters(value: Any, path: Path) -> Iterator[Issue]:
    if isinstance(value, str):
        if "{" in value or has_marker(value):
            return
        try:
            value = json.loads(value)
        except ValueError:
            if not value.lstrip().startswith("["):  # a Python list is allowed, and read when it is needed
                yield Issue(
                    f"'choices': found {value!r}, expected a list of single letters",
                    path=path,
                    code=Code.WRONG_CHOICES,
                )
            return
    for index, choice in enumerate(value) if isinstance(value, list) else ():
        if isinstance(choice, str) and len(choice) != 1 and "{" not in choice:
            message = f"choice {choice!r} can never match: answers are compared by their first character"
            yield Issue(message, path=(*path, index), code=Code.WRONG_CHOICES)


SCORERS: TypeTable[ScorerSpec] = TypeTable("scorers", ScorerSpec)
"""Scorer types of this module and of plug-ins, by name."""

SCORERS |= {
    spec.type_name(): spec
    for spec in (
        StringEqualsScorer,
        StringEqualsMCQAScorer,
        BleuScorer,
        ModelAsAJudgeClassifierScorer,
        ModelAsAJudgeScorer,
        LabelerViaModelScorer,
        PythonScorer,
        PythonAllSamplesScorer,
        RagCheckerScorer,
        FunctionCallCoverageScorer,
        CodeExecScorer,
    )
}

Scorer = Annotated[ScorerSpec, OneOf(SCORERS)]
