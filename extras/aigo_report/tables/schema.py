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
    TableColumn("result", "string", "the result log, by the path that leads to it"),
    TableColumn("task", "string", "key of the task"),
    TableColumn("model", "string", "the evaluated model or dataset"),
)
_SAMPLE = (
    *_RESULT,
    TableColumn("run", "int32", "run of a repeatability result, from 1; null: of the task itself"),
    TableColumn("sample", "int32", "position of the sample, from 0"),
    TableColumn("sample_id", "string", "its id"),
)
_TRIAL = (*_SAMPLE, TableColumn("trial", "int32", "number of the trial, from 1"))
_ERROR = (
    TableColumn("stage", "string", "stage of the first failure"),
    TableColumn("error_type", "string", "kind of that error"),
    TableColumn("error", "string", "its message"),
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
            TableColumn("title", "string", "name of the evaluation as shown"),
            TableColumn("engine", "string", "that asked the model"),
            TableColumn("status", "string", "success or failure"),
            TableColumn("samples", "int64", "number of samples; of a repeatability result over all runs"),
            TableColumn("scored", "int64", "samples that were scored"),
            TableColumn("unscored", "int64", "samples without a value, although nothing failed"),
            TableColumn("failed", "int64", "failed samples"),
            TableColumn("excluded", "int64", "samples that action rules keep out of the metrics"),
            TableColumn("unfinished", "int64", "samples that did not finish"),
            TableColumn("trials", "int64", "number of trials"),
            TableColumn("scored_trials", "int64", "trials that were scored"),
            TableColumn("unscored_trials", "int64", "trials without a value, although nothing failed"),
            TableColumn("failed_trials", "int64", "failed trials"),
            TableColumn("unfinished_trials", "int64", "trials that did not finish"),
            TableColumn("started_at", "string", "UTC, ISO 8601"),
            TableColumn("ended_at", "string", "UTC, ISO 8601"),
            TableColumn("seconds", "double", "that it took"),
            *_TOKENS,
            TableColumn("version", "string", "of the program that wrote it"),
            TableColumn("config", "string", "values of the task's parameters, JSON"),
            TableColumn("error", "string", "what went wrong in the task as a whole"),
            TableColumn(
                "superseded_by", "string", "log of a later attempt of the same run; null: not superseded"
            ),
        ),
    ),
    "metrics": Schema(
        "a number of a metric",
        (
            *_RESULT,
            TableColumn("run", "int32", "run of a repeatability result, from 1; null: of the task itself"),
            TableColumn("scorer", "string", "key of the scorer; null: the task has none"),
            TableColumn("metric", "string", "key of the metric"),
            TableColumn("name", "string", "of the number"),
            TableColumn("label", "string", "name that is unique in the result and shown by all commands"),
            TableColumn("score", "string", "score that it is computed from, if the scorer gives several"),
            TableColumn("reducer", "string", "Inspect's function over the epochs of a sample"),
            TableColumn("value", "double", "the number; null: there is none"),
            TableColumn("text", "string", "the number digit for digit"),
            TableColumn("reason", "string", "explanation of the value, or why it is missing"),
            TableColumn("samples", "int64", "samples of the result"),
            TableColumn("scored", "int64", "of them with a score of this scorer that metrics take"),
            TableColumn("excluded", "int64", "of them kept out by an action rule"),
            TableColumn("unscored", "int64", "all others: failed, or the scorer gave no value"),
        ),
    ),
    "samples": Schema(
        "a sample",
        (
            *_SAMPLE,
            TableColumn("trials", "int32", "number of its trials"),
            TableColumn("failed_trials", "int32", "failed ones of them"),
            TableColumn("unfinished_trials", "int32", "trials that did not finish"),
            TableColumn("state", "string", "scored, unscored, failed, excluded or not finished"),
            TableColumn(
                "failed", "bool", "whether it failed: in all trials, or a rule could not be evaluated"
            ),
            TableColumn("excluded", "bool", "whether an action rule keeps it out of the metrics"),
            TableColumn("rules", "string", "keys of these rules, JSON"),
            *_ERROR,
            TableColumn("data", "string", "the row of the dataset, JSON"),
        ),
    ),
    "trials": Schema(
        "a trial of a sample",
        (
            *_TRIAL,
            TableColumn("question", "string", "text of the user's last message"),
            TableColumn("answer", "string", "text of the assistant's last message"),
            TableColumn("state", "string", "scored, unscored, failed or not finished"),
            TableColumn("failed", "bool", "whether it failed"),
            *_ERROR,
            TableColumn("seconds", "double", "that it took; null: unknown"),
            TableColumn("calls", "int32", "of models, judges included"),
            *_TOKENS,
            TableColumn("stop_reason", "string", "why the model stopped its last answer: stop, max_tokens …"),
            TableColumn("trace_id", "string", "of its first conversation"),
            TableColumn("scores", "string", "scorer.score → value, JSON"),
            TableColumn("data", "string", "the row of the dataset, JSON"),
        ),
    ),
    "scores": Schema(
        "a score of a trial, or of a sample over its trials (`trial` is null)",
        (
            *_TRIAL,
            TableColumn("scorer", "string", "key of the scorer"),
            TableColumn("name", "string", "of the score"),
            TableColumn(
                "value",
                "double",
                "the number (true is 1, a grade of Inspect its number); null for other texts",
            ),
            TableColumn("text", "string", "the value in the result; null: none"),
            TableColumn("counted", "bool", "whether metrics use it; `avg(value)` is over these"),
            TableColumn("truth", "string", "that the scorer compared with"),
            TableColumn("prediction", "string", "that it compared"),
            TableColumn("metadata", "string", "metadata of the scorer, JSON"),
        ),
    ),
    "events": Schema(
        "an event of a trial's trace",
        (
            *_TRIAL,
            TableColumn("position", "int32", "in the trial, from 0"),
            TableColumn("event_id", "string", "its id"),
            TableColumn("span_id", "string", "of the span that it is in"),
            TableColumn("parent_span_id", "string", "of the span around that"),
            TableColumn("type", "string", "model_call_event, function_call_event, span_begin …"),
            TableColumn("name", "string", "of a function, or of a span"),
            TableColumn("timestamp", "string", "ISO 8601"),
            TableColumn("called", "string", "the model that was called"),
            TableColumn("call_id", "string", "of a call of a function"),
            TableColumn("arguments", "string", "of a call of a function, JSON"),
            TableColumn("output", "string", "of a call of a function"),
            TableColumn("status", "string", "of a call of a function"),
            TableColumn("error", "string", "what went wrong"),
            TableColumn("seconds", "double", "that it took; null: unknown"),
            *_TOKENS,
            TableColumn("data", "string", "all else, JSON; without the contexts of model calls"),
        ),
    ),
}
