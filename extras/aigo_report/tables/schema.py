"""Table schemas: the rows and typed columns of each table, independent of the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["string", "int32", "int64", "double", "bool"]
"""Arrow name of a column type."""
TableName = Literal["results", "metrics", "samples", "trials", "scores", "events"]
TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)


@dataclass(frozen=True)
class TableColumn:
    """Column. All columns are nullable."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class Schema:
    """Table."""

    meaning: str
    columns: tuple[TableColumn, ...]


_RESULT = (
    TableColumn("result", "string", "path of the result log"),
    TableColumn("task", "string", "key of the task"),
    TableColumn("model", "string", "evaluated model or dataset"),
)
_SAMPLE = (
    *_RESULT,
    TableColumn("run", "int32", "run of a repeatability result, from 1; null: the task itself"),
    TableColumn("sample", "int32", "position of the sample, from 0"),
    TableColumn("sample_id", "string", "id of the sample"),
)
_TRIAL = (*_SAMPLE, TableColumn("trial", "int32", "number of the trial, from 1"))
_ERROR = (
    TableColumn("stage", "string", "stage of the first failure"),
    TableColumn("error_type", "string", "type of the first error"),
    TableColumn("error", "string", "message of the first error"),
)
_TOKENS = (
    TableColumn("prompt_tokens", "int64", "input tokens; null: unknown"),
    TableColumn("completion_tokens", "int64", "output tokens; null: unknown"),
)

SCHEMAS: dict[TableName, Schema] = {
    "results": Schema(
        "a result",
        (
            *_RESULT,
            TableColumn("title", "string", "display name of the evaluation"),
            TableColumn("engine", "string", "engine of the run"),
            TableColumn("status", "string", "success or failure"),
            TableColumn("samples", "int64", "number of samples; in a repeatability result, of all runs"),
            TableColumn("scored", "int64", "samples that were scored"),
            TableColumn("unscored", "int64", "samples without a value and without a failure"),
            TableColumn("failed", "int64", "failed samples"),
            TableColumn("excluded", "int64", "samples that action rules exclude from the metrics"),
            TableColumn("unfinished", "int64", "samples that did not finish"),
            TableColumn("trials", "int64", "number of trials"),
            TableColumn("scored_trials", "int64", "trials that were scored"),
            TableColumn("unscored_trials", "int64", "trials without a value and without a failure"),
            TableColumn("failed_trials", "int64", "failed trials"),
            TableColumn("unfinished_trials", "int64", "trials that did not finish"),
            TableColumn("started_at", "string", "UTC, ISO 8601"),
            TableColumn("ended_at", "string", "UTC, ISO 8601"),
            TableColumn("seconds", "double", "duration in seconds"),
            *_TOKENS,
            TableColumn("version", "string", "version of the program that wrote the result"),
            TableColumn("config", "string", "parameter values of the task, JSON"),
            TableColumn("error", "string", "error of the whole task"),
            TableColumn(
                "superseded_by", "string", "log of a later attempt of the same run; null: not superseded"
            ),
        ),
    ),
    "metrics": Schema(
        "a value of a metric",
        (
            *_RESULT,
            TableColumn("run", "int32", "run of a repeatability result, from 1; null: the task itself"),
            TableColumn("scorer", "string", "key of the scorer; null: a task without scorers"),
            TableColumn("metric", "string", "key of the metric"),
            TableColumn("name", "string", "name of the value"),
            TableColumn("label", "string", "unique name in the result, shown by all commands"),
            TableColumn("score", "string", "score that the metric uses, if the scorer returns several"),
            TableColumn("reducer", "string", "Inspect reducer over the epochs of a sample"),
            TableColumn("value", "double", "value; null: missing"),
            TableColumn("text", "string", "value with all digits"),
            TableColumn("reason", "string", "explanation of the value, or reason why it is missing"),
            TableColumn("samples", "int64", "number of samples of the result"),
            TableColumn("scored", "int64", "samples with a valid score of this scorer"),
            TableColumn("excluded", "int64", "samples that an action rule excludes"),
            TableColumn("unscored", "int64", "other samples: failed, or without a value of the scorer"),
        ),
    ),
    "samples": Schema(
        "a sample",
        (
            *_SAMPLE,
            TableColumn("trials", "int32", "number of trials"),
            TableColumn("failed_trials", "int32", "number of failed trials"),
            TableColumn("unfinished_trials", "int32", "number of unfinished trials"),
            TableColumn("state", "string", "scored, unscored, failed, excluded or not finished"),
            TableColumn(
                "failed", "bool", "whether the sample failed in all trials, or a rule could not be evaluated"
            ),
            TableColumn("excluded", "bool", "whether an action rule excludes the sample from the metrics"),
            TableColumn("rules", "string", "keys of the excluding rules, JSON"),
            *_ERROR,
            TableColumn("data", "string", "dataset row, JSON"),
        ),
    ),
    "trials": Schema(
        "a trial of a sample",
        (
            *_TRIAL,
            TableColumn("question", "string", "text of the user's last message"),
            TableColumn("answer", "string", "text of the assistant's last message"),
            TableColumn("state", "string", "scored, unscored, failed or not finished"),
            TableColumn("failed", "bool", "whether the trial failed"),
            *_ERROR,
            TableColumn("seconds", "double", "duration in seconds; null: unknown"),
            TableColumn("calls", "int32", "number of model calls, including judges"),
            *_TOKENS,
            TableColumn("stop_reason", "string", "stop reason of the last answer: stop, max_tokens …"),
            TableColumn("trace_id", "string", "trace id of the first conversation"),
            TableColumn("scores", "string", "scorer.score → value, JSON"),
            TableColumn("data", "string", "dataset row, JSON"),
        ),
    ),
    "scores": Schema(
        "a score of a trial, or of a sample over its trials (`trial` is null)",
        (
            *_TRIAL,
            TableColumn("scorer", "string", "key of the scorer"),
            TableColumn("name", "string", "name of the score"),
            TableColumn(
                "value",
                "double",
                "numeric value (true is 1; an Inspect grade is its number); null for other texts",
            ),
            TableColumn("text", "string", "value in the result; null: missing"),
            TableColumn(
                "counted", "bool", "whether metrics use the score; take `avg(value)` over these rows"
            ),
            TableColumn("truth", "string", "ground truth of the comparison"),
            TableColumn("prediction", "string", "prediction in the comparison"),
            TableColumn("metadata", "string", "metadata of the scorer, JSON"),
        ),
    ),
    "events": Schema(
        "an event of a trial's trace",
        (
            *_TRIAL,
            TableColumn("position", "int32", "position in the trial, from 0"),
            TableColumn("event_id", "string", "id of the event"),
            TableColumn("span_id", "string", "id of the enclosing span"),
            TableColumn("parent_span_id", "string", "id of the parent of that span"),
            TableColumn("type", "string", "model_call_event, function_call_event, span_begin …"),
            TableColumn("name", "string", "name of the function or span"),
            TableColumn("timestamp", "string", "ISO 8601"),
            TableColumn("called", "string", "called model"),
            TableColumn("call_id", "string", "id of the function call"),
            TableColumn("arguments", "string", "arguments of the function call, JSON"),
            TableColumn("output", "string", "output of the function call"),
            TableColumn("status", "string", "status of the function call"),
            TableColumn("error", "string", "error message of the event"),
            TableColumn("seconds", "double", "duration in seconds; null: unknown"),
            *_TOKENS,
            TableColumn("data", "string", "other fields, JSON; without the contexts of model calls"),
        ),
    ),
}
