"""lighteval's metrics: those of a document are scores, those of a task are metrics with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from aigo_bridge.importing.encoding import non_finite_text, without_non_finite
from aigo_bridge.importing.key_names import key_of
from aigo_bridge.importing.loss import LossReport

Json = dict[str, Any]
_STDERR = "_stderr"


class Scores:
    """Scores of documents, in the order of the file; keys of names are made once.

    Args:
        loss: where counts go.
    """

    def __init__(self, loss: LossReport):
        self._loss = loss
        self._keys: dict[str, str] = {}
        self._numbers: dict[str, list[float]] = {}

    @property
    def names(self) -> list[str]:
        """The metrics met so far."""
        return list(self._keys)

    def of(self, metrics: Iterable[Json], *, odd: bool) -> list[Json]:
        """`ScoresData` of one document.

        What a corpus metric prepared (answers and golds, sums of log likelihoods) is no score of the document: it is kept under its own names.

        Args:
            metrics: its metrics, one dictionary for each way of asking; a metric that is null there was measured in another.
            odd: whether a value may be no finite number.
        """
        return [self._score(name, value, odd) for name, value in _measured(metrics)]

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
            if isinstance(value, (int, float)):
                self._numbers.setdefault(name, []).append(value)
        if odd:
            texts, count = without_non_finite(values)
            if count:
                self._loss.changed[
                    "score value that is not a finite number: written as null, spelled out in its metadata"
                ] += count
                metadata["unscored"] = True
                metadata["values"] = {name: text for name, text in texts.items() if text != values[name]}
                values = {name: _nulled(item) for name, item in values.items()}
        score = {"scorer_key": key, "scorer_name": name, "values": values}
        if metadata:
            score["metadata"] = metadata
        return score

    def disagreements(self, results: Any, functions: dict[str, str]) -> Iterator[str]:
        """Metrics that are not the mean of their documents though they are said to be: then the files are of different runs.

        Args:
            results: metric → value.
            functions: metric → name of the function that computed it of all documents.
        """
        for name, numbers in self._numbers.items():
            told = _number(results.get(name)) if isinstance(results, dict) else None
            if told is None or functions.get(name) != "mean":
                continue
            mean = math.fsum(numbers) / len(numbers)
            if math.isfinite(mean) and not math.isclose(told, mean, rel_tol=1e-6, abs_tol=1e-9):
                yield (
                    f"metric {name!r} is {told:.6g}, the mean of its {len(numbers)} documents is {mean:.6g}:"
                    " results and details are not of the same run"
                )


def _measured(metrics: Iterable[Json]) -> Iterator[tuple[str, Any]]:
    for metric in metrics:
        for name, value in metric.items():
            if value is not None:
                yield name, value


def _nulled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_nulled(item) for item in value]
    if isinstance(value, dict):
        return {name: _nulled(item) for name, item in value.items()}
    return value


def metrics_of(results: Any, functions: dict[str, str], loss: LossReport) -> tuple[list[Json], list[Json]]:
    """`MetricData` of a task, and errors for what is no finite number.

    Args:
        results: metric → value, standard errors as `<metric>_stderr`.
        functions: metric → name of the function that computed it of all documents, where the configuration tells.
        loss: where counts go.
    """
    metrics: list[Json] = []
    errors: list[Json] = []
    if not isinstance(results, dict):
        return metrics, [_error(f"the results are {type(results).__name__}, expected metrics by name")]
    for name, value in results.items():
        if name.endswith(_STDERR) and name.removesuffix(_STDERR) in results:
            continue
        number = _number(value)
        if number is None:
            shown = non_finite_text(value) if isinstance(value, float) else repr(value)[:100]
            errors.append(_error(f"metric {name!r} is {shown}, not a finite number"))
            loss.changed["metric that is not a finite number: reported as an error"] += 1
            continue
        function = functions.get(name, name)
        data: Json = {
            "values": {name: number},
            "metric_key": key_of(function),
            "metric_type": function,
            "scorer_name": name,
            "scorer_key": key_of(name),
        }
        if (stderr := results.get(name + _STDERR)) is not None:
            if (number := _number(stderr)) is not None:
                data["values"][name + _STDERR] = number
            else:
                shown = non_finite_text(stderr) if isinstance(stderr, float) else repr(stderr)[:100]
                data["reason"] = f"its standard error is {shown}, not a finite number"
                loss.changed["standard error that is not a finite number: told in the metric's reason"] += 1
        metrics.append(data)
        loss.kept["metric"] += 1
    return metrics, errors


def _number(value: Any) -> float | int | None:
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _error(message: str) -> Json:
    return {"error_type": "MetricWithoutValue", "message": message, "stage": "metric"}
