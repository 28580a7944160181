"""The numbers of a result as a page shows them: digit for digit, each with its interval, and with what became
of every sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import MetricData, TaskResultLog
from aigo_bridge.metrics.names import metric_identities, metric_labels, standard_errors
from aigo_bridge.results.reading import FramePart, SamplePart
from aigo_bridge.results.values import Json, mappings, member, number_text
from aigo_bridge.spec.metrics import BinaryClassificationMetric, MulticlassClassificationMetric
from aigo_stats.comparison.columns import Columns, ColumnsReader, group_columns, read_columns
from aigo_stats.comparison.definitions import metric_definitions
from aigo_stats.comparison.estimates import MetricEstimate, estimates
from aigo_stats.statistics.intervals import NoInterval


class MetricReader:
    """The scores of a result, taken in while its samples stream by."""

    def __init__(self) -> None:
        self._columns: ColumnsReader | None = ColumnsReader()
        self._frame: Mapping[str, Any] = {}

    def add(self, part: SamplePart | FramePart) -> None:
        """Take in a sample, or the log without its samples."""
        if isinstance(part, FramePart):
            self._frame = part.value
            return
        if self._columns is None:
            return
        try:
            self._columns.add(part)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # A sample that is shown as it stands, but is not as evidence is: there are no intervals then.
            self._columns = None

    def columns(self, path: Path | None, log: TaskResultLog) -> Columns | None:
        """The scores; `None`: they cannot be made sense of."""
        if self._columns is None or path is None:
            return None
        columns = self._columns.finished(path, log, self._frame)
        # Metrics over groups name their columns at the end of a log.
        return read_columns(path) if group_columns(columns.specification) else columns


def metric_rows(
    log: TaskResultLog, entry: Json | Mapping[str, Any], columns: Columns | None, counts: Mapping[str, Json]
) -> Iterator[Json]:
    """The metrics of a result.

    Args:
        log: without its samples.
        entry: of the evaluation's summary.
        columns: the scores, if they are known.
        counts: scorer → what became of the samples, where it is not known which of them are in a number.
    """
    evidence = log.evidence
    metrics = (evidence.metrics if evidence is not None else None) or []
    entries = {
        (row.get("scorer"), row.get("key"), row.get("name")): row for row in mappings(entry.get("metrics"))
    }
    numbers = {} if columns is None else _estimates(columns)
    for metric, row in zip(metrics, _rows(log, metrics), strict=True):
        if metric.values and not row["values"]:
            continue
        for value in row["values"]:
            key = (metric.scorer_key, metric.metric_key, value["name"])
            value["scored"] = member(entries.get((key[0] or "", *key[1:])), "num_scored")
            value.update(_estimate(numbers.get(key)))
        if (count := counts.get(metric.scorer_key or "")) is not None:
            row["counts"] = count
        yield row
    for error in (evidence.errors if evidence is not None else None) or ():
        if error.stage is not None and error.stage.value == "metric":
            yield {"scorer": "", "key": "", "values": [], "reason": error.message}


def run_rows(log: TaskResultLog) -> list[list[Json]]:
    """The metrics of each run of a repeatability result."""
    runs = (log.evidence.runs if log.evidence is not None else None) or ()
    return [_rows(log, run.metrics or ()) for run in runs]


def label_scores(columns: Columns | None) -> list[Json]:
    """Which scores hold the true and the predicted label, by the definitions of metrics over labels."""
    if columns is None:
        return []
    pairs = {
        (scorer, metric.field_gt, metric.field_pred): None
        for (scorer, _), metric in metric_definitions(columns).items()
        if isinstance(metric, (BinaryClassificationMetric, MulticlassClassificationMetric))
    }
    return [
        {"scorer": scorer, "truth": truth, "prediction": prediction} for scorer, truth, prediction in pairs
    ]


def _rows(log: TaskResultLog, metrics: Sequence[MetricData]) -> list[Json]:
    """Return a row of each metric, its numbers with their names; a standard error is part of its number."""
    definition = log.specification.task.definition.model_dump(mode="json", exclude_unset=True)
    identities = metric_identities(definition, metrics)
    values = [value for metric in metrics for value in metric.values.values()]
    errors = standard_errors(identities)
    reported = {base: number_text(values[error]) for error, base in errors.items()}
    kept = [place for place in range(len(values)) if place not in errors]
    labels = dict(zip(kept, metric_labels([identities[place] for place in kept]), strict=True))
    rows, places = [], iter(range(len(values)))
    for metric in metrics:
        of_metric = [next(places) for _ in metric.values]
        shown = [
            {
                "name": identities[place].name,
                "label": labels[place],
                "text": number_text(values[place]),
                **({"reported_error": reported[place]} if place in reported else {}),
            }
            for place in of_metric
            if place in labels
        ]
        rows.append({**_row(metric), "values": shown})
    return rows


def _row(metric: MetricData) -> Json:
    return {
        "scorer": metric.scorer_key or "",
        "scorer_name": metric.scorer_name,
        "purpose": metric.scorer_purpose.value if metric.scorer_purpose is not None else None,
        "key": metric.metric_key,
        "type": metric.metric_type,
        "reason": metric.reason,
    }


def _estimates(columns: Columns) -> dict[tuple[str | None, str, str], MetricEstimate]:
    return {(estimate.scorer, estimate.metric, estimate.name): estimate for estimate in estimates(columns)}


def _estimate(metric: MetricEstimate | None) -> Json:
    if metric is None:
        return {"no_interval": "the samples are not as evidence has them"}
    estimate, bounds = metric.estimate, metric.bounds
    counts = metric.denominator
    row: Json = (
        {"no_interval": estimate.reason}
        if isinstance(estimate, NoInterval)
        else {
            "interval": [_short(estimate.low), _short(estimate.high)],
            "error": _short(estimate.standard_error),
            "method": estimate.method,
        }
    )
    if counts is not None:
        row["samples"] = asdict(counts)
        if bounds is not None and counts.is_partial:
            row["bounds"] = [_short(bounds[0]), _short(bounds[1])]
    return row


def _short(value: float) -> str:
    """A number that does not stand in the result, with the digits that `aigo-bridge stats` has."""
    return f"{value:.4g}"
