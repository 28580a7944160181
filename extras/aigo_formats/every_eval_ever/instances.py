"""Conversion of trials with scores to instances, as defined by `instance_level_eval.schema.json`.

An instance is one score of one trial, or of all trials together. It requires a number, so unscored trials do
not get an instance. A zero would be a wrong number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.metrics.grades import score_number
from aigo_bridge.results.counts import errors_of, trials_of
from aigo_bridge.results.rows import PREDICTIONS, TRUTHS, items_of
from aigo_bridge.results.values import mappings, member
from aigo_bridge.text.json_text import json_text
from aigo_report.tables.trials import (
    data_of,
    last_text,
    message_text,
    role_of,
    value_text,
    values_of,
)

Json = dict[str, Any]
SCHEMA_VERSION = "0.3.0"
_REFERENCES = ("golds", "target", "ground_truth", "reference", "answer", "a")
"""Columns with the correct answer if no scorer provides it, in order of preference."""
_CALL, _RESULT = "function_call", "function_call_output"


@dataclass(frozen=True)
class AggregateResult:
    """Number in the aggregate file."""

    id: str
    name: str
    """Name of the evaluation."""
    scorer: str | None
    """Key of the scorer; `None` without a scorer."""
    value: str
    """Name of the value within its metric."""


class Instances:
    """Instances of a result log.

    Args:
        evaluation: id of the evaluation.
        model: id of the model.
        task: task name, for scores that do not belong to a number in the aggregate file.
        results: numbers in the aggregate file.
        loss: report for loss counts.
        graded: whether text scores are grades of Inspect (`C`, `P`, `I`, `N`).
    """

    def __init__(
        self,
        evaluation: str,
        model: str,
        task: str,
        results: Sequence[AggregateResult],
        loss: LossReport,
        *,
        graded: bool = False,
    ):
        self._common = {"schema_version": SCHEMA_VERSION, "evaluation_id": evaluation, "model_id": model}
        self._task = task
        self._graded = graded
        self._by_scorer: dict[str | None, list[AggregateResult]] = {}
        for result in results:
            self._by_scorer.setdefault(result.scorer, []).append(result)
        self._loss = loss

    def of(self, sample: Json) -> Iterator[Json]:
        """Yield the instances of a sample: those for each trial, then those over all trials."""
        trials = trials_of(sample)
        is_legacy = not sample.get("trials")
        num_before = self._loss.kept["score"]
        for position, trial in enumerate(trials):
            name = str(trial.get("index", position)) if len(trials) > 1 else None
            for score in mappings(trial.get("scores")):
                yield from self._scored(sample, [trial], score, name)
        if not is_legacy:
            for score in mappings(sample.get("scores")):
                yield from self._scored(sample, trials, score, "all" if len(trials) > 1 else None)
        if self._loss.kept["score"] == num_before:
            self._loss.dropped["sample without a numeric score: an instance needs one"] += 1
        else:
            self._loss.kept["sample"] += 1

    def _scored(self, sample: Json, trials: list[Json], score: Json, trial: str | None) -> Iterator[Json]:
        instance: Json | None = None
        for name, value in values_of(score):
            points = self._points(value)
            if points is None:
                self._loss.dropped["score that is not a finite number: an instance needs one"] += 1
                continue
            if instance is None:
                instance = self._instance(sample, trials, score, trial)
            self._loss.kept["score"] += 1
            if points not in (0, 1):
                # The field is boolean, and a fractional score is not correct.
                self._loss.changed["score between correct and wrong: is_correct is false"] += 1
            for result in self._results_of(score, name):
                evaluation = {**instance["evaluation"], "score": points, "is_correct": points == 1}
                metadata = {**(instance["metadata"] or {}), "score": name}
                linked = {"evaluation_name": self._task if result is None else result.name}
                if result is not None:
                    linked["evaluation_result_id"] = result.id
                yield {**self._common, **linked, **instance, "evaluation": evaluation, "metadata": metadata}

    def _points(self, value: Any) -> float | None:
        points = score_number(value, graded=self._graded)
        if points is not None and isinstance(value, str):
            self._loss.changed["grade of Inspect as a number: C is 1, P is 0.5, I and N are 0"] += 1
        return points

    def _results_of(self, score: Json, name: str) -> Sequence[AggregateResult | None]:
        """Return the numbers that a score belongs to: all with its name, or the only one of its scorer."""
        results = self._by_scorer.get(score.get("scorer_key"), [])
        same = [result for result in results if result.value == name]
        if same:
            return same
        return results if len(results) == 1 else [None]

    def _instance(self, sample: Json, trials: list[Json], score: Json, trial: str | None) -> Json:
        outputs = [output for one in trials for output in _outputs(one)]
        data = data_of(sample, trials[0])
        reference = _reference(score, data)
        items = list(items_of(outputs[-1])) if outputs else []
        messages, num_calls = _messages(items)
        is_agentic = num_calls > 0
        is_single = not is_agentic and [m["role"] for m in messages] in (["user", "assistant"], ["user"])
        raw = (last_text(outputs, "user") if outputs else None) or _question(data)
        instance: Json = {
            "sample_id": str(sample.get("sample_id")),
            "sample_hash": hashlib.sha256((raw + "".join(reference)).encode("utf-8", "replace")).hexdigest(),
            "interaction_type": "agentic" if is_agentic else "single_turn" if is_single else "multi_turn",
            "input": {"raw": raw, "formatted": None, "reference": reference, "choices": _choices(data)},
            "output": None,
            "messages": None,
            "answer_attribution": [],
            "evaluation": {},
            "token_usage": _usage(outputs),
            "error": "; ".join(_errors(sample, trials)) or None,
            "metadata": {
                "scorer": str(score.get("scorer_key")),
                **({} if trial is None else {"trial": trial}),
            },
        }
        if is_single or not messages:
            instance["interaction_type"] = "single_turn"
            answers = [last_text(list(_outputs(one)), "assistant") for one in trials]
            thoughts = [m["reasoning_trace"] for m in messages if m.get("reasoning_trace")]
            instance["output"] = {
                "raw": [answer for answer in answers if answer is not None],
                "reasoning_trace": thoughts or None,
            }
        else:
            if len(trials) > 1:
                self._loss.dropped[
                    "conversation of a trial, except the last one, because the score covers all trials"
                ] += len(trials) - 1
            instance["messages"] = messages
            turns = sum(message["role"] == "assistant" for message in messages)
            instance["evaluation"] = {"num_turns": max(turns, 1), "tool_calls_count": num_calls}
        instance["answer_attribution"] = _attribution(instance, score)
        return instance


def _attribution(instance: Json, score: Json) -> list[Json]:
    """Return the extracted answer, if the scorer provides it."""
    values = (member(score, "metadata", name) for name in PREDICTIONS)
    answer = next((value for value in values if value is not None), None)
    if answer is None:
        return []
    turns = [message["turn_idx"] for message in instance["messages"] or () if message["role"] == "assistant"]
    turn = turns[-1] if turns else 0
    return [
        {
            "turn_idx": turn,
            "source": "output.raw" if instance["messages"] is None else f"messages[{turn}].content",
            "extracted_value": value_text(answer),
            "extraction_method": str(score.get("scorer_name") or score.get("scorer_key")),
            "is_terminal": True,
        }
    ]


def _outputs(trial: Json) -> Iterator[Json]:
    output = member(trial, "solver", "output")
    if isinstance(output, dict):
        traces = output.get("traces")
        yield from mappings(traces) if isinstance(traces, list) else [output]


def _question(data: Mapping[str, Any]) -> str:
    for name in ("question", "query", "input", "prompt", "text", "q"):
        if isinstance(data.get(name), str):
            return str(data[name])
    return json_text(dict(data))


def _reference(score: Json, data: Mapping[str, Any]) -> list[str]:
    values = [member(score, "metadata", name) for name in TRUTHS] + [data.get(name) for name in _REFERENCES]
    value = next((value for value in values if value not in (None, [], "")), None)
    if value is None:
        return []
    return [value_text(part) for part in (value if isinstance(value, list) else [value])]


def _choices(data: Mapping[str, Any]) -> list[str] | None:
    choices = data.get("choices")
    return [value_text(choice) for choice in choices] if isinstance(choices, list) and choices else None


def _errors(sample: Json, trials: list[Json]) -> Iterator[str]:
    errors = errors_of({**sample, "trials": trials}) if sample.get("trials") else errors_of(sample)
    for error in errors:
        yield f"{error.get('error_type')}: {error.get('message')}"


def _usage(outputs: Sequence[Json]) -> Json | None:
    """Return the tokens of all calls; `None` if a call lacks token counts."""
    events = [event for output in outputs for event in mappings(member(output, "trace", "events"))]
    usages = [event.get("usage") for event in events if event.get("type") == "model_call_event"]
    prompt = [member(usage, "num_prompt_tokens") for usage in usages]
    completion = [member(usage, "num_completion_tokens") for usage in usages]
    counts = [*prompt, *completion]
    if not counts or not all(isinstance(count, int) and count >= 0 for count in counts):
        return None
    read, written = sum(prompt), sum(completion)
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _messages(items: Sequence[Json]) -> tuple[list[Json], int]:
    """Return the conversation and its number of tool calls.

    Reasoning is stored with the assistant message after it, and tool calls with the message before them.
    """
    messages: list[Json] = []
    num_calls = 0
    thoughts: list[str] = []
    for item in items:
        kind = item.get("type")
        if kind == _CALL:
            num_calls += 1
            speaker = messages[-1] if messages and messages[-1]["role"] == "assistant" else None
            if speaker is None:
                speaker = _message(messages, "assistant", None)
            speaker["tool_calls"] = [*(speaker.get("tool_calls") or []), _call(item)]
        elif kind == _RESULT:
            message = _message(messages, "tool", message_text(item.get("output")))
            message["tool_call_id"] = [str(item.get("call_id"))]
        else:
            content = item.get("content")
            reasoning = [
                str(part.get("text")) for part in mappings(content) if part.get("type") == "reasoning_text"
            ]
            if reasoning and len(reasoning) == len(list(mappings(content))):
                thoughts += reasoning
                continue
            message = _message(messages, role_of(item), message_text(content))
        if thoughts and messages[-1]["role"] == "assistant":
            messages[-1]["reasoning_trace"] = "\n".join(thoughts)
            thoughts = []
    if thoughts:
        _message(messages, "assistant", None)["reasoning_trace"] = "\n".join(thoughts)
    return messages, num_calls


def _message(messages: list[Json], role: str, content: str | None) -> Json:
    message: Json = {"turn_idx": len(messages), "role": role, "content": content}
    messages.append(message)
    return message


def _call(item: Json) -> Json:
    from aigo_bridge.text.json_text import read_json

    arguments = item.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments)
        except (ValueError, RecursionError):
            arguments = {"arguments": arguments}
    named = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    texts = {str(name): value_text(value) for name, value in named.items()}
    return {"id": str(item.get("call_id")), "name": str(item.get("name")), "arguments": texts}
