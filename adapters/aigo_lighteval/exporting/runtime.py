"""Code of natively exported lighteval tasks. An export copies the parts that a task needs into its file.

The code imports nothing from aigo-bridge except the runtime that is copied with it. See that module for the
form.
"""

import json
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.exporting.runtime import (
    Compared,
    compared_text,
    metric_values,
    over_trials,
)


def documents(file: Path) -> list[dict[str, Any]]:
    """Return the fields of documents from a JSON Lines file."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def prompts(folder: Path, task: dict[str, Any]) -> Callable[..., Doc]:
    """Return a function that finds the document of a row by its number."""
    questions = documents(folder / "samples.jsonl")
    examples = documents(folder / "examples.jsonl") if task["examples"] else []

    def prompt(row: dict[str, Any], task_name: str | None = None) -> Doc:
        if row["export"] != task["export"]:
            message = "the rows belong to another export: clear HF_DATASETS_CACHE"
            raise ValueError(message)
        table = examples if row["__few_shots"] else questions
        return Doc(**table[row["sample"]])

    return prompt


def answers(doc: Doc, response: ModelResponse, task: dict[str, Any]) -> list[str]:
    """Return the answers of all trials, truncated at a stop sequence."""
    if len(response.text) != task["trials"]:
        raise ValueError(f"document {doc.id} has {len(response.text)} answers")
    texts = list(response.text)
    for stop in task["stop"]:
        # Some models generate past a stop sequence.
        texts = [text.split(stop, 1)[0] for text in texts]
    return texts


Weights = list[tuple[str, float]]
"""Choices with their log-likelihoods."""


def likelihoods(
    doc: Doc,
    response: ModelResponse,
    task: dict[str, Any],
) -> list[Weights]:
    """Return the choices with their likelihoods, which are the same in all trials."""
    numbers = [float(number) for number in response.logprobs]
    if len(numbers) != len(doc.choices) or not all(map(math.isfinite, numbers)):
        raise ValueError(f"document {doc.id} has the likelihoods {numbers}")
    return [list(zip(doc.choices, numbers, strict=True))] * int(task["trials"])


def most_likely(answer: Weights, expected: dict[str, Any], by_length: bool) -> Compared:
    """Return 1.0 if the correct choice is the most likely (of equal ones, the first)."""
    weights = [number / (len(text) if by_length else 1) for text, number in answer]
    is_right = weights.index(max(weights)) == expected["right"]
    return {"is_correct": 1.0 if is_right else 0.0}, {}


def record_score(file: Path) -> Callable[..., Compared]:
    """Return a function that scores an answer with the record's own metric and rule."""
    code = runpy.run_path(str(file))

    def score(answer: str, expected: dict[str, Any]) -> Compared:
        name = expected["metric_name"]
        prediction = code["post_process"](expected["post_process"], answer)
        return {name: code["metric_score"](name, prediction, expected["targets"])}, {}

    return score


class SampleScores(SamplingMetric, SampleLevelComputation):  # type: ignore[misc]  # lighteval is untyped
    """Scores of a sample by name; None if the task's rules exclude it."""

    def __init__(
        self,
        task: dict[str, Any],
        about: dict[str, Any],
        read: Callable[..., list[Any]],
        compare: Callable[..., Compared],
    ) -> None:
        self.task = task
        self.about = about
        self.read = read
        self.compare = compare

    def num_samples(self) -> int:
        """Return the number of answers to each document."""
        return int(self.task["trials"])

    def __str__(self) -> str:
        return f"{self.about['key']} of {self.task['export']}"

    def compute(
        self,
        doc: Doc,
        model_response: ModelResponse,
        **_: Any,
    ) -> dict[str, float] | None:
        """Return the scores of one document."""
        details = json.loads(doc.specific["expected"])
        if details["excluded"]:
            return None
        shown = self.task["examples"]
        if len(doc.fewshot_samples) != shown:
            raise ValueError(f"the task has {shown} examples: add |{shown} to its name")
        expected = details["scorers"][self.about["key"]]
        read = self.read(doc, model_response, self.task)
        scores = [self.score(answer, expected) for answer in read]
        if len(scores) == 1:
            return scores[0]
        return over_trials(scores, self.task["aggregators"])

    def score(self, answer: Any, expected: dict[str, Any]) -> dict[str, float]:
        """Return the scores of one answer."""
        if isinstance(answer, str):
            answer = compared_text(answer, expected, self.about["methods"])
        scores, _ = self.compare(answer, expected, **self.about["settings"])
        return scores


def scored(
    task: dict[str, Any],
    number: int,
    read: Callable[..., list[Any]],
    compare: Callable[..., Compared],
) -> SampleLevelMetric:
    """Return a scorer of the task with its metrics."""
    about = task["scorers"][number]

    def metrics(values: list[dict[str, float] | None]) -> dict[str, float]:
        included = [scores for scores in values if scores is not None]
        return metric_values(included, about["metrics"])

    return SampleLevelMetric(
        metric_name=about["key"],
        higher_is_better=True,
        category=SamplingMethod[task["asks"]],
        sample_level_fn=SampleScores(task, about, read, compare),
        corpus_level_fn=metrics,
    )
