"""Conversion of the scores in Inspect's logs to AI GO scores for each sample, and to metrics of the whole
log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import json_text, key_of, non_finite_text, without_non_finite
from aigo_inspect.logs.shapes import number

_DETAILS = ("answer", "explanation", "reason", "metadata", "history")
_SCORE = frozenset({"value", *_DETAILS})
_REDUCTION = frozenset({"scorer", "reducer", "samples"})
NO_VALUE = "the log does not contain a value for this score"
REDUCED = "reduced score"
"""Name of a score over all epochs of a sample in loss reports."""


def scores_of(sample: dict[str, Any], loss: LossReport) -> list[dict[str, Any]] | None:
    """Return the `ScoresData` of one sample in one epoch; `None` if it was not scored.

    The values of an object keep their names; any other value gets the name of the scorer. NaN means "not
    scored" in Inspect. NaN and missing values become null, with `metadata["unscored"]` set to true. Fields
    that Inspect does not define are in `metadata["inspect"]`.
    """
    scores = sample.get("scores")
    if not isinstance(scores, dict):
        return None
    entries = []
    for name, score in scores.items():
        entries.append(_scores_data(str(name), score, loss))
        loss.kept["score"] += 1
    return entries


def _scores_data(name: str, score: Any, loss: LossReport) -> dict[str, Any]:
    score = score if isinstance(score, dict) else {"value": score}
    value = score.get("value")
    metadata: dict[str, Any] = {key: score[key] for key in _DETAILS if score.get(key) not in (None, [], {})}
    if not _SCORE.issuperset(score):
        remainder = {key: item for key, item in score.items() if key not in _SCORE and item is not None}
        metadata |= {"inspect": remainder} if remainder else {}
    values, odd = _finite(value if isinstance(value, dict) else {name: value})
    if value is None:
        metadata["unscored"] = True
        metadata.setdefault("reason", NO_VALUE)
        loss.changed["score without a value: written as null, marked as unscored"] += 1
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
    """Return `values` with null in place of numbers that are not finite, and the replaced values by name as
    texts.
    """
    clean: dict[str, Any] = {}
    odd: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, list):
            texts, has_non_finite = _texts(value)
            clean[str(name)] = [None if isinstance(v, float) and not math.isfinite(v) else v for v in value]
            if has_non_finite:
                odd[str(name)] = texts
        elif isinstance(value, float) and not math.isfinite(value):
            clean[str(name)] = None
            odd[str(name)] = non_finite_text(value)
        else:
            clean[str(name)] = value
    return clean, odd


def _texts(value: Any) -> tuple[Any, bool]:
    """Return `value` with numbers that are not finite replaced by texts, and whether any were replaced.
    Without such numbers, `value` itself is returned.
    """
    if isinstance(value, float):
        return (value, False) if math.isfinite(value) else (non_finite_text(value), True)
    # Searched first, because metadata of solvers may be large and rarely contains such numbers.
    nodes = [value] if isinstance(value, (dict, list)) else []
    for node in nodes:
        for item in node.values() if isinstance(node, dict) else node:
            if isinstance(item, float) and not math.isfinite(item):
                return without_non_finite(value)[0], True
            if isinstance(item, (dict, list)):
                nodes.append(item)
    return value, False


def aggregated_scores(
    reductions: Iterable[dict[str, Any]], loss: LossReport
) -> dict[str, list[dict[str, Any]]]:
    """Return scores aggregated over epochs from the log's reductions, by sample id as text.

    If a scorer has several reducers, the value names include the reducer, for example `accuracy_max`. Invalid
    reductions are counted as dropped. Kept scores are counted when they are written.
    """
    entries = [entry for entry in reductions if _is_reduction(entry, loss)]
    reducers: dict[str, set[str]] = {}
    for entry in entries:
        reducers.setdefault(str(entry.get("scorer")), set()).add(_reducer(entry))
    scores_by_sample: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        name, reducer = str(entry.get("scorer")), _reducer(entry)
        for score in entry.get("samples") or []:
            if not isinstance(score, dict) or score.get("sample_id") is None:
                loss.dropped["reduced score of an unexpected shape, or without a sample"] += 1
                continue
            data = _scores_data(name, {k: v for k, v in score.items() if k != "sample_id"}, loss)
            if reducer:
                data.setdefault("metadata", {})["reducer"] = entry["reducer"]
                if len(reducers[name]) > 1:
                    data["values"] = {f"{key}_{reducer}": value for key, value in data["values"].items()}
            scores_by_sample.setdefault(str(score["sample_id"]), []).append(data)
    return scores_by_sample


def _is_reduction(entry: Any, loss: LossReport) -> bool:
    if isinstance(entry, dict) and isinstance(entry.get("samples"), (list, type(None))):
        if unknown := sum(key not in _REDUCTION and value is not None for key, value in entry.items()):
            loss.dropped["field of reduced scores that Inspect does not have"] += unknown
        return True
    loss.dropped["scores reduced over epochs, of an unexpected shape"] += 1
    return False


def _reducer(entry: dict[str, Any]) -> str:
    """Return the name of the reducer. An invalid name is converted to JSON."""
    name = entry.get("reducer")
    return name if isinstance(name, str) else json_text(name) if name else ""


def scored(header: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the scorer results in a header with their index. Each result has `metrics`, which is an
    object.
    """
    results = header.get("results")
    for place, score in enumerate((results.get("scores") if isinstance(results, dict) else None) or []):
        if isinstance(score, dict) and isinstance(metrics := score.get("metrics") or {}, dict):
            yield place, {**score, "metrics": metrics}


def odd_metrics(header: dict[str, Any]) -> Iterator[str]:
    """Yield messages about invalid metrics, which `metrics_of` leaves out or reports as errors."""
    results = header.get("results")
    sound = dict(scored(header))
    for place, score in enumerate((results.get("scores") if isinstance(results, dict) else None) or []):
        where = f"results.scores[{place}]"
        if not isinstance(score, dict):
            yield f"{where}: expected an object, found {kind_of(score)}"
        elif place not in sound:
            yield f"{where}.metrics: expected an object, found {kind_of(score['metrics'])}"
        else:
            for name, metric in sound[place]["metrics"].items():
                value = metric.get("value") if isinstance(metric, dict) else metric
                # NaN and infinity are valid metrics over very few samples.
                if value is None or isinstance(value, float) or number(value) is not None:
                    continue
                yield f"{where}.metrics[{name!r}]: expected a number, found {kind_of(value)}"


def kind_of(value: object) -> str:
    """Return the name of a value's type in JSON."""
    if isinstance(value, int) and not isinstance(value, bool):
        return "an integer" if number(value) is not None else "an integer that is too large"
    kinds = {type(None): "null", dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), "a number")


def metrics_of(
    header: dict[str, Any], loss: LossReport
) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """Return the `MetricData` of a log's results, and errors for metrics that are not finite.

    The metrics are `None` if the log lacks results, because the run ended before they were computed.
    """
    if not isinstance(header.get("results"), dict):
        return None, []
    metrics: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    for entry in metric_entries(header):
        value = entry.metric.get("value")
        if number(value) is None:
            shown = repr(non_finite_text(value)) if isinstance(value, float) else _shown(value)
            errors.append(
                {
                    "error_type": "MetricWithoutValue",
                    "message": f"metric {entry.key!r} of scorer {entry.scorer!r} is {shown},"
                    " not a finite number",
                    "stage": "metric",
                }
            )
            loss.changed["metric that is not a finite number: reported as an error"] += 1
            continue
        data: dict[str, Any] = {
            "values": {entry.name: value},
            "metric_key": entry.key,
            "metric_type": entry.type,
            "scorer_name": entry.scorer,
            "scorer_key": key_of(entry.scorer),
        }
        if reason := _remarks(entry.score, entry.metric):
            data["reason"] = reason
        metrics.append(data)
        loss.kept["metric"] += 1
    return metrics, errors


@dataclass(frozen=True)
class MetricEntry:
    """One metric value in a log's results."""

    scorer: str
    score: dict[str, Any]
    """Entry of `results.scores` with the metric."""
    name: str
    metric: dict[str, Any]
    key: str
    """Unique key of the value among the metrics of its scorer."""

    @property
    def type(self) -> str:
        """Name of the metric. If a metric has several values, the name of the value."""
        return str(self.metric.get("name") or self.name)


def metric_entries(header: dict[str, Any]) -> Iterator[MetricEntry]:
    """Yield every metric value in a log's results, in order."""
    taken: set[tuple[str, str]] = set()
    for _, score in scored(header):
        scorer = str(score.get("scorer") or score.get("name") or "scorer")
        for name, metric in score["metrics"].items():
            key = _unique(_metric_key(score, scorer, str(name)), key_of(scorer), taken)
            yield MetricEntry(
                scorer, score, str(name), metric if isinstance(metric, dict) else {"value": metric}, key
            )


def metric_definition(entry: MetricEntry, header: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a metric value from the log: the score, the reducer over epochs, the
    parameters and the package.
    """
    group = entry.metric.get("group")
    parts = {
        "score": str(entry.score.get("name") or entry.scorer),
        "reducer": entry.score.get("reducer"),
        "group": group,
        "params": entry.metric.get("params") or entry.metric.get("options"),
        "package": _package(header, entry.scorer, str(group or entry.type)),
    }
    definition = {"key": entry.key, "type": entry.type}
    return definition | {name: part for name, part in parts.items() if part not in (None, {})}


def _package(header: dict[str, Any], scorer: str, metric: str) -> str | None:
    """Return the package of a metric, `""` for the evaluated task itself; `None` if the log does not list the
    metric.
    """
    spec = header["eval"]
    listed = [
        entry.get("metrics")
        for entry in spec.get("scorers") or ()
        if isinstance(entry, dict) and entry.get("name") == scorer
    ]
    names = {str(entry.get("name")) for entry in _listed([*listed, spec.get("metrics")])}
    packages = {
        package
        for package, _, name in (text.rpartition("/") for text in names)
        if name == metric.rpartition("/")[2]
    }
    return "inspect_ai" if "inspect_ai" in packages else min(packages, default=None)


def _listed(metrics: Any) -> Iterator[dict[str, Any]]:
    """Yield the metrics of a listing, which may contain lists by the key of a dictionary score."""
    if isinstance(metrics, dict) and isinstance(metrics.get("name"), str):
        yield metrics
        return
    for part in (
        metrics.values() if isinstance(metrics, dict) else metrics if isinstance(metrics, list) else ()
    ):
        yield from _listed(part)


def _shown(value: object) -> str:
    """Return a value as text for a message."""
    if isinstance(value, int) and not isinstance(value, bool):
        # Python does not format integers with thousands of digits.
        return kind_of(value)
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _metric_key(score: dict[str, Any], scorer: str, name: str) -> str:
    parts = [str(score.get("name"))] if score.get("name") not in (None, scorer) else []
    parts += [str(score["reducer"])] if score.get("reducer") else []
    return key_of("_".join([*parts, name]))


def _unique(key: str, scorer_key: str, taken: set[tuple[str, str]]) -> str:
    candidate, number = key, 2
    while (scorer_key, candidate) in taken:
        candidate, number = f"{key}-{number}", number + 1
    taken.add((scorer_key, candidate))
    return candidate


def _remarks(score: dict[str, Any], metric: Any) -> str | None:
    remarks = []
    if score.get("unscored_samples"):
        remarks.append(f"{score['unscored_samples']} samples were not scored")
    if isinstance(metric, dict) and metric.get("group"):
        remarks.append(f"group {metric['group']}")
    return "; ".join(remarks) or None
