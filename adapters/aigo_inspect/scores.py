"""Scores in Inspect's logs → AI GO scores, sample by sample, and metrics of the whole log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from aigo_bridge.importing.encoding import json_text, non_finite_text
from aigo_bridge.importing.key_names import key_of
from aigo_bridge.importing.loss import LossReport

_DETAILS = ("answer", "explanation", "reason", "metadata", "history")


def scores_of(sample: dict[str, Any], loss: LossReport) -> list[dict[str, Any]] | None:
    """`ScoresData` of one sample in one epoch; `None` when it was not scored at all.

    A value that is an object gives its own names, any other value goes under the scorer's name. A value that is NaN
    means "not scored" in Inspect: it becomes null and `metadata["unscored"]` is true.
    """
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        return None
    found = []
    for name, score in scores.items():
        found.append(_scores_data(str(name), score, loss))
        loss.kept["score"] += 1
    return found


def _scores_data(name: str, score: Any, loss: LossReport) -> dict[str, Any]:
    score = score if isinstance(score, dict) else {"value": score}
    value = score.get("value")
    metadata: dict[str, Any] = {key: score[key] for key in _DETAILS if score.get(key) not in (None, [], {})}
    values, odd = _finite(value if isinstance(value, dict) else {name: value})
    if odd:
        metadata["unscored"] = True
        metadata["values"] = odd
        loss.changed[
            "score value that is not a finite number: written as null, spelled out in its metadata"
        ] += len(odd)
    metadata, _ = _texts(metadata)
    data: dict[str, Any] = {"scorer_key": key_of(name), "scorer_name": name, "values": values}
    if metadata:
        data["metadata"] = metadata
    return data


def _finite(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """`values` with null for what is not finite, and those by name as texts."""
    clean: dict[str, Any] = {}
    odd: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list):
            texts, found = _texts(value)
            clean[str(name)] = [None if isinstance(v, float) and not math.isfinite(v) else v for v in value]
            if found:
                odd[str(name)] = texts
        elif isinstance(value, float) and not math.isfinite(value):
            clean[str(name)] = None
            odd[str(name)] = non_finite_text(value)
        else:
            clean[str(name)] = value
    return clean, odd


def _texts(value: Any) -> tuple[Any, bool]:
    """`value` with numbers that are not finite as texts, and whether there were any."""
    if isinstance(value, float) and not math.isfinite(value):
        return non_finite_text(value), True
    if isinstance(value, dict):
        parts = {key: _texts(item) for key, item in value.items()}
        return {key: part[0] for key, part in parts.items()}, any(part[1] for part in parts.values())
    if isinstance(value, list):
        items = [_texts(item) for item in value]
        return [item[0] for item in items], any(item[1] for item in items)
    return value, False


def aggregated_scores(
    reductions: Iterable[dict[str, Any]], loss: LossReport
) -> dict[str, list[dict[str, Any]]]:
    """Scores aggregated over epochs, by sample id as text, from the log's reductions.

    With several reducers for a scorer, the names of the values carry the reducer: `accuracy_max`. What has not the shape
    of a reduction is counted as dropped.
    """
    entries = [entry for entry in reductions if _is_reduction(entry, loss)]
    reducers: dict[str, set[str]] = {}
    for entry in entries:
        reducers.setdefault(str(entry.get("scorer")), set()).add(_reducer(entry))
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        name, reducer = str(entry.get("scorer")), _reducer(entry)
        for score in entry.get("samples") or []:
            if not isinstance(score, dict) or score.get("sample_id") is None:
                loss.dropped["reduced score of an unexpected shape"] += 1
                continue
            data = _scores_data(name, {k: v for k, v in score.items() if k != "sample_id"}, loss)
            if reducer:
                data.setdefault("metadata", {})["reducer"] = entry["reducer"]
                if len(reducers[name]) > 1:
                    data["values"] = {f"{key}_{reducer}": value for key, value in data["values"].items()}
            found.setdefault(str(score["sample_id"]), []).append(data)
            loss.kept["reduced score"] += 1
    return found


def _is_reduction(entry: Any, loss: LossReport) -> bool:
    if isinstance(entry, dict) and isinstance(entry.get("samples"), (list, type(None))):
        return True
    loss.dropped["scores reduced over epochs, of an unexpected shape"] += 1
    return False


def _reducer(entry: dict[str, Any]) -> str:
    """The reducer's name; JSON where it is none, which no version of Inspect writes."""
    name = entry.get("reducer")
    return name if isinstance(name, str) else json_text(name) if name else ""


def metrics_of(
    header: dict[str, Any], loss: LossReport
) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """`MetricData` of a log's results, and errors for the metrics that are no finite number.

    `None` instead of metrics when the log has no results: the run ended before they were computed.
    """
    results = header.get("results")
    if not isinstance(results, dict):
        return None, []
    metrics: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    taken: set[tuple[str, str]] = set()
    for score in results.get("scores") or []:
        if not isinstance(score, dict):
            continue
        scorer = str(score.get("scorer") or score.get("name") or "scorer")
        for name, metric in (score.get("metrics") or {}).items():
            value = metric.get("value") if isinstance(metric, dict) else metric
            key = _unique(_metric_key(score, scorer, str(name)), key_of(scorer), taken)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                shown = non_finite_text(value) if isinstance(value, float) else value
                errors.append(
                    {
                        "error_type": "MetricWithoutValue",
                        "message": f"metric {key!r} of scorer {scorer!r} is {shown!r}, not a finite number",
                        "stage": "metric",
                    }
                )
                loss.changed["metric that is not a finite number: reported as an error"] += 1
                continue
            data: dict[str, Any] = {
                "values": {str(name): value},
                "metric_key": key,
                "metric_type": str(metric.get("name") or name) if isinstance(metric, dict) else str(name),
                "scorer_name": scorer,
                "scorer_key": key_of(scorer),
            }
            if reason := _remarks(score, metric):
                data["reason"] = reason
            metrics.append(data)
            loss.kept["metric"] += 1
    return metrics, errors


def _metric_key(score: dict[str, Any], scorer: str, name: str) -> str:
    parts = [str(score.get("name"))] if score.get("name") not in (None, scorer) else []
    parts += [str(score["reducer"])] if score.get("reducer") else []
    return key_of("_".join([*parts, name]))


def _unique(key: str, scorer_key: str, taken: set[tuple[str, str]]) -> str:
    found, number = key, 2
    while (scorer_key, found) in taken:
        found, number = f"{key}-{number}", number + 1
    taken.add((scorer_key, found))
    return found


def _remarks(score: dict[str, Any], metric: Any) -> str | None:
    remarks = []
    if score.get("unscored_samples"):
        remarks.append(f"{score['unscored_samples']} samples were not scored")
    if isinstance(metric, dict) and metric.get("group"):
        remarks.append(f"group {metric['group']}")
    return "; ".join(remarks) or None
