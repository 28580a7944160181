"""Conversion of AI GO scores and metrics to Inspect's form for logs. The module `scores` converts in the
other direction.

Evidence from an imported Inspect log keeps the original form of its scores: lists, NaN, infinity, and the
results of each reducer. Other evidence is converted as far as Inspect's types allow.
"""

from __future__ import annotations

import math
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text
from aigo_inspect.mapping.scores import metrics_of

Native = dict[str, Any]
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TEXTS = ("answer", "explanation", "reason")
_OURS = frozenset({"unscored", "values", "reducer"})
"""Metadata keys that an import adds to a score."""


def is_from_inspect(frame: Native) -> bool:
    """Return whether the result was imported from an Inspect log, whose header it keeps."""
    return isinstance(_kept(frame).get("eval"), dict)


def _kept(frame: Native) -> Native:
    header = frame["specification"]["config"].get("inspect")
    return header if isinstance(header, dict) else {}


# Scores


def score_of(score: Native, *, from_inspect: bool) -> Native:
    """Convert `ScoresData` to an Inspect `Score`.

    Args:
        score: `ScoresData` as a dictionary.
        from_inspect: the score was imported from Inspect (see `is_from_inspect`).
    """
    values, metadata = score.get("values") or {}, score.get("metadata") or {}
    if from_inspect:
        return {
            "value": _former_value(score.get("scorer_name"), values, metadata),
            **_former_fields(metadata),
        }
    only = next(iter(values.values()), None) if len(values) == 1 else None
    native: Native = {"value": only if _is_value(only) else _flat(values), "metadata": metadata}
    for name in ("answer", "explanation"):
        if isinstance(metadata.get(name), str):
            native[name] = metadata[name]
    return native


def _former_value(scorer: Any, values: Native, metadata: Native) -> Any:
    odd = metadata.get("values") if metadata.get("unscored") is True else None
    if isinstance(odd, dict):
        values = {name: _former_number(value, odd.get(name)) for name, value in values.items()}
    if values.keys() != {scorer}:
        return _flat(values)
    value = values[scorer]
    # Inspect represents a missing score as NaN.
    return value if _is_value(value) else math.nan if value is None else json_text(value)


def _former_number(value: Any, spelled: Any) -> Any:
    """Return the original number of a value that was written as null, from its spelling."""
    if isinstance(value, list) and isinstance(spelled, list) and len(value) == len(spelled):
        return [_former_number(*pair) for pair in zip(value, spelled, strict=True)]
    return _NOT_FINITE.get(spelled, value) if value is None and isinstance(spelled, str) else value


def _former_fields(metadata: Native) -> Native:
    """Return the fields that `scores` moved to the metadata under their original names."""
    kinds = {**dict.fromkeys(_TEXTS, str), "metadata": dict, "history": list}
    native: Native = {
        name: metadata[name] for name, kind in kinds.items() if isinstance(metadata.get(name), kind)
    }
    unnamed = {name: value for name, value in metadata.items() if name not in native and name not in _OURS}
    if unnamed:
        native["metadata"] = {**unnamed, **native.get("metadata", {})}
    return native


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))


def _is_value(value: Any) -> bool:
    return _is_scalar(value) or (isinstance(value, list) and all(map(_is_scalar, value)))


def _flat(values: Native) -> Native:
    return {
        str(name): value if value is None or _is_scalar(value) else json_text(value)
        for name, value in values.items()
    }


def has_odd_numbers(native: Any) -> bool:
    """Return whether a score or a collection of scores contains a number that is not finite."""
    if isinstance(native, dict):
        return any(map(has_odd_numbers, native.values()))
    if isinstance(native, list):
        return any(map(has_odd_numbers, native))
    return isinstance(native, float) and not math.isfinite(native)


# Scores over epochs


class Reductions:
    """Scores of samples over all epochs, grouped by scorer and reducer as in Inspect."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], list[tuple[str | int, Native]]] = {}

    def add(self, sample_id: str | int, scores: list[Native]) -> None:
        """Add the aggregated scores of one sample."""
        for score in scores:
            reducer = (score.get("metadata") or {}).get("reducer")
            key = str(score.get("scorer_name")), reducer if isinstance(reducer, str) else None
            self._found.setdefault(key, []).append((sample_id, score))

    def native(self) -> list[Native]:
        """Return the scores as `EvalSampleReductions`."""
        scorers = [scorer for scorer, _ in self._found]
        entries = []
        for (scorer, reducer), scores in self._found.items():
            suffix = f"_{reducer}" if scorers.count(scorer) > 1 else ""
            samples = [
                {"sample_id": sample_id, **score_of(_without_suffix(score, suffix), from_inspect=True)}
                for sample_id, score in scores
            ]
            entries.append({"scorer": scorer, "reducer": reducer, "samples": samples})
        return entries


def _without_suffix(score: Native, suffix: str) -> Native:
    """Return a score without the reducer's name in its values (see `scores.aggregated_scores`)."""
    values = {name.removesuffix(suffix): value for name, value in (score.get("values") or {}).items()}
    return {**score, "values": values}


# Metrics


def results_of(frame: Native) -> list[Native]:
    """Return the metrics as `EvalScore` entries: the original ones if they still match the evidence,
    otherwise one for each scorer.
    """
    metrics = (frame.get("evidence") or {}).get("metrics") or []
    return _former_results(frame, metrics) or _by_scorer(metrics)


def _former_results(frame: Native, metrics: list[Native]) -> list[Native]:
    results = _kept(frame).get("results")
    scores = results.get("scores") if isinstance(results, dict) else None
    if not isinstance(scores, list) or not all(map(_is_score, scores)):
        return []
    values, _ = metrics_of({"results": results}, LossReport())
    plain = [{key: value for key, value in metric.items() if value is not None} for metric in metrics]
    if values != plain:
        return []
    return [
        {**score, "metrics": {name: _former_metric(metric) for name, metric in score["metrics"].items()}}
        for score in scores
    ]


def _is_score(score: Any) -> bool:
    metrics = score.get("metrics") if isinstance(score, dict) else None
    return isinstance(metrics, dict) and all(
        isinstance(metric, dict) and (_is_number(metric.get("value")) or metric.get("value") in _NOT_FINITE)
        for metric in metrics.values()
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _former_metric(metric: Native) -> Native:
    value = metric["value"]
    return {**metric, "value": _NOT_FINITE[value] if isinstance(value, str) else value}


def _by_scorer(metrics: list[Native]) -> list[Native]:
    scores: dict[str, Native] = {}
    for metric in metrics:
        scorer = metric.get("scorer_name") or metric.get("scorer_key") or "task"
        score = scores.setdefault(scorer, {"name": scorer, "scorer": scorer, "params": {}, "metrics": {}})
        for name, value in metric["values"].items():
            key = _free_name(metric, name, score["metrics"])
            score["metrics"][key] = {"name": name, "value": value, "params": {}}
    return list(scores.values())


def _free_name(metric: Native, name: str, taken: Native) -> str:
    """Return the name of a value. If another metric uses it already, add the metric key."""
    full = metric["metric_key"] if len(metric["values"]) == 1 else f"{metric['metric_key']}_{name}"
    free, number = (name if name not in taken else full), 2
    while free in taken:
        free, number = f"{full}-{number}", number + 1
    return str(free)
