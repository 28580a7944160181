"""Code of natively exported tasks that is the same on all engines. The export copies the parts that a task
needs into its file.

It does not import aigo-bridge. Lines have at most 88 columns and multi-line constructs end with a comma,
so that the formatter with its default settings does not change the copies.
"""

import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

from sacrebleu.metrics.bleu import BLEU

Compared = tuple[dict[str, float], dict[str, Any]]
"""Scores by name, and the compared values."""

METHODS: dict[str, Callable[[str], str]] = {
    "trim": str.strip,
    "lower": str.lower,
    "upper": str.upper,
}


def compared_text(answer: str, expected: dict[str, Any], methods: list[str]) -> str:
    """Return the text to compare: the sample's own value, or the processed answer."""
    if "value" in expected:
        return str(expected["value"])
    for method in methods:
        answer = METHODS[method](answer)
    return answer


def string_equals(answer: str, expected: dict[str, Any]) -> Compared:
    """Return 1.0 if the answer is identical to the ground truth."""
    truth = expected["ground_truth"]
    score = 1.0 if answer == truth else 0.0
    return {"is_correct": score}, {"answer_gt": truth, "answer_pred": answer}


def string_equals_mcqa(answer: str, expected: dict[str, Any]) -> Compared:
    """Return 1.0 if the answer starts with the letter of the correct choice."""
    truth, choices = expected["ground_truth"], expected["choices"]
    predicted = answer[:1]
    metadata = {
        "ground_truth_choices": choices,
        "ground_truth_correct_choice": truth,
        "predicted_choice": predicted,
        "completion_validity": "valid" if predicted in choices else "invalid",
    }
    return {"is_correct": 1.0 if predicted == truth else 0.0}, metadata


def bleu(answer: str, expected: dict[str, Any], **settings: Any) -> Compared:
    """Return the sentence BLEU of the answer, from 0 to 1."""
    truth = expected["ground_truth"]
    sentences = BLEU(**settings)
    percent = sentences.sentence_score(answer, [truth]).score
    metadata = {
        "answer_gt": truth,
        "answer_pred": answer,
        "signature": str(sentences.get_signature()),
    }
    return {"bleu_score": min(percent / 100, 1.0)}, metadata


def mean(numbers: list[Any]) -> float:
    """Return the exactly rounded mean."""
    return float(statistics.mean(numbers))


def deviation(numbers: list[Any]) -> float:
    """Return the sample standard deviation; 0.0 for a single number."""
    return statistics.stdev(numbers) if len(numbers) > 1 else 0.0


FORMULAS: dict[str, Callable[[list[Any]], float]] = {
    "mean": mean,
    "min": min,
    "max": max,
    "std_dev": deviation,
}


def metric_values(
    scores: list[dict[str, Any]],
    wanted: list[dict[str, str]],
) -> dict[str, float]:
    """Return the metrics over all samples; a frequency has one entry per value."""
    values: dict[str, float] = {}
    for about in wanted:
        field, name = about["field"], about["name"]
        numbers = [of_sample[field] for of_sample in scores if field in of_sample]
        if about["type"] == "frequency":
            for text, count in Counter(map(str, numbers)).items():
                values[name + text] = count / len(numbers)
        elif numbers:
            values[name] = FORMULAS[about["type"]](numbers)
    return values


def aggregate(numbers: list[Any], function: str, k: int) -> float:
    """Combine the trials; pass@k and pass^k use the proportion of passed trials."""
    if function == "pass@k":
        return float(1.0 - (1.0 - sum(numbers) / len(numbers)) ** k)
    if function == "pass^k":
        return float((sum(numbers) / len(numbers)) ** k)
    return FORMULAS[function](numbers)


def over_trials(
    of_trials: list[dict[str, Any]],
    aggregators: list[dict[str, Any]],
) -> dict[str, Any]:
    """Return the scores of a sample over its trials: means and task aggregations."""
    scores: dict[str, Any] = {}
    for field in of_trials[0]:
        numbers = [of_trial[field] for of_trial in of_trials]
        scores[field] = mean(numbers)
        for about in aggregators:
            if about["field"] == field:
                value = aggregate(numbers, about["function"], about.get("k", 1))
                scores[about["name"]] = value
    return scores
