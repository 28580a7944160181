"""Parquet tables of evidence: `samples`, `scores`, `events` and `messages`, with the rest of the log in
`result.json`.

The tables can be analysed with duckdb, pandas or polars. Each row contains its sample and trial. Data
without a column is JSON text in the last column. Contexts of model calls are left out, because `messages`
contains each conversation one time. Columns have fixed types: a number that does not fit is null there and
unchanged in the last column. Scores that were aggregated over trials do not belong to one trial and are in
`result.json`, by sample.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.metrics.grades import graded_number, plain_number
from aigo_bridge.process import install_command
from aigo_bridge.text.json_text import json_text

_KEY = {"sample_id": "string", "trial": "int32"}
_COLUMNS: dict[str, dict[str, str]] = {
    "samples": {
        **_KEY,
        **dict.fromkeys(
            ("trace_id", "input", "target", "metadata", "error_type", "error", "limit"), "string"
        ),
        "total_time": "double",
        "prompt_tokens": "int64",
        "completion_tokens": "int64",
        "data": "string",
    },
    "scores": {
        **_KEY,
        "scorer": "string",
        "name": "string",
        "value": "double",
        "number": "double",
        **dict.fromkeys(("text", "answer", "explanation", "metadata"), "string"),
    },
    "events": {
        **_KEY,
        "position": "int32",
        **dict.fromkeys(("event_id", "span_id", "parent_span_id", "type", "name", "timestamp"), "string"),
        **dict.fromkeys(("model", "function", "call_id", "arguments", "result", "status", "error"), "string"),
        "seconds": "double",
        "prompt_tokens": "int64",
        "completion_tokens": "int64",
        "data": "string",
    },
    "messages": {
        **_KEY,
        "position": "int32",
        **dict.fromkeys(("item_id", "type", "role", "text", "call_id", "function", "data"), "string"),
    },
}
_INTEGERS = {"int32": 1 << 31, "int64": 1 << 63}
_BATCH_ROWS = 20_000
_BATCH_BYTES = 16 << 20
_TEXTS = frozenset({"input_text", "output_text", "text"})


@dataclass(frozen=True)
class TrialParts:
    """JSON-serializable parts of one trial of one sample."""

    sample_id: str | int
    index: int
    """Number of the trial, from 0."""
    data: Mapping[str, Any]
    """Data of `SampleData.data`."""
    items: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any]
    """Metadata of the trace (`TraceMetadata`)."""
    scores: Sequence[Mapping[str, Any]]
    errors: Sequence[Mapping[str, Any]]
    extra: Mapping[str, Any]
    """Data without a column."""
    prompt_tokens: int | None
    completion_tokens: int | None


@contextmanager
def written_tables(folder: Path, loss: LossReport) -> Iterator[tuple[Tables, Path]]:
    """Open tables in a temporary folder, which replaces `folder` when the block ends without an exception.

    Raises:
        UsageError: pyarrow is not installed.
    """
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.tmp")
    draft.mkdir(parents=True)
    try:
        with Tables(draft) as tables:
            yield tables, draft
        if tables.too_big:
            loss.changed["number that does not fit its column: null there, kept as text"] += tables.too_big
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class Tables:
    """Writer of the four parquet files."""

    def __init__(self, folder: Path):
        try:
            import pyarrow as pa  # type: ignore[import-untyped]  # untyped
            import pyarrow.parquet as pq  # type: ignore[import-untyped]  # untyped
        except ImportError as error:
            raise UsageError(
                f"--format parquet needs pyarrow, which is not installed; run: {install_command('parquet')}",
                code=Code.MISSING_PACKAGE,
            ) from error
        self._arrow: Any = pa
        self._rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _COLUMNS}
        self._bytes = 0
        self.too_big = 0
        """Number of values that did not fit their columns."""
        self._schemas = {
            name: pa.schema([(column, pa.type_for_alias(kind)) for column, kind in columns.items()])
            for name, columns in _COLUMNS.items()
        }
        self._writers = {
            name: pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd")
            for name, schema in self._schemas.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._flush()
        for writer in self._writers.values():
            writer.close()

    def add(self, trial: TrialParts) -> None:
        """Add the rows of one trial."""
        for table, rows in (
            ("samples", [_sample_row(trial)]),
            ("scores", _score_rows(trial)),
            ("events", _event_rows(trial)),
            ("messages", _message_rows(trial)),
        ):
            for row in rows:
                self._rows[table].append(self._fitting(row, _COLUMNS[table]))
                self._bytes += sum(len(value) for value in row.values() if isinstance(value, str))
        if self._bytes > _BATCH_BYTES or any(len(rows) > _BATCH_ROWS for rows in self._rows.values()):
            self._flush()

    def _fitting(self, row: dict[str, Any], columns: dict[str, str]) -> dict[str, Any]:
        """Return the row with every value in the type of its column. Numbers that do not fit are moved to
        `data`, if the table has this column.
        """
        odd: dict[str, Any] = {}
        for name, kind in columns.items():
            value = row.get(name)
            if value is None:
                continue
            row[name] = _text(value) if kind == "string" else _number(value, kind)
            if row[name] is None:
                odd[name] = value
        if odd:
            self.too_big += len(odd)
            if "data" in columns:
                row["data"] = json_text({**json.loads(row["data"]), "numbers": odd})
        return row

    def _flush(self) -> None:
        for name, rows in self._rows.items():
            if rows:
                self._writers[name].write_table(
                    self._arrow.Table.from_pylist(rows, schema=self._schemas[name])
                )
                rows.clear()
        self._bytes = 0


def _key(trial: TrialParts) -> dict[str, Any]:
    return {"sample_id": str(trial.sample_id), "trial": trial.index + 1}


def _number(value: Any, kind: str) -> float | int | None:
    """Return a finite number for a column of this type; `None` if it does not fit."""
    if kind == "double":
        return plain_number(value)
    return value if isinstance(value, int) and -_INTEGERS[kind] <= value < _INTEGERS[kind] else None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json_text(value)


def _sample_row(trial: TrialParts) -> dict[str, Any]:
    limit = trial.extra.get("limit")
    error = trial.errors[0] if trial.errors else {}
    return {
        **_key(trial),
        "trace_id": trial.metadata.get("trace_id"),
        "input": _text(trial.data.get("input")),
        "target": _text(trial.data.get("target")),
        "metadata": _text(trial.data.get("metadata")),
        "error_type": error.get("error_type"),
        "error": error.get("message"),
        "limit": limit.get("type") if isinstance(limit, dict) else limit,
        "total_time": trial.metadata.get("total_time"),
        "prompt_tokens": trial.prompt_tokens,
        "completion_tokens": trial.completion_tokens,
        "data": json_text(dict(trial.extra)),
    }


def total_of(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; `None` if any count is unknown."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _score_rows(trial: TrialParts) -> Iterator[dict[str, Any]]:
    for score in trial.scores:
        metadata = score.get("metadata") or {}
        for name, value in score["values"].items():
            yield {
                **_key(trial),
                "scorer": score.get("scorer_name") or score.get("scorer_key"),
                "name": name,
                "value": value if isinstance(value, (int, float)) else None,
                "number": graded_number(value),
                "text": _text(value),
                "answer": _text(metadata.get("answer")),
                "explanation": _text(metadata.get("explanation")),
                "metadata": json_text(metadata),
            }


def _event_rows(trial: TrialParts) -> Iterator[dict[str, Any]]:
    for position, event in enumerate(trial.events):
        usage = event.get("usage") or {}
        remainder = {
            k: v
            for k, v in event.items()
            if k not in _COLUMNS["events"] and k not in ("id", "input_context", "usage")
        }
        yield {
            **_key(trial),
            **{name: _text(event.get(name)) for name in _EVENT_TEXTS},
            "position": position,
            "event_id": event.get("id"),
            "error": _text(
                event.get("error") or (event.get("message") if event["type"] == "error" else None)
            ),
            "seconds": event.get("total_time", event.get("working_time")),
            "prompt_tokens": usage.get("num_prompt_tokens"),
            "completion_tokens": usage.get("num_completion_tokens"),
            "data": json_text(remainder),
        }


_EVENT_TEXTS = (
    *("span_id", "parent_span_id", "type", "name", "timestamp", "model"),
    *("function", "call_id", "arguments", "result", "status"),
)


def _message_rows(trial: TrialParts) -> Iterator[dict[str, Any]]:
    for position, item in enumerate(trial.items):
        yield {
            **_key(trial),
            "position": position,
            "item_id": item.get("id"),
            "type": item.get("type", "message"),
            "role": item.get("role"),
            "text": _said(item),
            "call_id": item.get("call_id"),
            "function": item.get("name"),
            "data": json_text(dict(item)),
        }


def _said(item: Mapping[str, Any]) -> str | None:
    if item.get("type") == "function_call":
        return str(item["arguments"])
    content = item.get("output", item.get("content"))
    if not isinstance(content, list):
        return _text(content)
    return "\n".join(_texts_of(content))


def _texts_of(parts: Iterable[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, dict) and part.get("type") in _TEXTS:
            yield str(part["text"])
