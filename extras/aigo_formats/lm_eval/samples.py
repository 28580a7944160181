"""Conversion of documents with answers and scores to AI GO sample evidence, as JSON-serializable
dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from aigo_bridge.importing.log_import import ImportOptions, LossReport
from aigo_bridge.text.json_text import finite_number, json_text, key_of, without_non_finite
from aigo_bridge.text.plurals import plural
from aigo_formats.lm_eval.header import StoredMetric, score_name
from aigo_formats.lm_eval.requests import (
    Item,
    Request,
    message_item,
    plain_likelihoods,
    prompt_items,
    requests_of,
)
from aigo_formats.lm_eval.rows import HarnessDocument

Json = dict[str, Any]
_KNOWN = frozenset(
    {
        "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
        "doc_hash", "prompt_hash", "target_hash",
    }
)  # fmt: skip
"""Fields of a line that are not scores."""
_NO_SCORE = "bypass"
"""Placeholder metric with the value 999 in runs that only predict."""


@dataclass
class HarnessTotals:
    """Totals over the documents of a task."""

    samples: int = 0
    trials: int = 0
    most_trials: int = 0
    failed: int = 0
    """Number of documents without a score, if the task has scores."""


@dataclass
class HarnessMapper:
    """Converter of the documents of one task.

    Args:
        run: name of the run, used in trace ids.
        source: location of the samples.
        model: model name; `None` if unknown.
        options: import options.
        loss: report for loss counts.
    """

    run: str
    source: str
    model: str | None
    options: ImportOptions
    loss: LossReport
    totals: HarnessTotals = field(default_factory=HarnessTotals)

    def __post_init__(self) -> None:
        self.scores = HarnessScores(self.loss)

    def sample(self, document: HarnessDocument) -> Json:
        """Return the evidence of one document.

        Each repeat of a request is a trial. The harness scores all repeats together, so several repeats share
        the scores of the sample.

        Raises:
            TypeError, ValueError, KeyError, IndexError: the lines cannot be converted.
        """
        rows = [self._finite(row) for row in document.rows]
        data = sample_data(rows[0])
        requests = requests_of(rows[0])
        filtered = self._filtered(rows)
        scores = [score for row in rows for score in self.scores.of(row)]
        count = max((len(request.answers) for request in requests), default=1) or 1
        trials = []
        for index in range(count):
            name = f"{document.sample_id}/{index}"
            solver = self._solver(name, index, requests, filtered if index == 0 else {})
            trials.append(
                {
                    "index": index,
                    "sample_id": document.sample_id,
                    "sample": {"data": data},
                    "solver": solver,
                    "scores": None if count > 1 else scores,
                    "errors": [],
                }
            )
        if not scores and self.scores.expected:
            message = "the samples file lacks a score for the document"
            for trial in trials:
                trial["errors"] = [{"error_type": "UnscoredDocument", "message": message}]
            self.totals.failed += 1
            self.loss.changed["document without a score: reported as an error"] += 1
        totals = self.totals
        totals.samples += 1
        totals.trials += count
        totals.most_trials = max(totals.most_trials, count)
        self.loss.kept["sample"] += count
        return {
            "sample_id": document.sample_id,
            "sample": None,
            "solver": None,
            "scores": scores if count > 1 else None,
            "errors": [],
            "trials": trials,
        }

    def _finite(self, row: Json) -> Json:
        request = {name: value for name, value in row.items() if name in _KNOWN}
        texts, count = without_non_finite(request)
        if count:
            self.loss.changed["number that is not finite: written as text"] += count
        # Scores are handled separately.
        return {**row, **texts}

    def _filtered(self, rows: list[Json]) -> Json:
        """Return the filtered answers that differ from the model's answers."""
        filtered: Json = {}
        for row in rows:
            values = []
            for request in requests_of(row):
                answers = list(request.answers)
                same = request.filtered in (None, answers, *answers[:1]) or [request.filtered] == answers
                values.append(None if same else request.filtered)
            if any(value is not None for value in values):
                filtered[str(row.get("filter", "none"))] = values[0] if len(values) == 1 else values
        return filtered

    def _solver(self, name: str, index: int, requests: Sequence[Request], filtered: Json) -> Json | None:
        calls = [*self._calls(requests, index)]
        if not calls:
            return None
        if filtered:
            calls[-1].notes["filtered_resps"] = filtered
        events = [call.event(f"{name}/{number}", self.model) for number, call in enumerate(calls)]
        metadata: Json = {
            "trace_id": f"{self.run}/{name}",
            "source_type": "lm-eval",
            "source_uri": self.source,
        }
        if self.model is not None:
            metadata["model"] = self.model
        items = [*calls[-1].prompt, *calls[-1].answer]
        if self.options.context == "none":
            for event in events:
                event["metadata"]["lm_eval"]["context"] = {"left_out": len(event["input_context"])}
                event["input_context"] = []
        trace = {"items": items, "metadata": metadata, "events": events}
        return {"output": {"trace": trace, "raw_outputs": [call.output for call in calls], "direct_ios": []}}

    def _calls(self, requests: Sequence[Request], index: int) -> Iterator[_Call]:
        """Yield the calls of one trial. Continuations of one prompt are one call because they are requested
        together.
        """

        def together(request: Request) -> str:
            return json_text([request.is_generation, request.context])

        groups = [list(group) for _, group in groupby(requests, together)]
        for group in groups:
            if not group[0].is_generation:
                if all(index < len(request.answers) for request in group):
                    yield self._likelihoods(group, index)
                continue
            for request in group:
                if index < len(request.answers):
                    yield self._said(request, index)

    def _likelihoods(self, group: list[Request], index: int) -> _Call:
        self.loss.kept["model call"] += 1
        # A likelihood of the text itself has an empty prompt, so the text is stored as the prompt.
        content = plain_likelihoods(group, index)
        item: Item = {"type": "custom_task_output_message", "content": content}
        return _Call(prompt_items(group[0].context, self.loss), [item], content, _more(group[0]))

    def _said(self, request: Request, index: int) -> _Call:
        self.loss.kept["model call"] += 1
        answer = request.answers[index]
        text = answer if isinstance(answer, str) else json_text(answer)
        prompt = prompt_items(request.context, self.loss)
        output: Json = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        notes = {"generation_kwargs": request.asked, **_more(request)}
        return _Call(prompt, [message_item(len(prompt), "assistant", text)], output, notes)


def _more(request: Request) -> Json:
    return {"arguments": list(request.more)} if request.more else {}


@dataclass(frozen=True)
class _Call:
    """Answer of the model, or its likelihoods."""

    prompt: list[Item]
    answer: list[Item]
    output: Any
    """Entry for `raw_outputs`."""
    notes: Json

    def event(self, name: str, model: str | None) -> Json:
        """Return the `ModelCallEvent`."""
        return {
            "type": "model_call_event",
            "id": name,
            "model": model or "unknown",
            "input_context": self.prompt,
            "output_items": self.answer,
            "metadata": {"lm_eval": dict(self.notes)},
        }


def sample_data(row: Json) -> Json:
    """Return a document as a row: its fields, and the reference answer as `target`. If the document has a
    different field `target`, the name is `lm_eval_target`.
    """
    doc = row.get("doc")
    data = dict(doc) if isinstance(doc, dict) else {"doc": doc}
    if row.get("target") is not None:
        data["target" if "target" not in data or data["target"] == row["target"] else "lm_eval_target"] = row[
            "target"
        ]
    return data


# Scores


class HarnessScores:
    """Scores of documents in file order. The keys of names are computed once.

    Args:
        loss: report for loss counts.
    """

    def __init__(self, loss: LossReport):
        self._loss = loss
        self._keys: dict[str, str] = {}
        self._values: dict[tuple[str, str], list[Any]] = {}
        self.expected = False
        """Whether a document so far has a score."""

    @property
    def names(self) -> list[str]:
        """Return the score names found so far."""
        return list(self._keys)

    def of(self, row: Json) -> list[Json]:
        """Return the `ScoresData` of a samples line.

        Intermediate values of a corpus metric are not scores of the document. Examples are an answer with its
        reference, and a likelihood with a word count. They are kept under their own names and marked
        `corpus_level`.
        """
        listed = row.get("metrics")
        # Releases before 0.4.8 do not list the metrics. New fields of later releases must not be read as
        # scores.
        names = listed if isinstance(listed, list) else [name for name in row if name not in _KNOWN]
        scores = []
        for name in names:
            if name == _NO_SCORE:
                self._loss.dropped["score 'bypass': a placeholder of runs that only predict"] += 1
            elif isinstance(name, str) and (name in row or listed is names):
                scores.append(self._score(name, str(row.get("filter", "none")), row.get(name)))
        self.expected = self.expected or bool(scores)
        return scores

    def _score(self, metric: str, filter_name: str, value: Any) -> Json:
        name = score_name(metric, filter_name)
        key = self._keys.setdefault(name, key_of(name))
        self._values.setdefault((metric, filter_name), []).append(value)
        self._loss.kept["score"] += 1
        metadata: Json = {}
        if value is None:
            self._loss.changed["score without a value: written as null, marked as unscored"] += 1
            metadata |= {"unscored": True, "reason": "the samples file lacks a value for this metric"}
        if isinstance(value, (list, dict)):
            metadata["corpus_level"] = True
        text, count = without_non_finite(value)
        if count:
            what = "score value that is not a finite number: written as null, original text in its metadata"
            self._loss.changed[what] += count
            metadata |= {"unscored": True, "values": {name: text}}
            value = nulled(value)
        score = {"scorer_key": key, "scorer_name": name, "values": {name: value}}
        if metadata:
            score["metadata"] = metadata
        return score

    def disagreements(self, metrics: Iterable[StoredMetric], aggregations: dict[str, str]) -> Iterator[str]:
        """Yield the metrics that differ from the aggregate of their documents. In that case the files belong
        to different runs.

        Args:
            metrics: metrics in the results file.
            aggregations: aggregations by metric. Those that only a library can compute are not checked.
        """
        for metric in metrics:
            stored = finite_number(metric.value)
            values = self._values.get((metric.metric, metric.filter))
            aggregate = AGGREGATES.get(aggregations.get(metric.metric, ""))
            if stored is None or not values or aggregate is None or metric.metric == _NO_SCORE:
                continue
            try:
                number = aggregate(values)
            except (TypeError, ValueError, ArithmeticError):
                continue
            if math.isfinite(number) and not math.isclose(stored, number, rel_tol=1e-6, abs_tol=1e-9):
                yield (
                    f"metric {metric.name!r} is {stored:.6g}, its {plural(len(values), 'document')} result in"
                    f" {number:.6g}: results and samples are from different runs"
                )


def nulled(value: Any) -> Any:
    """Return a value with null instead of numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [nulled(item) for item in value]
    if isinstance(value, dict):
        return {name: nulled(item) for name, item in value.items()}
    return value


def _mean(values: Sequence[Any]) -> float:
    return math.fsum(values) / len(values)


def _likelihood_per_unit(values: Sequence[Any]) -> float:
    """Return the sum of log-likelihoods divided by the sum of words or bytes."""
    return math.fsum(pair[0] for pair in values) / math.fsum(pair[1] for pair in values)


def _correlation(values: Sequence[Any]) -> float:
    """Return Matthews' correlation of pairs of classes (Gorodkin 2004 for more than two)."""
    classes = {item for pair in values for item in pair}
    n, correct = len(values), sum(gold == predicted for gold, predicted in values)
    golds = {name: sum(gold == name for gold, _ in values) for name in classes}
    predictions = {name: sum(predicted == name for _, predicted in values) for name in classes}
    covariance = correct * n - sum(golds[name] * predictions[name] for name in classes)
    spread = (n * n - sum(count**2 for count in predictions.values())) * (
        n * n - sum(count**2 for count in golds.values())
    )
    return covariance / math.sqrt(spread) if spread else 0.0


AGGREGATES = {
    "mean": _mean,
    "perplexity": lambda values: math.exp(-_mean(values)),
    "weighted_perplexity": lambda values: math.exp(-_likelihood_per_unit(values)),
    "bits_per_byte": lambda values: -_likelihood_per_unit(values) / math.log(2),
    "matthews_corrcoef": _correlation,
}
"""Functions that compute each aggregation from the documents' values."""
