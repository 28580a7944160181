"""Metrics of a result for its page: exact values with confidence intervals and sample counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aigo_bridge.dtypes import MetricData, TaskResultLog
from aigo_bridge.metrics.names import metric_identities, metric_labels, standard_errors
from aigo_bridge.results.reading import FramePart, SamplePart
from aigo_bridge.results.values import Json, mappings, member, number_text
from aigo_bridge.spec.metrics import BinaryClassificationMetric, MulticlassClassificationMetric
from aigo_stats.comparison.columns import ColumnsReader, ResultColumns, group_columns, read_columns
from aigo_stats.comparison.definitions import metric_definitions
from aigo_stats.comparison.estimates import MetricEstimate, declared_scale, estimates, part_estimate
from aigo_stats.comparison.numbers import Quantity, identity_of, quantities
from aigo_stats.statistics.intervals import NoInterval
from aigo_stats.statistics.ratios import Ratio

MOST_VALUES = 12
"""Maximum number of different values in a column used for a breakdown."""
FEWEST_SAMPLES = 3
"""Minimum mean number of samples for each value."""
MOST_COLUMNS = 6


class MetricReader:
    """Collector of a result's scores while its samples are read."""

    def __init__(self) -> None:
        self._columns: ColumnsReader | None = ColumnsReader()
        self._frame: Mapping[str, Any] = {}

    def add(self, part: SamplePart | FramePart) -> None:
        """Add a sample, or the log without its samples."""
        if isinstance(part, FramePart):
            self._frame = part.value
            return
        if self._columns is None:
            return
        try:
            self._columns.add(part)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # The sample is displayed but is not valid evidence, so no intervals can be computed.
            self._columns = None

    def columns(self, path: Path | None, log: TaskResultLog) -> ResultColumns | None:
        """Return the scores; `None` if they cannot be interpreted."""
        if self._columns is None or path is None:
            return None
        columns = self._columns.finished(path, log, self._frame)
        # Metrics over groups name their columns at the end of a log.
        return read_columns(path) if group_columns(columns.specification) else columns


def metric_rows(
    log: TaskResultLog,
    entry: Json | Mapping[str, Any],
    columns: ResultColumns | None,
    counts: Mapping[str, Json],
) -> Iterator[Json]:
    """Yield the metrics of a result.

    Args:
        log: log without its samples.
        entry: entry in the evaluation's summary.
        columns: scores; `None` if unknown.
        counts: sample outcomes for each scorer, used if the samples of a metric are unknown.
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
    """Return the metrics of each run of a repeatability result."""
    runs = (log.evidence.runs if log.evidence is not None else None) or ()
    return [_rows(log, run.metrics or ()) for run in runs]


def label_scores(columns: ResultColumns | None) -> list[Json]:
    """Return the scores that contain the true and the predicted label, from the definitions of label
    metrics.
    """
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
    """Return a row for each metric, with named values. A standard error is added to the metric it belongs
    to.
    """
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


def _estimates(columns: ResultColumns) -> dict[tuple[str | None, str, str], MetricEstimate]:
    return {(estimate.scorer, estimate.metric, estimate.name): estimate for estimate in estimates(columns)}


def _estimate(metric: MetricEstimate | None) -> Json:
    if metric is None:
        return {"no_interval": "the samples do not have the form of evidence"}
    estimate, bounds = metric.estimate, metric.bounds
    counts = metric.denominator
    row: Json = (
        {"no_interval": estimate.reason}
        if isinstance(estimate, NoInterval)
        else {
            "interval": [number_text(estimate.low), number_text(estimate.high)],
            "error": number_text(estimate.standard_error),
            "method": estimate.method,
        }
    )
    if metric.scale is not None:
        row["scale"] = list(metric.scale)
    if counts is not None:
        row["samples"] = asdict(counts)
        if bounds is not None and counts.is_partial:
            row["bounds"] = [number_text(bounds[0]), number_text(bounds[1])]
    return row


@dataclass
class ColumnValues:
    """Values of columns with few different values, collected while samples are read."""

    samples: int = 0
    _values: dict[str, list[str]] = field(default_factory=dict)
    _different: dict[str, set[str]] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)

    def add(self, row: Mapping[str, str]) -> None:
        """Add the columns of a sample."""
        for name, text in row.items():
            if name in self._dropped:
                continue
            different = self._different.setdefault(name, set())
            different.add(text)
            if len(different) > MOST_VALUES:
                self._dropped.add(name)
                del self._different[name]
                self._values.pop(name, None)
                continue
            values = self._values.setdefault(name, [])
            values += [""] * (self.samples - len(values))
            values.append(text)
        self.samples += 1

    def columns(self) -> dict[str, list[str]]:
        """Return the columns that group samples: at least two values, and several samples for each."""
        found = {}
        for name, values in self._values.items():
            texts = values + [""] * (self.samples - len(values))
            counts = Counter(texts)
            if 2 <= len(counts) <= MOST_VALUES and self.samples >= FEWEST_SAMPLES * len(counts):
                found[name] = texts
        return dict(list(found.items())[:MOST_COLUMNS])


def breakdown_rows(columns: ResultColumns | None, values: ColumnValues) -> list[Json]:
    """Return a breakdown for each column that groups samples.

    Args:
        columns: scores of the result; `None` if unknown.
        values: columns of the dataset.
    """
    texts = values.columns()
    if columns is None or not texts or values.samples != len(columns):
        return []
    numbers = quantities(columns)
    if not numbers or not isinstance(numbers[0].content, Ratio):
        return []
    main = numbers[0]
    label = metric_labels([identity_of(number) for number in numbers])[0]
    groups = columns.groups(None)
    return [
        {"column": name, "label": label, "parts": _parts(main, np.array(column), groups)}
        for name, column in texts.items()
    ]


def _parts(main: Quantity, column: Any, groups: Any) -> list[Json]:
    """Return the metric for the samples of each value, most frequent value first."""
    assert isinstance(main.content, Ratio)
    of_number = column[main.positions]
    parts: list[Json] = []
    for name, _ in Counter(column.tolist()).most_common():
        rows = of_number == name
        count = int(rows.sum())
        numerator = float(main.content.numerator[rows].sum())
        denominator = float(main.content.denominator[rows].sum())
        if not denominator or main.content.transformed:
            continue
        estimate = part_estimate(main, rows, groups)
        value: Json = {"name": name, "label": name, "text": number_text(numerator / denominator)}
        if (scale := declared_scale(main)) is not None:
            value["scale"] = list(scale)
        if not isinstance(estimate, NoInterval):
            value["interval"] = [number_text(estimate.low), number_text(estimate.high)]
        parts.append({"name": name, "samples": count, "value": value})
    return parts
