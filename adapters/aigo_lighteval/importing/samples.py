"""Conversion of documents with answers and metrics to AI GO sample evidence, as JSON-serializable
dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aigo_bridge.importing.log_import import ImportOptions, LossReport
from aigo_bridge.scoring.likelihoods import RAW_KEY
from aigo_bridge.text.json_text import finite_number, key_of, without_non_finite
from aigo_bridge.text.plurals import plural
from aigo_lighteval.importing.rows import (
    NONE,
    DocumentRow,
    DocumentRows,
    Failures,
    Item,
    PromptSettings,
    answer_items,
    carried_failures,
    golds_of,
    image_part,
    prompt_items,
    stored_failure,
    unscored,
)

Json = dict[str, Any]
_PER_TEXT = ("output_tokens", "logits")
"""Response fields with one entry per answer."""
_BULK = ("input_tokens", "output_tokens", "logits")
_SPOKEN = frozenset({"input", "text", "text_post_processed", "reasonings"})
_ZERO = frozenset({"truncated_tokens_count", "padded_tokens_count"})


@dataclass
class LogTotals:
    """Totals over the documents of a task."""

    samples: int = 0
    trials: int = 0
    most_trials: int = 0
    """Maximum number of answers of a document."""
    answered: int = 0
    """Number of documents with a response."""
    failed: int = 0
    """Number of documents that failed or are without a score."""
    task_name: str | None = None
    """Task name in the documents."""
    num_fewshots: int | None = None
    """Number of few-shot examples of the first document."""


@dataclass
class DocumentMapper:
    """Converter of the documents of one task.

    Args:
        run: name of the run, used in trace ids.
        source: location of the details.
        model: model name; `None` if unknown.
        prompts: prompt settings of the model.
        options: import options.
        loss: report for loss counts.
    """

    run: str
    source: str
    model: str | None
    prompts: PromptSettings
    options: ImportOptions
    loss: LossReport
    totals: LogTotals = field(default_factory=LogTotals)
    """Totals over the documents converted so far."""

    def __post_init__(self) -> None:
        self.scores = DocumentScores(self.loss)

    def sample(self, document: DocumentRows) -> Json:
        """Return the evidence of one document.

        Each answer is a trial. lighteval scores all answers of a document together, so several answers share
        the scores of the sample.

        Raises:
            AttributeError, IndexError, KeyError, TypeError, ValueError: the rows are too malformed to
                convert.
        """
        odd = any(row.odd for row in document.rows)
        rows = [self._finite(row) for row in document.rows] if odd else document.rows
        failures = self._failures(rows)
        measured = [row.metric for row in document.rows if row.metric is not None]
        scores = self.scores.of(measured, odd=odd, failed=failures is not NONE)
        doc = next((row.doc for row in rows if row.doc is not None), None)
        data = None if doc is None else sample_data(doc)
        calls = [self._calls(row, data or {}) for row in rows if row.response is not None]
        # Generated answers come last because a trace contains the conversation of its last call.
        calls.sort(key=lambda row_calls: row_calls[0].spoken)
        count = max((len(row_calls) for row_calls in calls), default=1)
        several = count > 1
        trials: list[Json] = []
        for index in range(count):
            trial_calls = [row_calls[index] for row_calls in calls if index < len(row_calls)]
            trials.append(
                {
                    "index": index,
                    "sample_id": document.sample_id,
                    "sample": None if data is None else {"data": data},
                    "solver": self._solver(f"{document.sample_id}/{index}", trial_calls)
                    if trial_calls
                    else None,
                    "scores": None if several else scores,
                    "errors": [],
                }
            )
        for number, error in failures.errors:
            for trial in trials if number is None else [trials[min(number, count - 1)]]:
                trial["errors"].append(dict(error))
        self._count(document, doc, len(trials), bool(calls))
        self.totals.failed += failures.failed
        return {
            "sample_id": document.sample_id,
            "sample": None,
            "solver": None,
            "scores": scores if several else None,
            "errors": [],
            "trials": trials,
        }

    def _failures(self, rows: list[DocumentRow]) -> Failures:
        for row in rows:
            failures = stored_failure(row.failure)
            if failures is NONE:
                failures = carried_failures(row.response or {}, row.metric or {})
            if failures is not NONE:
                self.loss.kept["failure"] += len(failures.errors)
                return failures
        # Unreadable metrics are damage, which is reported with the log.
        metrics = [row.metric for row in rows if row.metric is not None]
        answered = any(
            row.response and (row.response.get("text") or row.response.get("logprobs")) for row in rows
        )
        # A metric without a value for an answer is unscored, not failed.
        if not metrics or any(value is not None or answered for row in metrics for value in row.values()):
            return NONE
        what = "without a score" if answered else "without an answer or a score"
        self.loss.changed[f"document {what}: reported as an error"] += 1
        return unscored(answered=answered)

    def _count(self, document: DocumentRows, doc: Json | None, trials: int, answered: bool) -> None:
        totals = self.totals
        totals.samples += 1
        totals.trials += trials
        totals.most_trials = max(totals.most_trials, trials)
        totals.answered += answered
        self.loss.kept["sample"] += trials
        if doc is not None and totals.task_name is None:
            name, shots = doc.get("task_name"), doc.get("fewshot_samples")
            totals.task_name = name if isinstance(name, str) and name else None
            totals.num_fewshots = len(shots) if isinstance(shots, list) else 0

    def _finite(self, row: DocumentRow) -> DocumentRow:
        doc, docs = without_non_finite(row.doc)
        response, responses = without_non_finite(row.response)
        if docs + responses:
            self.loss.changed["number that is not finite: written as text"] += docs + responses
        return replace(row, doc=doc, response=response, odd=False)

    def _solver(self, name: str, calls: list[_Call]) -> Json:
        events = [call.event(f"{name}/{number}", self.model) for number, call in enumerate(calls)]
        metadata: Json = {
            "trace_id": f"{self.run}/{name}",
            "source_type": "lighteval",
            "source_uri": self.source,
        }
        if self.model is not None:
            metadata["model"] = self.model
        items = [*calls[-1].prompt, *calls[-1].answer]
        if self.options.context == "none":
            for event in events:
                left_out = {"left_out": len(event["input_context"])}
                event["input_context"] = []
                event["metadata"] = {"lighteval": {**event["metadata"]["lighteval"], "context": left_out}}
        trace = {"items": items, "metadata": metadata, "events": events}
        return {"output": {"trace": trace, "raw_outputs": [call.output for call in calls], "direct_ios": []}}

    def _calls(self, row: DocumentRow, data: Json) -> list[_Call]:
        response: Json = row.response or {}
        prompt, rebuilt = prompt_items(row.doc or {}, response, self.prompts, self.loss)
        notes = {
            name: value
            for name, value in response.items()
            if name not in _SPOKEN
            and value is not None
            and value != []
            and not (name in _ZERO and value == 0)
        }
        if rebuilt:
            notes["prompt"] = "rebuilt from the document"
        if self.options.events == "minimal":
            for name in _BULK:
                if notes.pop(name, None) is not None:
                    self.loss.dropped[f"{name} of an answer (--events minimal)"] += 1
        self.loss.kept["model call"] += 1
        texts = response.get("text")
        if not isinstance(texts, list):
            texts = [] if texts is None else [texts]
        if texts:
            self.loss.kept["model call"] += len(texts) - 1
            return [self._said(prompt, response, texts, at, notes) for at in range(len(texts))]
        if response.get("logprobs"):
            content = _likelihoods(response, data)
            for name in ("logprobs", "argmax_logits_eq_gold", "unconditioned_logprobs"):
                notes.pop(name, None)
            item: Item = {"type": "custom_task_output_message", "content": content}
            return [_Call(prompt, [item], content, notes, spoken=False)]
        return [_Call(prompt, [], None, notes, spoken=False)]

    def _said(self, prompt: list[Item], response: Json, texts: list[Any], at: int, notes: Json) -> _Call:
        text = texts[at] if isinstance(texts[at], str) else "" if texts[at] is None else str(texts[at])
        # Values for all answers are stored with the first one.
        answer_notes = dict(notes) if at == 0 else {}
        if len(texts) > 1:
            for name in _PER_TEXT:
                values = notes.get(name)
                if isinstance(values, list) and len(values) == len(texts):
                    answer_notes[name] = [values[at]]
        scored = _at(response.get("text_post_processed"), at)
        if scored is not None and scored != text:
            answer_notes["text_post_processed"] = scored
        answer = answer_items(len(prompt), text, _at(response.get("reasonings"), at))
        output: Json = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        return _Call(prompt, answer, output, answer_notes, spoken=True)


@dataclass(frozen=True)
class _Call:
    """Answer of the model, or its likelihoods."""

    prompt: list[Item]
    answer: list[Item]
    output: Any
    """Entry for `raw_outputs`."""
    notes: Json
    spoken: bool
    """Whether the model generated an answer. Otherwise it computed likelihoods."""

    def event(self, name: str, model: str | None) -> Json:
        """Return the `ModelCallEvent`."""
        # Usage is omitted: batches can be padded on both sides, so the number of token ids is not the number
        # of tokens.
        return {
            "type": "model_call_event",
            "id": name,
            "model": model or "unknown",
            "input_context": self.prompt,
            "output_items": self.answer,
            "metadata": {"lighteval": self.notes},
        }


def sample_data(doc: Json) -> Json:
    """Return a document as a row: every field with a value, images as URLs, and the correct answers as
    `golds`.
    """
    data = {name: value for name, value in doc.items() if value is not None}
    images = doc.get("images")
    if isinstance(images, list):
        data["images"] = [(image_part(image) or {"image_url": image})["image_url"] for image in images]
    if golds := golds_of(doc):
        data["golds"] = golds
    return data


def _likelihoods(response: Json, data: Json) -> Json:
    """Return a likelihood answer in aigo-bridge's own form if it is complete, so that it can be scored
    again.
    """
    logprobs, choices = response["logprobs"], data.get("choices")
    greedy, tokens = response.get("argmax_logits_eq_gold"), response.get("output_tokens") or []
    of_choices = "PERPLEXITY" not in (data.get("sampling_methods") or [])
    lists = [choices, logprobs, greedy, tokens]
    content: Json = {}
    if (
        of_choices
        and all(isinstance(values, list) and len(values) == len(logprobs) for values in lists)
        and all(isinstance(token_ids, list) and token_ids for token_ids in tokens)
    ):
        content[RAW_KEY] = [
            {
                "continuation": choice,
                "log_likelihood": logprob,
                # Shorter continuations are padded with -1 to the length of the longest one.
                "num_tokens": sum(isinstance(token, int) and token >= 0 for token in token_ids),
                "is_greedy": is_greedy,
            }
            for choice, logprob, is_greedy, token_ids in zip(*lists, strict=True)
        ]
        left: tuple[str, ...] = ("unconditioned_logprobs",)
    else:
        if of_choices and isinstance(choices, list) and len(choices) == len(logprobs):
            content["choices"] = choices
        left = ("logprobs", "argmax_logits_eq_gold", "unconditioned_logprobs")
    return content | {name: response[name] for name in left if response.get(name)}


def _at(values: Any, at: int) -> Any:
    return values[at] if isinstance(values, list) and at < len(values) else None


# Scores


class DocumentScores:
    """Scores of documents in file order. The keys of names are computed once.

    Args:
        loss: report for loss counts.
    """

    def __init__(self, loss: LossReport):
        self._loss = loss
        self._keys: dict[str, str] = {}
        self._numbers: dict[str, list[float]] = {}

    @property
    def names(self) -> list[str]:
        """Return the metric names found so far."""
        return list(self._keys)

    def of(self, metrics: Sequence[Json], *, odd: bool, failed: bool) -> list[Json]:
        """Return the `ScoresData` of one document.

        Intermediate values of a corpus metric, such as answers or sums of log-likelihoods, are not scores of
        the document. They are kept under their own names.

        Args:
            metrics: metrics of the document, one dictionary for each request type. A metric that is null
                in one was measured in another.
            odd: whether a value may be a number that is not finite.
            failed: whether the document failed, so that metrics without a value are not unscored.
        """
        measured = [(name, value) for row in metrics for name, value in row.items() if value is not None]
        scores = [self._score(name, value, odd) for name, value in measured]
        if not failed:
            names = dict.fromkeys(name for row in metrics for name in row)
            valued = dict(measured)
            scores += [self._unscored(name) for name in names if name not in valued]
        return scores

    def _unscored(self, name: str) -> Json:
        self._loss.changed["score without a value: written as null, marked as unscored"] += 1
        score = self._score(name, None, odd=False)
        return score | {"metadata": {"unscored": True, "reason": "lighteval lacks a value for this metric"}}

    def _score(self, name: str, value: Any, odd: bool) -> Json:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = key_of(name)
        self._loss.kept["score"] += 1
        metadata: Json = {}
        if isinstance(value, dict):
            values = value or {name: None}
            metadata["corpus_level"] = True
        else:
            values = {name: value}
            if isinstance(value, (int, float)) and math.isfinite(value):
                self._numbers.setdefault(name, []).append(value)
        if odd:
            texts, count = without_non_finite(values)
            if count:
                self._loss.changed[
                    "score value that is not a finite number: written as null, original text in its metadata"
                ] += count
                metadata["unscored"] = True
                metadata["values"] = {name: text for name, text in texts.items() if text != values[name]}
                values = {name: _nulled(item) for name, item in values.items()}
        score = {"scorer_key": key, "scorer_name": name, "values": values}
        if metadata:
            score["metadata"] = metadata
        return score

    def disagreements(self, results: Any, functions: dict[str, str]) -> Iterator[str]:
        """Yield the metrics that differ from the mean of their documents, although they are configured as
        means. In that case the files belong to different runs.

        Args:
            results: values by metric.
            functions: name of the aggregation function by metric.
        """
        for name, numbers in self._numbers.items():
            value = finite_number(results.get(name)) if isinstance(results, dict) else None
            if value is None or functions.get(name) != "mean":
                continue
            mean = math.fsum(numbers) / len(numbers)
            if math.isfinite(mean) and not math.isclose(value, mean, rel_tol=1e-6, abs_tol=1e-9):
                yield (
                    f"metric {name!r} is {value:.6g}, the mean of its"
                    f" {plural(len(numbers), 'document')} is {mean:.6g}:"
                    " results and details are from different runs"
                )


def _nulled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_nulled(item) for item in value]
    if isinstance(value, dict):
        return {name: _nulled(item) for name, item in value.items()}
    return value
