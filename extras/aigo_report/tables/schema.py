"""Table schemas: the rows and typed columns of each table, independent of the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["string", "int32", "int64", "double", "bool"]
"""Arrow name of a column type."""
TableName = Literal["results", "metrics", "samples", "trials", "scores", "events"]
TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)


@dataclass(frozen=True)
class Column:
    """Column. All columns are nullable."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class Schema:
    """Table."""

    meaning: str
    columns: tuple[Column, ...]


_RESULT = (
    Column("result", "string", "the result log, by the path that leads to it"),
    Column("task", "string", "key of the task"),
    Column("model", "string", "the evaluated model or dataset"),
)
_SAMPLE = (
    *_RESULT,
    Column("run", "int32", "run of a repeatability result, from 1; null: of the task itself"),
    Column("sample", "int32", "position of the sample, from 0"),
    Column("sample_id", "string", "its id"),
)
_TRIAL = (*_SAMPLE, Column("trial", "int32", "number of the trial, from 1"))
_ERROR = (
    Column("stage", "string", "stage of the first failure"),
    Column("error_type", "string", "kind of that error"),
    Column("error", "string", "its message"),
)
_TOKENS = (
    Column("prompt_tokens", "int64", "input tokens; null: unknown"),
    Column("completion_tokens", "int64", "output tokens; null: unknown"),
)

SCHEMAS: dict[TableName, Schema] = {
    "results": Schema(
        "a result",
        (
            *_RESULT,
            Column("title", "string", "name of the evaluation as shown"),
            Column("engine", "string", "that asked the model"),
            Column("status", "string", "success or failure"),
            Column("samples", "int64", "number of samples; of a repeatability result over all runs"),
            Column("scored", "int64", "samples that were scored"),
            Column("unscored", "int64", "samples without a value, although nothing failed"),
            Column("failed", "int64", "failed samples"),
            Column("excluded", "int64", "samples that action rules keep out of the metrics"),
            Column("unfinished", "int64", "samples that did not finish"),
            Column("trials", "int64", "number of trials"),
            Column("scored_trials", "int64", "trials that were scored"),
            Column("unscored_trials", "int64", "trials without a value, although nothing failed"),
            Column("failed_trials", "int64", "failed trials"),
            Column("unfinished_trials", "int64", "trials that did not finish"),
            Column("started_at", "string", "UTC, ISO 8601"),
            Column("ended_at", "string", "UTC, ISO 8601"),
            Column("seconds", "double", "that it took"),
            *_TOKENS,
            Column("version", "string", "of the program that wrote it"),
            Column("config", "string", "values of the task's parameters, JSON"),
            Column("error", "string", "what went wrong in the task as a whole"),
            Column("superseded_by", "string", "log of a later attempt of the same run; null: not superseded"),
        ),
    ),
    "metrics": Schema(
        "a number of a metric",
        (
            *_RESULT,
            Column("run", "int32", "run of a repeatability result, from 1; null: of the task itself"),
            Column("scorer", "string", "key of the scorer; null: the task has none"),
            Column("metric", "string", "key of the metric"),
            Column("name", "string", "of the number"),
            Column("label", "string", "name that is unique in the result and shown by all commands"),
            Column("score", "string", "score that it is computed from, if the scorer gives several"),
            Column("reducer", "string", "Inspect's function over the epochs of a sample"),
            Column("value", "double", "the number; null: there is none"),
            Column("text", "string", "the number digit for digit"),
            Column("reason", "string", "explanation of the value, or why it is missing"),
            Column("samples", "int64", "samples of the result"),
            Column("scored", "int64", "of them with a score of this scorer that metrics take"),
            Column("excluded", "int64", "of them kept out by an action rule"),
            Column("unscored", "int64", "all others: failed, or the scorer gave no value"),
        ),
    ),
    "samples": Schema(
        "a sample",
        (
            *_SAMPLE,
            Column("trials", "int32", "number of its trials"),
            Column("failed_trials", "int32", "failed ones of them"),
            Column("unfinished_trials", "int32", "trials that did not finish"),
            Column("state", "string", "scored, unscored, failed, excluded or not finished"),
            Column("failed", "bool", "whether it failed: in all trials, or a rule could not be evaluated"),
            Column("excluded", "bool", "whether an action rule keeps it out of the metrics"),
            Column("rules", "string", "keys of these rules, JSON"),
            *_ERROR,
            Column("data", "string", "the row of the dataset, JSON"),
        ),
    ),
    "trials": Schema(
        "a trial of a sample",
        (
            *_TRIAL,
            Column("question", "string", "text of the user's last message"),
            Column("answer", "string", "text of the assistant's last message"),
            Column("state", "string", "scored, unscored, failed or not finished"),
            Column("failed", "bool", "whether it failed"),
            *_ERROR,
            Column("seconds", "double", "that it took; null: unknown"),
            Column("calls", "int32", "of models, judges included"),
            *_TOKENS,
            Column("stop_reason", "string", "why the model stopped its last answer: stop, max_tokens …"),
            Column("trace_id", "string", "of its first conversation"),
            Column("scores", "string", "scorer.score → value, JSON"),
            Column("data", "string", "the row of the dataset, JSON"),
        ),
    ),
    "scores": Schema(
        "a score of a trial, or of a sample over its trials (`trial` is null)",
        (
            *_TRIAL,
            Column("scorer", "string", "key of the scorer"),
            Column("name", "string", "of the score"),
            Column(
                "value",
                "double",
                "the number (true is 1, a grade of Inspect its number); null for other texts",
            ),
            Column("text", "string", "the value in the result; null: none"),
            Column("counted", "bool", "whether metrics use it; `avg(value)` is over these"),
            Column("truth", "string", "that the scorer compared with"),
            Column("prediction", "string", "that it compared"),
            Column("metadata", "string", "metadata of the scorer, JSON"),
        ),
    ),
    "events": Schema(
        "an event of a trial's trace",
        (
            *_TRIAL,
            Column("position", "int32", "in the trial, from 0"),
            Column("event_id", "string", "its id"),
            Column("span_id", "string", "of the span that it is in"),
            Column("parent_span_id", "string", "of the span around that"),
            Column("type", "string", "model_call_event, function_call_event, span_begin …"),
            Column("name", "string", "of a function, or of a span"),
            Column("timestamp", "string", "ISO 8601"),
            Column("called", "string", "the model that was called"),
            Column("call_id", "string", "of a call of a function"),
            Column("arguments", "string", "of a call of a function, JSON"),
            Column("output", "string", "of a call of a function"),
            Column("status", "string", "of a call of a function"),
            Column("error", "string", "what went wrong"),
            Column("seconds", "double", "that it took; null: unknown"),
            *_TOKENS,
            Column("data", "string", "all else, JSON; without the contexts of model calls"),
        ),
    ),
}
