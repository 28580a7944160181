"""Metrics of other tools, recomputed from sample scores.

A metric is identified by its name and definition: Inspect's by name and package, lighteval's and
lm-evaluation-harness's by the function in the configuration. Its value never decides which formula is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_bridge.dtypes import MetricData
from aigo_bridge.metrics.grades import graded_number
from aigo_bridge.metrics.names import MEANS, STDERR
from aigo_bridge.metrics.reducers import reducer
from aigo_bridge.text.summaries import short
from aigo_stats.comparison.columns import METADATA, ResultColumns
from aigo_stats.comparison.definitions import ForeignMetric, metric_definitions
from aigo_stats.comparison.scales import score_scale
from aigo_stats.comparison.sources import PointValue, Source, as_floats, not_known, present, std_dev_of
from aigo_stats.statistics.intervals import NoInterval, Numbers
from aigo_stats.statistics.ratios import RIGHT_OR_WRONG, Ratio, Scale, sums_of
from aigo_stats.statistics.smooth import Smooth

_RANDOM = NoInterval("it is random and cannot be recomputed")
_OF_ERROR = "intervals of standard errors are not computed"


def foreign_source(
    columns: ResultColumns, scorer: str, metric: ForeignMetric | None, data: MetricData, name: str
) -> Source:
    """Return the samples, the formula and the input scores of a metric, or the reason why they are unknown.

    Args:
        columns: the result.
        scorer: key of the scorer.
        metric: definition in the result; `None` if not defined.
        data: stored metric.
        name: name of the value.
    """
    if columns.graded:
        return _of_inspect(columns, scorer, metric or ForeignMetric(None, data.metric_type or name), data)
    base = name.removesuffix(STDERR)
    kind = data.metric_type or (metric.type if metric is not None else data.metric_key)
    field = _field(columns, scorer, metric, data, base if base in data.values else name)
    if _base_name(kind) not in MEANS:
        return _RANDOM if base in data.values and base != name else not_known(kind)
    if field is None:
        return NoInterval("the score that it is computed from is not recorded")
    positions, values = present(columns, columns.scores.get((scorer, field)))
    if not values:
        return NoInterval(f"no sample has a value for {field!r}")
    numbers = as_floats(values)
    if isinstance(numbers, NoInterval):
        return numbers
    if base in data.values and base != name:
        return positions, PointValue(_OF_ERROR, standard_error(numbers)), (field,)
    return positions, Ratio.mean(numbers, score_scale(columns, scorer, field)), (field,)


def _base_name(kind: str) -> str:
    return kind.rpartition("/")[2]


def _field(
    columns: ResultColumns, scorer: str, metric: ForeignMetric | None, data: MetricData, name: str
) -> str | None:
    """Return the score used by a metric: the recorded one, one with the metric's name, or the only one."""
    recorded = metric.score if metric is not None else None
    for candidate in (recorded, name, data.scorer_name):
        if candidate is not None and (scorer, candidate) in columns.scores:
            return candidate
    fields = [field for owner, field in columns.scores if owner == scorer]
    return fields[0] if recorded is None and len(fields) == 1 else None


# Inspect


def _of_inspect(columns: ResultColumns, scorer: str, metric: ForeignMetric, data: MetricData) -> Source:
    field = metric.score or _field(columns, scorer, metric, data, next(iter(data.values), ""))
    kind = _base_name(metric.group or metric.type)
    if metric.package not in (None, "inspect_ai"):
        return NoInterval(f"{kind!r} is a metric of the evaluated task, whose formula is unknown")
    if field is None:
        return NoInterval("the score that it is computed from is not recorded")
    unreduced = metric.reducer is None and columns.num_trials > 1 and _is_unreduced(columns, scorer)
    reduced = (
        _of_all_trials(columns, scorer, field)
        if unreduced
        else _reduced(columns, scorer, field, metric.reducer)
    )
    if isinstance(reduced, NoInterval):
        return reduced
    positions, numbers, unclear = reduced
    is_verdict = kind == "accuracy" or (metric.reducer or "").startswith("at_least_")
    scale = RIGHT_OR_WRONG if is_verdict else score_scale(columns, scorer, field)
    name = next(iter(data.values), "")
    if kind == "grouped":
        content = _grouped(columns, metric, positions, numbers, name, scale)
    else:
        content = _formula(columns, kind, metric.parameters, positions, numbers, scale)
    if isinstance(content, tuple):
        positions, content = content
    if unclear is not None:
        content = _without_interval(content, f"Inspect counts the score {short(unclear)} as 0")
    if unreduced:
        content = _without_interval(content, "it counts every epoch of a sample as a separate sample")
    return np.unique(positions), content, (field,)


def _without_interval(content: Any, reason: str) -> Any:
    """Return a metric that can be recomputed, but without a meaningful interval."""
    is_known = isinstance(content, Ratio | Smooth) and content.value is not None
    return PointValue(reason, content.value) if is_known else content


def _is_unreduced(columns: ResultColumns, scorer: str) -> bool:
    """Return whether metrics without a reducer cover all epochs.

    This is the case if the run was without reducers, or if other metrics of the scorer name their reducer.
    """
    header = columns.frame.specification.config.get("inspect") or {}
    config = (header.get("eval") or {}).get("config") or {}
    return config.get("epochs_reducer") == [] or any(
        isinstance(metric, ForeignMetric) and metric.reducer is not None
        for (owner, _), metric in metric_definitions(columns).items()
        if owner == scorer
    )


def _of_all_trials(
    columns: ResultColumns, scorer: str, field: str
) -> tuple[NDArray[np.int64], Numbers, Any] | NoInterval:
    column, counted = columns.scores.get((scorer, field)), columns.counted
    trials = {} if column is None else column.trials
    pairs = [(place, value) for place, values in sorted(trials.items()) if counted[place] for value in values]
    if not pairs:
        return NoInterval(f"no sample has a value for {field!r}")
    numbers = [graded_number(value) for _, value in pairs]
    unclear = next((value for (_, value), number in zip(pairs, numbers, strict=True) if number is None), None)
    positions = np.array([place for place, _ in pairs], dtype=np.int64)
    return positions, np.array([number or 0.0 for number in numbers], dtype=float), unclear


def _reduced(
    columns: ResultColumns, scorer: str, field: str, name: str | None
) -> tuple[NDArray[np.int64], Numbers, Any] | NoInterval:
    """Return the samples with a score, the reduced score of each, and a text that counts as 0."""
    column = columns.scores.get((scorer, field))
    trials = {} if column is None else column.trials
    if not trials:
        positions, values = present(columns, column)
        numbers = [graded_number(value) for value in values]
    else:
        reduce = reducer(name or "mean")
        if reduce is None:
            return _stored(columns, scorer, field, str(name))
        counted = columns.counted
        by_sample = {place: reduce(values) for place, values in sorted(trials.items()) if counted[place]}
        kept = {place: number for place, number in by_sample.items() if number is not None}
        positions, numbers = np.array(list(kept), dtype=np.int64), list(kept.values())
        values = [value for place in kept for value in trials[place]]
    if not numbers:
        return NoInterval(f"no sample has a value for {field!r}")
    unclear = next((value for value in values if graded_number(value) is None), None)
    return positions, np.array([number or 0.0 for number in numbers], dtype=float), unclear


def _stored(
    columns: ResultColumns, scorer: str, field: str, name: str
) -> tuple[NDArray[np.int64], Numbers, Any] | NoInterval:
    """Return the reduced scores that are stored in the log."""
    for key in ((scorer, f"{field}_{name}"), (scorer, field)):
        if key in columns.scores and columns.scores[key].values:
            positions, values = present(columns, columns.scores[key])
            numbers = [graded_number(value) for value in values]
            unclear = next((v for v, number in zip(values, numbers, strict=True) if number is None), None)
            return positions, np.array([number or 0.0 for number in numbers], dtype=float), unclear
    return NoInterval(f"the reducer {name!r} of epochs is unknown")


def _formula(
    columns: ResultColumns,
    kind: str,
    parameters: Any,
    positions: NDArray[np.int64],
    numbers: Numbers,
    scale: Scale,
) -> Any:
    """Return an Inspect metric as a function of reduced scores."""
    if "to_float" in parameters:
        return NoInterval("it counts scores by a function of the evaluated task")
    match kind:
        case "accuracy" | "mean":
            return Ratio.mean(numbers, scale)
        case "std":
            return (
                std_dev_of(numbers)
                if len(numbers) > 1
                else PointValue("the variance of one sample is undefined", 0.0)
            )
        case "var":
            value = float(numbers.var(ddof=1)) if len(numbers) > 1 else 0.0
            return PointValue("intervals of variances are not computed", value)
        case "stderr":
            return _standard_error(columns, parameters.get("cluster"), positions, numbers)
        case "bootstrap_stderr":
            return _RANDOM
        case _:
            return not_known(kind)


def _standard_error(
    columns: ResultColumns, cluster: Any, positions: NDArray[np.int64], numbers: Numbers
) -> PointValue | NoInterval:
    if cluster is None:
        return PointValue(_OF_ERROR, standard_error(numbers))
    groups = _groups(columns, cluster, positions)
    if isinstance(groups, NoInterval):
        return groups
    _, indices = np.unique(np.array(groups, dtype=object).astype(str), return_inverse=True)
    return PointValue(_OF_ERROR, standard_error(numbers, indices.astype(np.int64)))


def standard_error(numbers: Numbers, groups: NDArray[np.int64] | None = None) -> float:
    """Return the standard error of a mean, clustered if groups are given; 0 for a single sample or group."""
    if groups is None:
        return float(numbers.std(ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else 0.0
    sums = sums_of(groups, numbers - numbers.mean())
    if len(sums) < 2:
        return 0.0
    return float(np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(numbers))


def _groups(columns: ResultColumns, column: Any, positions: NDArray[np.int64]) -> list[str] | NoInterval:
    values = columns.values.get(f"{METADATA}{column}")
    if values is None or any(values[place] is None for place in positions.tolist()):
        return NoInterval(f"metadata {column!r} of the samples is missing")
    return [str(values[place]) for place in positions.tolist()]


def _grouped(
    columns: ResultColumns,
    metric: ForeignMetric,
    positions: NDArray[np.int64],
    numbers: Numbers,
    name: str,
    scale: Scale,
) -> Any:
    """Return one value of `grouped`: of a group or of all samples."""
    parameters = metric.parameters
    inner = parameters.get("metric")
    inner = inner if isinstance(inner, dict) else {}
    kind, options = _base_name(str(inner.get("name"))), inner.get("params") or {}
    groups = _groups(columns, parameters.get("group_key"), positions)
    if isinstance(groups, NoInterval):
        return groups
    scale = RIGHT_OR_WRONG if kind == "accuracy" else scale

    def of(rows: NDArray[np.bool_]) -> Any:
        return _formula(columns, kind, options, positions[rows], numbers[rows], scale)

    template = str(parameters.get("name_template", "{group_name}"))
    members = {
        template.replace("{group_name}", group): np.array([each == group for each in groups], dtype=bool)
        for group in dict.fromkeys(groups)
    }
    if name != parameters.get("all_label", "all"):
        rows = members.get(name)
        return (
            NoInterval(f"no sample is in the group {name!r}") if rows is None else (positions[rows], of(rows))
        )
    if parameters.get("all", "samples") == "samples":
        return of(np.ones(len(positions), dtype=bool))
    return _mean_of_groups([of(rows) for rows in members.values()])


def _mean_of_groups(contents: Sequence[Any]) -> PointValue | NoInterval:
    values = [getattr(content, "value", None) for content in contents]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return next(content for content in contents if isinstance(content, NoInterval))
    return PointValue("intervals of means over groups are not computed", float(np.mean(known)))
