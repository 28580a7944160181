"""Rows of all tables, created from the samples of a result while they are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from aigo_bridge.dtypes import MetricData, TaskResultLog
from aigo_bridge.importing.tables import total_of
from aigo_bridge.metrics.grades import is_graded, is_missing, plain_number, score_number
from aigo_bridge.metrics.names import MetricIdentity, metric_identities, metric_labels
from aigo_bridge.results.counts import (
    Counts,
    CountsTally,
    SampleState,
    errors_of,
    read_counts,
    rules_of,
    sample_facts,
    scorers_of,
    trial_number,
    trial_state,
    trials_of,
)
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart
from aigo_bridge.results.rows import PREDICTIONS, TRUTHS, outputs_of
from aigo_bridge.results.stop_reasons import stop_reason_of
from aigo_bridge.results.superseded_results import superseded_by
from aigo_bridge.results.values import Json, mappings, member, number_text
from aigo_report.tables.schema import SCHEMAS, Kind, TableName
from aigo_report.tables.trials import data_of, last_text, value_text, values_of

Row = dict[str, Any]
"""Row with a value for each column. All columns are present in table order, with values of the column's
type."""

_INTEGERS = {"int32": 1 << 31, "int64": 1 << 63}


def rows_of(table: TableName, reader: LogReader, name: str) -> Iterator[Row]:
    """Yield the rows of one table of a result.

    Args:
        table: name of the table.
        reader: reader of the result.
        name: name of the result in its rows.

    Raises:
        EvidenceError: the result cannot be read or is damaged. Rows before the damage have been yielded.
    """
    columns = {column.name: column.kind for column in SCHEMAS[table].columns}
    for row in _rows(table, reader, name):
        yield {column: _fitting(row.get(column), kind) for column, kind in columns.items()}


def rows_of_all(
    reader: LogReader,
    name: str,
    *,
    first: int = 0,
    counts: dict[int | None, SampleCounts] | None = None,
) -> Iterator[tuple[TableName, Row]]:
    """Yield the rows of all tables of a result with their table names. The result is read once.

    Args:
        reader: reader of the result.
        name: name of the result in its rows.
        first: index of the first sample, for a result that is read in parts.
        counts: sample counts of earlier parts for each run. The counts of these samples are added.

    Raises:
        EvidenceError: as for `rows_of`.
    """
    kinds = {table: {column.name: column.kind for column in SCHEMAS[table].columns} for table in SCHEMAS}

    def fitting(table: TableName, row: Row) -> tuple[TableName, Row]:
        return table, {column: _fitting(row.get(column), kind) for column, kind in kinds[table].items()}

    frame = reader.frame()
    head, num_scorers, by_sample = _head(frame, name), scorers_of(frame), _by_sample(frame)
    counts = {} if counts is None else counts
    for part in reader.parts():
        if isinstance(part, FramePart):
            log = reader.typed_frame(part)
            yield fitting("results", {**head, **_result(log, result_counts_of(counts, num_scorers))})
            for row in _metrics_of(log, name, counts):
                yield fitting("metrics", row)
            continue
        counts.setdefault(part.run, SampleCounts()).add(part.value)
        key = {**head, **_key(part), "sample": first + part.position}
        for table, rows in by_sample.items():
            for row in rows(part.value, num_scorers):
                yield fitting(table, {**key, **row})


def _key(part: SamplePart) -> Row:
    return {
        "run": None if part.run is None else part.run + 1,
        "sample": part.position,
        "sample_id": str(part.value.get("sample_id")),
    }


def _rows(table: TableName, reader: LogReader, name: str) -> Iterator[Row]:
    if table == "metrics":
        yield from _metrics(reader, name)
        return
    log = reader.frame()
    head = _head(log, name)
    num_scorers = scorers_of(log)
    if table == "results":
        yield {**head, **_result(log, read_counts(reader)[0])}
        return
    rows = _by_sample(log)[table]
    for part in reader.parts():
        if isinstance(part, SamplePart):
            key = {**head, **_key(part)}
            for row in rows(part.value, num_scorers):
                yield {**key, **row}


def _fitting(value: Any, kind: Kind) -> Any:
    """Return a value of the column's type; null for a number outside its range."""
    if value is None:
        return None
    match kind:
        case "string":
            return _plain(value if isinstance(value, str) else value_text(value))
        case "double":
            return plain_number(value)
        case "bool":
            return bool(value)
        case _:
            fits = isinstance(value, int) and -_INTEGERS[kind] <= value < _INTEGERS[kind]
            return int(value) if fits else None


def _plain(text: str) -> str:
    """Return a text that can be encoded in UTF-8. Lone surrogates become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# Rows of the whole result


def _head(log: TaskResultLog, name: str) -> Row:
    entity = log.specification.evaluated_entity
    return {
        "result": name,
        "task": log.specification.task.key,
        "model": None if entity is None else entity.display_name,
    }


def _result(log: TaskResultLog, counts: Counts) -> Row:
    execution, evidence = log.execution, log.evidence
    usage = execution.model_usage
    errors = [*log.errors, *(evidence.errors if evidence is not None else ())]
    return {
        "title": log.specification.display_name,
        "engine": getattr(log.specification.evaluated_entity, "adapter_id", None),
        "status": log.status,
        **counts.to_json(),
        "started_at": _moment(execution.started_at),
        "ended_at": _moment(execution.ended_at),
        "seconds": execution.runtime,
        "prompt_tokens": None if usage is None else usage.num_prompt_tokens,
        "completion_tokens": None if usage is None else usage.num_completion_tokens,
        "version": log.app_version,
        "config": _json(log.specification.config),
        "error": errors[0].message if errors else None,
        "superseded_by": superseded_by(log.specification.config),
    }


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return number_text(seconds)


@dataclass
class SampleCounts:
    """Sample counts for the metrics of a task or of one of its runs."""

    tally: CountsTally = field(default_factory=CountsTally)
    samples: int = 0
    excluded: int = 0
    scored: Counter[str] = field(default_factory=Counter)
    """Number of samples whose score is included in metrics, for each scorer."""

    def add(self, sample: Json) -> None:
        """Count a sample."""
        self.samples += 1
        self.tally.add(sample_facts(sample))
        self.excluded += bool(rules_of(sample))
        self.scored.update(
            {str(score["scorer"]) for score in _scores(sample, graded=False) if score["counted"]}
        )

    def merge(self, counts: SampleCounts) -> None:
        """Add the counts of other samples for the same metrics."""
        self.samples += counts.samples
        self.tally.merge(counts.tally)
        self.excluded += counts.excluded
        self.scored.update(counts.scored)

    def of(self, scorer: str | None) -> Row:
        """Return the sample counts of a metric; nulls if no sample contains it."""
        if scorer is None or not self.samples:
            return {}
        scored = self.scored[scorer]
        unscored = self.samples - scored - self.excluded
        return {
            "samples": self.samples,
            "scored": scored,
            "excluded": self.excluded,
            "unscored": unscored,
        }


def result_counts_of(counts: Mapping[int | None, SampleCounts], num_scorers: int) -> Counts:
    """Return the sample counts of a result: from its runs, or from the task without runs."""
    runs = [one.tally.counts(num_scorers) for run, one in counts.items() if run is not None]
    own = counts.get(None)
    if runs:
        return sum(runs, Counts())
    return Counts() if own is None else own.tally.counts(num_scorers)


def _metrics(reader: LogReader, name: str) -> Iterator[Row]:
    counts: dict[int | None, SampleCounts] = {}
    for part in reader.parts():
        if not isinstance(part, FramePart):
            counts.setdefault(part.run, SampleCounts()).add(part.value)
            continue
        yield from _metrics_of(reader.typed_frame(part), name, counts)


def _metrics_of(log: TaskResultLog, name: str, counts: Mapping[int | None, SampleCounts]) -> Iterator[Row]:
    head, evidence = _head(log, name), log.evidence
    if evidence is None:
        return
    definition = log.specification.task.definition.model_dump(mode="json", exclude_unset=True)
    runs = [(None, evidence.metrics), *((run, each.metrics) for run, each in enumerate(evidence.runs or ()))]
    for run, metrics in runs:
        identities = metric_identities(definition, metrics or ())
        named = iter(zip(identities, metric_labels(identities), strict=True))
        shown = {**head, "run": None if run is None else run + 1}
        for metric in metrics or ():
            yield from _values(shown, metric, counts.get(run), named)
    for error in evidence.errors:
        if error.stage is not None and error.stage.value == "metric":
            yield {**head, "reason": error.message}


def _values(
    head: Row,
    metric: MetricData,
    counts: SampleCounts | None,
    named: Iterator[tuple[MetricIdentity, str]],
) -> Iterator[Row]:
    behind = {} if counts is None else counts.of(metric.scorer_key)
    for name, value in metric.values.items():
        identity, label = next(named)
        yield {
            **head,
            "label": label,
            "score": identity.score,
            "reducer": identity.reducer,
            "scorer": metric.scorer_key,
            "metric": metric.metric_key,
            "name": name,
            "value": value,
            "text": number_text(value),
            "reason": metric.reason,
            **behind,
        }


# Rows of a sample


def _samples(sample: Json, num_scorers: int) -> Iterator[Row]:
    trials = trials_of(sample)
    rules, facts = rules_of(sample), sample_facts(sample)
    state = facts.state(num_scorers)
    yield {
        "trials": len(trials),
        "failed_trials": facts.trials[SampleState.FAILED],
        "unfinished_trials": facts.trials[SampleState.UNFINISHED],
        "state": state.label,
        "failed": state is SampleState.FAILED,
        "excluded": bool(rules),
        "rules": _json(rules) if rules else None,
        **_error(errors_of(sample)),
        "data": _json(data_of(sample, trials[0])),
    }


def _error(errors: Sequence[Json]) -> Row:
    error = errors[0] if errors else {}
    return {
        "stage": error.get("stage"),
        "error_type": error.get("error_type"),
        "error": error.get("message"),
    }


def _trials(sample: Json, _: int) -> Iterator[Row]:
    for position, trial in enumerate(trials_of(sample)):
        outputs = list(outputs_of(trial))
        calls = [event for event in _events_of(outputs) if event.get("type") == "model_call_event"]
        seconds = [plain_number(member(output, "trace", "metadata", "total_time")) for output in outputs]
        state = trial_state(sample, trial)
        scores = {
            f"{score.get('scorer_key')}.{name}": value
            for score in mappings(trial.get("scores"))
            for name, value in values_of(score)
        }
        yield {
            "trial": trial_number(trial, position),
            "question": last_text(outputs, "user"),
            "answer": last_text(outputs, "assistant"),
            "state": state.label,
            "failed": state is SampleState.FAILED,
            **_error(list(mappings(trial.get("errors")))),
            "seconds": None if not seconds or None in seconds else sum(filter(None, seconds)),
            "calls": len(calls),
            "prompt_tokens": _tokens(calls, "num_prompt_tokens"),
            "completion_tokens": _tokens(calls, "num_completion_tokens"),
            "stop_reason": stop_reason_of(trial),
            "trace_id": member(outputs[0], "trace", "metadata", "trace_id") if outputs else None,
            "scores": _json(scores),
            "data": _json(data_of(sample, trial)),
        }


def _tokens(calls: Sequence[Json], name: str) -> int | None:
    """Return the token count of all calls; null without calls, or if the count of a call is unknown."""
    counts = [member(call, "usage", name) for call in calls]
    return total_of(count if isinstance(count, int) else None for count in counts) if counts else None


def _scores(sample: Json, _: int = 0, *, graded: bool) -> Iterator[Row]:
    """Yield the scores of the trials, then the scores over the trials.

    Metrics include the scores over the trials, or the score of a single trial. Scores of excluded samples are
    not included, nor are scores of samples whose exclusion is unknown. Graded letters also get their number.
    """
    trials = trials_of(sample)
    is_legacy = not sample.get("trials")
    takes_part = not rules_of(sample) and (is_legacy or not list(mappings(sample.get("errors"))))
    for position, trial in enumerate(trials):
        for score in mappings(trial.get("scores")):
            is_counted = takes_part and len(trials) == 1
            yield from _score(score, trial_number(trial, position), counted=is_counted, graded=graded)
    if not is_legacy:
        for score in mappings(sample.get("scores")):
            yield from _score(score, None, counted=takes_part and len(trials) > 1, graded=graded)


def _score(score: Json, trial: Any, *, counted: bool, graded: bool) -> Iterator[Row]:
    metadata = score.get("metadata")
    for name, value in values_of(score):
        yield {
            "trial": trial,
            "scorer": score.get("scorer_key"),
            "name": name,
            "value": score_number(value, graded=graded),
            "text": None if value is None else value_text(value),
            "counted": counted and not is_missing(value),
            "truth": _first(metadata, TRUTHS),
            # The output of a judge is its verdict, not a prediction.
            "prediction": None if member(metadata, "judge_calls") else _first(metadata, PREDICTIONS),
            "metadata": None if metadata is None else _json(metadata),
        }


def _first(metadata: Any, names: Sequence[str]) -> Any:
    values = (member(metadata, name) for name in names)
    return next((value for value in values if value is not None), None)


def _events_of(outputs: Sequence[Json]) -> Iterator[Json]:
    for output in outputs:
        yield from mappings(member(output, "trace", "events"))


_EVENT = {
    "event_id": "id",
    "called": "model",
    "output": "result",
    **{name: name for name in ("span_id", "parent_span_id", "type", "name", "timestamp")},
    **{name: name for name in ("call_id", "arguments", "status", "error")},
}
"""Event field of each column."""
_LEFT_OUT = frozenset({*_EVENT.values(), "input_context", "usage", "total_time", "working_time"})


def _events(sample: Json, _: int) -> Iterator[Row]:
    for place, trial in enumerate(trials_of(sample)):
        for position, event in enumerate(_events_of(list(outputs_of(trial)))):
            yield {
                **{column: event.get(name) for column, name in _EVENT.items()},
                "trial": trial_number(trial, place),
                "position": position,
                "error": event.get("error") or _message(event),
                "seconds": event.get("total_time", event.get("working_time")),
                "prompt_tokens": member(event, "usage", "num_prompt_tokens"),
                "completion_tokens": member(event, "usage", "num_completion_tokens"),
                "data": _json({name: value for name, value in event.items() if name not in _LEFT_OUT}),
            }


def _message(event: Json) -> Any:
    return event.get("message") if event.get("type") == "error" else None


def _by_sample(log: TaskResultLog) -> dict[TableName, Callable[[Json, int], Iterator[Row]]]:
    return {
        "samples": _samples,
        "trials": _trials,
        "scores": partial(_scores, graded=is_graded(log.specification.config)),
        "events": _events,
    }
