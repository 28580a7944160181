"""Samples of Inspect logs as rows of a data set: what `source: {type: inspect_ai}` gives.

The platform's importer converts on its server, so the names of the columns are ours, those of its transcripts where they say the same:
`sample_id`, `trace` (the main agent's, as a trace), `input` and `target` (texts), `scores` (scorer → value), `metadata` (of the sample), `model`,
`task_set` (the task's name), `task_repeat` (the epoch), `error`, `limit` and `source_uri` (the log).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from aigo_bridge.dtypes import make_explicit
from aigo_bridge.errors import EvidenceError
from aigo_inspect.logs import trace_from_sample
from aigo_inspect.reading import RawSample, open_log
from aigo_inspect.sources import find_logs


def trace_rows(location: str) -> Iterator[Mapping[str, Any]]:
    """One row per sample and epoch of a log, or of all logs in a folder, in their order.

    Raises:
        UsageError: the location names no log.
        EvidenceError: a log, or a sample of it, cannot be read: a data set that lacks rows would give other numbers.
    """
    for log in find_logs([location]):
        with open_log(log) as reader:
            spec = reader.header.get("eval") or {}
            epochs = reader.has_epochs
            for sample in reader.samples(order="sample"):
                yield _row(sample, spec, log, several_epochs=epochs)
            if reader.damage:
                parts = "; ".join(str(part) for part in reader.damage[:3])
                raise EvidenceError(f"{log!r}: {len(reader.damage)} part(s) cannot be read: {parts}")


def _row(sample: RawSample, spec: Mapping[str, Any], log: str, *, several_epochs: bool) -> dict[str, Any]:
    data = sample.data
    trace = make_explicit(trace_from_sample(sample)).model_dump(mode="json")
    return {
        "sample_id": f"{sample.id}/{sample.epoch}" if several_epochs else sample.id,
        "trace": trace,
        "input": _text(data.get("input")),
        "target": _text(data.get("target")),
        "scores": {name: (score or {}).get("value") for name, score in (data.get("scores") or {}).items()},
        "metadata": data.get("metadata") or {},
        "model": spec.get("model"),
        "task_set": spec.get("task"),
        "task_repeat": sample.epoch,
        "error": (data.get("error") or {}).get("message"),
        "limit": (data.get("limit") or {}).get("type"),
        "source_uri": log,
    }


def _text(value: Any) -> str | None:
    """A sample's input or target as text: of messages, what each of them says."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    if isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value):
        return "\n".join(f"{part['role']}: {_content(part.get('content'))}" for part in value)
    return json.dumps(value, ensure_ascii=False)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")
