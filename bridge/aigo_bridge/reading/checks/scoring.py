"""Scorers, metrics and trials: contradictions that would give no number, or a wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.trees import Path, duplicates, mapping, mappings, not_finite, number, texts
from aigo_bridge.reading.wording import nearest
from aigo_bridge.spec import has_marker
from aigo_bridge.spec.scorers import RagScore

_SCORES: dict[str, frozenset[str]] = {
    "string_equals": frozenset({"is_correct"}),
    "string_equals_mcqa": frozenset({"is_correct"}),
    "bleu": frozenset({"bleu_score"}),
    "model_as_a_judge_classifier": frozenset({"is_correct"}),
    "model_as_a_judge_scorer": frozenset({"score"}),
    "labeler_via_model": frozenset({"label"}),
    "code_exec": frozenset({"code_exec"}),
    "rag_checker": frozenset(get_args(RagScore)),
    "function_call_coverage": frozenset(
        {
            "all_required_calls_made",
            "required_calls_coverage",
            "num_required_calls_made",
            "num_required_calls_not_made",
            "num_required_calls_total",
            "num_unrequired_calls",
        }
    ),
}
"""Scores of the scorers whose scores are known before they run."""

SCORER_TYPES = frozenset({*_SCORES, "python", "python_all_samples"})


def scores_of(scorer: Mapping[str, Any]) -> frozenset[str] | None:
    """Names of the scores that a scorer gives, of one trial; `None` where only the run tells."""
    wanted = texts(scorer.get("scores_to_compute")) if scorer.get("type") == "rag_checker" else []
    return frozenset(wanted) if wanted else _SCORES.get(str(scorer.get("type")))


_FIELDS = (
    "field",
    "field_gt",
    "field_pred",
    "num_true_positives_field",
    "num_false_positives_field",
    "num_false_negatives_field",
)


def check_scorers(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """All scorers of a benchmark task, with their metrics and the trials."""
    scorers = mappings(definition.get("scorers"))
    solved = definition.get("solver") is not None
    yield from duplicates(scorers, (*path, "scorers"), "scorer")
    aggregated = aggregated_names(definition)
    grouped = _gives_groups(definition.get("solver"))
    for index, scorer in scorers:
        here = (*path, "scorers", index)
        yield from _scorer(scorer, here, solved)
        if scorer.get("length_normalisation") == "pmi" and not _has_unconditioned_query(definition):
            yield Issue(
                "'pmi' needs the 'unconditioned_query' of a chat_completion input, against which choices are weighed",
                path=(*here, "length_normalisation"),
                hint='add it to the solver\'s input_builder, e.g. unconditioned_query: "Answer:"',
            )
        if grouped:
            yield from _of_a_group(scorer, here)
        metrics = mappings(scorer.get("metrics"))
        yield from duplicates(metrics, (*here, "metrics"), "metric")
        for number_of, metric in metrics:
            at = (*here, "metrics", number_of)
            yield from _metric(metric, at, scores_of(scorer), aggregated)
    yield from _trials(definition, path)


def _has_unconditioned_query(definition: dict[str, Any]) -> bool:
    solver = definition.get("solver")
    builder = solver.get("input_builder") if isinstance(solver, dict) else None
    return isinstance(builder, dict) and builder.get("unconditioned_query") is not None


def _gives_groups(solver: Any) -> bool:
    """Whether scorers see several answers at once; a post-processor may take them apart."""
    return (
        isinstance(solver, dict)
        and solver.get("type") == "grouped_single_turn_solver"
        and solver.get("postprocessor") is None
    )


def _of_a_group(scorer: dict[str, Any], path: Path) -> Iterator[Issue]:
    kind = str(scorer.get("type"))
    if kind in ("string_equals", "bleu") and scorer.get("value") is None:
        hint = "pick one, e.g. {{ solver_output.solver_outputs[0].trace.get_last_assistant_text() }}"
        message = (
            f"{kind!r} needs 'value' here: the solver gives a group of answers, and no single one to compare"
        )
        yield Issue(message, path=path, hint=hint)
    if kind in ("string_equals_mcqa", "function_call_coverage"):
        hint = "take the group apart with a post-processor, or use a python scorer"
        message = f"{kind!r} cannot be used here: the solver gives a group of answers, and no single one"
        yield Issue(message, path=(*path, "type"), hint=hint)


def _scorer(scorer: dict[str, Any], path: Path, solved: bool) -> Iterator[Issue]:
    kind = str(scorer.get("type"))
    if kind in {"string_equals", "bleu"} and not solved and scorer.get("value") is None:
        yield Issue(f"{kind!r} needs 'value' here: without a solver there is no answer to compare", path=path)
    if kind in {"rag_checker", "function_call_coverage", "string_equals_mcqa", "code_exec"} and not solved:
        yield Issue(f"{kind!r} needs a solver: it looks at the model's answer", path=(*path, "type"))
    if kind == "model_as_a_judge_classifier":
        yield from _labels(scorer, path)
    if kind == "model_as_a_judge_scorer":
        yield from not_finite(scorer.get("score_min"), (*path, "score_min"))
        yield from not_finite(scorer.get("score_max"), (*path, "score_max"))
        low, high = number(scorer.get("score_min", 0.0)), number(scorer.get("score_max", 1.0))
        if low is not None and high is not None and low >= high:
            at = "score_min" if "score_min" in scorer else "score_max"
            yield Issue(
                f"'score_min' is {low:g} and 'score_max' is {high:g}, expected less than that",
                path=(*path, at),
            )
    if kind == "string_equals_mcqa":
        yield from _compared(scorer, path)


def _labels(scorer: dict[str, Any], path: Path) -> Iterator[Issue]:
    correct, incorrect = texts(scorer.get("correct_labels")), texts(scorer.get("incorrect_labels"))
    for label in dict.fromkeys(correct):
        if label in incorrect:
            at = (*path, "incorrect_labels", incorrect.index(label))
            yield Issue(f"label {label!r} is in 'correct_labels' and in 'incorrect_labels'", path=at)
    for name, labels in (("correct_labels", correct), ("incorrect_labels", incorrect)):
        if scorer.get(name) == [] and not labels:
            other = "0" if name == "correct_labels" else "1"
            yield Issue(
                f"{name!r} is empty, so every known label counts as {other}",
                path=(*path, name),
                severity="warning",
            )


def _compared(scorer: dict[str, Any], path: Path) -> Iterator[Issue]:
    """How a multiple choice is compared: by letters, or by likelihoods of continuations."""
    if scorer.get("method", "first_character") == "first_character":
        for name, usual in (("continuations", None), ("length_normalisation", "none")):
            if scorer.get(name) not in (None, usual):
                yield Issue(
                    f"{name!r} has no meaning here: answers are compared by their first character",
                    path=(*path, name),
                    hint="add 'method: loglikelihood'",
                )
        yield from _choices(scorer.get("choices"), (*path, "choices"))
        return
    choices, continuations = scorer.get("choices"), scorer.get("continuations")
    for name, listed in (("choices", choices), ("continuations", continuations)):
        for index, text in enumerate(listed) if isinstance(listed, list) else ():
            if text == "":
                yield Issue(f"{name!r}: an empty text has no likelihood", path=(*path, name, index))
    if isinstance(choices, list) and isinstance(continuations, list) and len(choices) != len(continuations):
        yield Issue(
            f"'continuations': found {len(continuations)}, expected one for each of the {len(choices)} choices",
            path=(*path, "continuations"),
        )


def _choices(value: Any, path: Path) -> Iterator[Issue]:
    if isinstance(value, str):
        if "{" in value or has_marker(value):
            return
        try:
            value = json.loads(value)
        except ValueError:
            if not value.lstrip().startswith("["):  # a Python list is allowed, and read when it is needed
                yield Issue(f"'choices': found {value!r}, expected a list of single letters", path=path)
            return
    for index, choice in enumerate(value) if isinstance(value, list) else ():
        if isinstance(choice, str) and len(choice) != 1 and "{" not in choice:
            yield Issue(
                f"choice {choice!r} can never be given: answers are compared by their first character",
                path=(*path, index),
            )


def _metric(
    metric: dict[str, Any], path: Path, known: frozenset[str] | None, aggregated: dict[str, set[str]]
) -> Iterator[Issue]:
    weights = metric.get("weights")
    for label, weight in weights.items() if isinstance(weights, dict) else ():
        yield from not_finite(weight, (*path, "weights", label))
    positive = metric.get("positive_answer")
    if isinstance(positive, str) and positive == metric.get("negative_answer") and not has_marker(positive):
        yield Issue("'positive_answer' and 'negative_answer' are the same", path=(*path, "negative_answer"))
    if known is None:
        return
    names = known | {name for score in known for name in aggregated.get(score, ())}
    for name in _FIELDS:
        score = metric.get(name)
        if not isinstance(score, str) or score in names or has_marker(score):
            continue
        if "." in score and score.split(".")[0] in known:
            continue
        yield Issue(
            f"{name!r}: the scorer has no score {score!r}",
            path=(*path, name),
            hint=nearest(score, names) or f"its scores: {', '.join(sorted(names))}",
        )


def aggregated_names(definition: Mapping[str, Any]) -> dict[str, set[str]]:
    """Names of aggregated scores by the score that they are made from."""
    names: dict[str, set[str]] = {}
    for _, entry in mappings(mapping(definition.get("trials")).get("score_aggregators")):
        name = mapping(entry.get("aggregator")).get("score_name")
        if isinstance(name, str) and isinstance(entry.get("score_name"), str):
            names.setdefault(entry["score_name"], set()).add(name)
    return names


def _trials(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    known: set[str] = set()
    for _, scorer in mappings(definition.get("scorers")):
        scores = scores_of(scorer)
        if scores is None:
            return
        known |= scores
    for index, entry in mappings(mapping(definition.get("trials")).get("score_aggregators")):
        score = entry.get("score_name")
        if isinstance(score, str) and score not in known and not has_marker(score):
            yield Issue(
                f"no scorer of this task has a score {score!r}",
                path=(*path, "trials", "score_aggregators", index, "score_name"),
                hint=nearest(score, known),
            )
