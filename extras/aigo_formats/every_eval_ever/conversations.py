"""Conversion of a sample's instances to AI GO sample evidence, as JSON-serializable dictionaries."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from aigo_bridge.importing.log_import import ImportOptions, LossReport
from aigo_bridge.text.json_text import json_text, key_of, non_finite_text, without_non_finite
from aigo_formats.every_eval_ever.records import Number

Json = dict[str, Any]
Item = dict[str, Any]
_ROLES = frozenset({"system", "user", "assistant", "developer"})
_OVER_TRIALS = "all"
"""Value of `metadata.trial` for a score over all trials, in files exported by aigo-bridge."""
_TAKEN = frozenset({"input", "output", "messages", "evaluation", "error", "token_usage", "sample_id"})
"""Instance fields that are mapped separately."""
_OWN_METADATA = frozenset({"scorer", "trial", "score"})


class InstanceMapper:
    """Converter of the instances of one evaluation.

    Args:
        evaluation: name of the evaluation, used in trace ids.
        source: location of the instances.
        model: model id; `None` if unknown.
        numbers: numbers in the record.
        options: import options.
        loss: report for loss counts.
    """

    def __init__(
        self,
        evaluation: str,
        source: str,
        model: str | None,
        numbers: Sequence[Number],
        options: ImportOptions,
        loss: LossReport,
    ):
        self._evaluation = evaluation
        self._source = source
        self._model = model
        self._numbers = {number.id: number for number in numbers if number.id is not None}
        members = [number for number in numbers if number.evaluation == evaluation]
        self._only = members[0] if len(members) == 1 else None
        self._options = options
        self._loss = loss
        self.samples = self.trials = self.failed = 0

    def sample(self, sample_id: str, instances: Sequence[Json]) -> Json:
        """Return the evidence of one sample.

        Raises:
            TypeError, ValueError, KeyError, AttributeError: the instances cannot be converted.
        """
        by_trial, over_trials = self._by_trial([self._finite(instance) for instance in instances])
        entries = next(iter(by_trial.values()), over_trials)
        answers = _answers(entries[0])
        if len(answers) > 1 and len(by_trial) < 2:
            # These answers were scored together.
            trials = [self._trial(sample_id, index, entries, index) for index in range(len(answers))]
            over_trials = [*next(iter(by_trial.values()), []), *over_trials]
            for trial in trials:
                trial["scores"] = None
        elif by_trial:
            trials = [
                self._trial(sample_id, index, members, 0) for index, members in sorted(by_trial.items())
            ]
        else:
            trials = [{**self._trial(sample_id, 0, over_trials, 0), "scores": None}]
        self.samples += 1
        self.trials += len(trials)
        self.failed += any(trial["errors"] for trial in trials)
        self._loss.kept["sample"] += 1
        return {
            "sample_id": sample_id,
            "sample": None,
            "solver": None,
            "scores": self._scores(over_trials) if over_trials else None,
            "errors": [],
            "trials": trials,
        }

    def _finite(self, instance: Json) -> Json:
        fields, count = without_non_finite(
            {name: part for name, part in instance.items() if name != "evaluation"}
        )
        if count:
            self._loss.changed["number that is not finite: written as text"] += count
        return {**fields, "evaluation": instance.get("evaluation")}

    def _by_trial(self, instances: Sequence[Json]) -> tuple[dict[int, list[Json]], list[Json]]:
        """Return instances by trial, and instances over all trials. A repeated score belongs to another
        trial.
        """
        by_trial: dict[int, list[Json]] = {}
        over_trials: list[Json] = []
        seen: dict[tuple[Any, ...], int] = {}
        for instance in instances:
            metadata = _object(instance.get("metadata"))
            trial = metadata.get("trial")
            if trial == _OVER_TRIALS:
                over_trials.append(instance)
            elif isinstance(trial, str) and trial.isdecimal() and len(trial) < 9:
                by_trial.setdefault(int(trial), []).append(instance)
            else:
                key = (instance.get("evaluation_result_id"), metadata.get("scorer"), metadata.get("score"))
                by_trial.setdefault(seen.get(key, 0), []).append(instance)
                seen[key] = seen.get(key, 0) + 1
        return by_trial, over_trials

    def _trial(self, sample_id: str, index: int, instances: Sequence[Json], answer: int) -> Json:
        instance = instances[0]
        return {
            "index": index,
            "sample_id": sample_id,
            "sample": {"data": _data(instance)},
            "solver": self._solver(f"{sample_id}/{index}", instance, answer),
            "scores": self._scores(instances),
            "errors": _errors(instance),
        }

    def _solver(self, name: str, instance: Json, answer: int) -> Json:
        fields = {key: part for key, part in instance.items() if key not in _TAKEN and part is not None}
        metadata: Json = {
            "trace_id": f"{self._evaluation}/{name}",
            "source_type": "every-eval-ever",
            "source_uri": self._source,
            "extra": {"every_eval_ever": fields},
        }
        if self._model is not None:
            metadata["model"] = self._model
        events: list[Json] = []
        messages = instance.get("messages")
        if isinstance(messages, list):
            items = [item for number, part in enumerate(messages) for item in _items(number, part)]
            # The record does not contain the calls' messages and inputs.
            fields["token_usage"] = instance.get("token_usage")
        else:
            prompt, answered = self._single(instance, answer)
            items = [*prompt, *answered]
            event: Json = {
                "type": "model_call_event",
                "id": name,
                "model": self._model or "unknown",
                "input_context": [] if self._options.context == "none" else prompt,
                "output_items": answered,
            }
            usage = _object(instance.get("token_usage"))
            if usage and len(_answers(instance)) < 2:
                event["usage"] = {
                    "num_prompt_tokens": usage.get("input_tokens"),
                    "num_completion_tokens": usage.get("output_tokens"),
                }
            events.append(event)
            self._loss.kept["model call"] += 1
        return {
            "output": {
                "trace": {"items": items, "metadata": metadata, "events": events},
                "raw_outputs": [],
                "direct_ios": [],
            }
        }

    def _single(self, instance: Json, answer: int) -> tuple[list[Item], list[Item]]:
        question = _object(instance.get("input"))
        # Use the prompt that the model received, if it is recorded.
        prompt = [_message(0, "user", _text(question.get("formatted") or question.get("raw")))]
        answers, output = _answers(instance), _object(instance.get("output"))
        thoughts = output.get("reasoning_trace")
        answered: list[Item] = []
        if isinstance(thoughts, list) and answer < len(thoughts) and thoughts[answer]:
            answered.append(_thought(1, _text(thoughts[answer])))
        if answer < len(answers):
            answered.append(_message(1 + len(answered), "assistant", answers[answer]))
        return prompt, answered

    def _scores(self, instances: Sequence[Json]) -> list[Json]:
        scores: dict[str, Json] = {}
        for instance in instances:
            evaluation, metadata = _object(instance.get("evaluation")), _object(instance.get("metadata"))
            if "score" not in evaluation:
                self._loss.dropped["instance without a score"] += 1
                continue
            identifier = instance.get("evaluation_result_id")
            number = self._numbers.get(identifier) if isinstance(identifier, str) else self._only
            name = str(metadata.get("score") or (number.value if number else "score"))
            scorer_name = str(metadata.get("scorer") or (number.scorer if number else "score"))
            score = scores.setdefault(
                scorer_name,
                {
                    "scorer_key": key_of(scorer_name),
                    "scorer_name": number.scorer_name if number else scorer_name,
                    "values": {},
                    "metadata": {"is_correct": evaluation.get("is_correct")},
                },
            )
            value = evaluation["score"]
            if isinstance(value, float) and not math.isfinite(value):
                self._loss.changed[
                    "score value that is not a finite number: written as null, original text in its metadata"
                ] += 1
                score["metadata"] |= {"unscored": True, "values": {name: non_finite_text(value)}}
                value = None
            score["values"][name] = value
            attribution = instance.get("answer_attribution")
            if isinstance(attribution, list) and attribution and isinstance(attribution[-1], dict):
                score["metadata"]["answer"] = attribution[-1].get("extracted_value")
            self._loss.kept["score"] += 1
        return list(scores.values())


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def _answers(instance: Json) -> list[str]:
    raw = _object(instance.get("output")).get("raw")
    return [_text(answer) for answer in raw] if isinstance(raw, list) else []


def _data(instance: Json) -> Json:
    """Return the row: question, correct answers, choices, and other information about the sample."""
    question = _object(instance.get("input"))
    data: Json = {"input": question.get("raw"), "reference": question.get("reference") or []}
    if question.get("choices") is not None:
        data["choices"] = question["choices"]
    metadata = _object(instance.get("metadata"))
    return data | {
        name: part for name, part in metadata.items() if name not in _OWN_METADATA and name not in data
    }


def _errors(instance: Json) -> list[Json]:
    error = instance.get("error")
    if not isinstance(error, str) or not error:
        return []
    kind, colon, message = error.partition(": ")
    if colon and re.fullmatch(r"\w+", kind):
        return [{"error_type": kind, "message": message}]
    return [{"error_type": "InstanceError", "message": error}]


def _items(number: int, message: Any) -> Iterator[Item]:
    if not isinstance(message, dict):
        raise TypeError(f"message {number} is {type(message).__name__}, expected an object")
    role = message.get("role")
    if message.get("reasoning_trace"):
        yield _thought(number, _text(message["reasoning_trace"]))
    calls = message.get("tool_call_id")
    if role == "tool" and isinstance(calls, list) and calls:
        for call in calls:
            output = {"type": "function_call_output", "id": f"o{number}", "status": "completed"}
            yield {**output, "call_id": _text(call), "output": _text(message.get("content"))}
    elif role in _ROLES:
        if message.get("content") is not None:
            yield _message(number, str(role), _text(message["content"]))
    else:
        yield {"type": "custom_task_input_message", "content": message}
    for place, call in enumerate(message.get("tool_calls") or []):
        yield {
            "type": "function_call",
            "id": f"f{number}-{place}" if place else f"f{number}",
            "call_id": _text(call.get("id")),
            "name": _text(call.get("name")),
            "arguments": json_text(call.get("arguments") or {}),
            "status": "completed",
        }


def _thought(number: int, text: str) -> Item:
    part = {"type": "reasoning_text", "text": text}
    return {
        "type": "message",
        "id": f"r{number}",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _message(number: int, role: str, text: str) -> Item:
    part: Json = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"m{number}", "status": "completed", "role": role, "content": [part]}
