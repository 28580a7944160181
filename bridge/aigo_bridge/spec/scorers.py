"""Scorers: what is judged about each sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from aigo_bridge.spec.base import Key, SpecModel, Templated, TemplatedModelKey
from aigo_bridge.spec.metrics import Metric

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


class _Scorer(SpecModel):
    key: Key | None = None
    """Name of the scorer in the evidence and in action rules; `None`: made from its type."""
    display_name: str | None = None
    """Shown name."""
    purpose: Literal["score", "qa"] = "score"
    """`score`: part of the result; `qa`: a check on the quality of sample or output."""
    metrics: tuple[Metric, ...] | None = None
    """Metrics over this scorer's scores; `None`: the scorer's usual ones; empty: none."""


class StringEqualsScorer(_Scorer):
    """`is_correct`: 1.0 when the text equals the ground truth exactly, else 0.0."""

    type: Literal["string_equals"]
    ground_truth: str
    """Template over `sample`."""
    value: str | None = None
    """Template over `sample` and `solver_output`; `None`: the last message of the model."""


class StringEqualsMCQAScorer(_Scorer):
    """`is_correct`: whether the first character of the answer is the letter of the right choice.

    With `method: loglikelihood`, our extension, nothing is generated: the prediction is the choice whose continuation the model finds the
    most likely after the question. Only models that tell likelihoods of given texts can be asked so.
    """

    type: Literal["string_equals_mcqa"]
    ground_truth_choice: str
    """Template over `sample` that gives the right letter."""
    choices: str | tuple[str, ...]
    """All letters: a list, its JSON text, or a template over `sample` that gives it. With `loglikelihood`, texts of any length."""
    method: Literal["first_character", "loglikelihood"] = "first_character"
    """How the prediction is found: in the model's answer, or among the likelihoods of the continuations."""
    continuations: str | tuple[str, ...] | None = None
    """Texts whose likelihoods are compared, one per choice: a list, its JSON text, or a template over `sample` that gives it. Given to the
    model as they are, right behind the prompt. `None`: the choices themselves."""
    length_normalisation: Literal["none", "characters", "tokens", "pmi"] = "none"
    """What a continuation's log-likelihood is divided by before they are compared: nothing, its number of characters, of tokens. With `pmi`
    (pointwise mutual information) its log-likelihood behind the input's `unconditioned_query` is taken from it instead."""


class BleuScorer(_Scorer):
    """`bleu_score` in [0, 1]."""

    type: Literal["bleu"]
    ground_truth: str
    """Template over `sample`: the reference."""
    value: str | None = None
    """Template over `sample` and `solver_output`; `None`: the last message of the model."""


class _Judge(_Scorer):
    model_key: TemplatedModelKey
    """Model that judges."""
    user_prompt: str
    """Template over `sample` and, when there is a solver, `solver_output`, `messages`, `model_output` …"""
    use_structured_outputs: bool = False
    """Whether the model is asked for JSON by schema."""


class ModelAsAJudgeClassifierScorer(_Judge):
    """`is_correct`: 1.0 when the judge gives one of the correct labels, else 0.0."""

    type: Literal["model_as_a_judge_classifier"]
    system_prompt: str = JUDGE_SYSTEM_PROMPT
    """Template over the same variables as `user_prompt`."""
    correct_labels: Templated[tuple[str, ...]]
    """Labels that mean 1.0."""
    incorrect_labels: Templated[tuple[str, ...]]
    """Labels that mean 0.0."""


class ModelAsAJudgeScorer(_Judge):
    """`score`: the judge's number, moved from [`score_min`, `score_max`] to [0, 1]."""

    type: Literal["model_as_a_judge_scorer"]
    system_prompt: str = JUDGE_SYSTEM_PROMPT
    """Template over the same variables as `user_prompt`."""
    score_min: Templated[float] = 0.0
    """Lowest number that the judge may give."""
    score_max: Templated[float] = 1.0
    """Highest number that the judge may give."""


class LabelerViaModelScorer(_Judge):
    """`label`: the text that the judge gives."""

    type: Literal["labeler_via_model"]
    system_prompt: str = LABELER_SYSTEM_PROMPT
    """Template over the same variables as `user_prompt`."""
    valid_labels: Templated[tuple[str, ...]] = ()
    """Labels that are allowed; empty: any."""


class PythonScorer(_Scorer):
    """Scores computed by the author's code, one sample at a time."""

    type: Literal["python"]
    compute_scores_snippet: str
    """Defines `compute_scores(sample, solver_output)` or, without a solver, `compute_scores(sample)`."""


class PythonAllSamplesScorer(_Scorer):
    """Scores computed by the author's code from all samples at once."""

    type: Literal["python_all_samples"]
    compute_scores_snippet: str
    """Defines `compute_scores(samples)`, giving one entry per sample in the same order."""


class RagCheckerScorer(_Scorer):
    """RAGChecker scores, all in [0, 1], by claims that a judge extracts and checks."""

    type: Literal["rag_checker"]
    judge_model_key: TemplatedModelKey
    """Model that extracts and checks claims."""
    query_column: str = "query"
    """Column with the question."""
    target_column: str | None = None
    """Column with the right answer; `None`: no target text."""
    scores_to_compute: tuple[RagScore, ...] | None = None
    """Which scores; `None`: all that the columns allow."""
    mode: Templated[RagMode] = "all_claims"
    """Which claims count, by their labels."""
    target_claims_column: str | None = None
    """Column with claims of the target, so that they need not be extracted."""
    response_claims_column: str | None = None
    """Column with claims of the response, so that they need not be extracted."""
    claim_extraction_instructions: str | None = None
    """Further instructions for extracting claims."""
    target_labels_column: str | None = None
    """Column with labels of the target's claims."""
    response_labels_column: str | None = None
    """Column with labels of the response's claims."""
    claim_labeling_instructions: str | None = None
    """Further instructions for labelling claims."""


class RequiredCall(SpecModel):
    """A function call that must have been made."""

    name: str
    """Name of the function."""
    arguments: dict[str, object] | None = None
    """Exact arguments; `None`: any."""


class FunctionCallCoverageScorer(_Scorer):
    """Whether, and how many of, the required function calls were made."""

    type: Literal["function_call_coverage"]
    function_calls: str | tuple[str | RequiredCall, ...]
    """Required calls: a list, its JSON text, or a template over `sample` that gives it."""
    mode: Literal["any_order", "in_order"] = "any_order"
    """Whether the order of the calls matters to `all_required_calls_made`."""


class CodeExecScorer(_Scorer):
    """`code_exec`: 1.0 when code that the model wrote passes its tests, else 0.0. Our extension: AI GO has no such scorer.

    The code runs only in a sandbox of the engine; without one the task is refused.
    """

    type: Literal["code_exec"]
    tests: str
    """Column with the tests, a list of Python programs (or one), each run after the code, in its names; or a template (`{{ … }}`) that
    gives such a list as JSON."""
    code: str | None = None
    """Template of the code; `None`: the model's answer."""
    post_process: str = "none"
    """Template of the rule that takes the code out of the text: `none`, `strip_whitespace` or `extract_code_block`."""
    when: str | None = None
    """Template; samples for which it gives anything but `True` get no score. `None`: all are scored."""


Scorer = Annotated[
    StringEqualsScorer
    | StringEqualsMCQAScorer
    | BleuScorer
    | ModelAsAJudgeClassifierScorer
    | ModelAsAJudgeScorer
    | LabelerViaModelScorer
    | PythonScorer
    | PythonAllSamplesScorer
    | RagCheckerScorer
    | FunctionCallCoverageScorer
    | CodeExecScorer,
    Field(discriminator="type"),
]


def default_keys(scorers: Sequence[tuple[str | None, str]]) -> tuple[str, ...]:
    """One key per scorer, given each one's key and type: its own, else its type, with `_2`, `_3` … where that is taken."""
    taken = {key for key, _ in scorers if key is not None}
    keys: list[str] = []
    for own, kind in scorers:
        key = own
        if key is None:
            key, number = kind, 1
            while key in taken:
                number += 1
                key = f"{kind}_{number}"
            taken.add(key)
        keys.append(key)
    return tuple(keys)
