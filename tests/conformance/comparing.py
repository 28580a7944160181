"""Comparison of the outcomes of two engines for the same plan. Everything except ids, times and
engine-specific notes must be equal.

The comparison uses the result log that users get. Data that the log cannot hold (NaN, types of row values,
the metrics table) is taken from the evidence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.jobs import ready_task, run_job

from aigo_bridge.engine.protocol import Evidence
from aigo_bridge.engine.registry import load_engine
from aigo_bridge.evaluation.writing import write_result
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.records import TrialRecord

ENGINES = ("inspect", "lighteval")

ITEM_NOTES = frozenset({"id", "call_id", "tool_call_id", "inspect"})
"""Keys of items whose values are specific to an engine."""

TRACE_NOTES = frozenset({"FORMAT", "metadata", "span_id", "span_name", "span_type"})
"""Keys of traces that refer to the engine's own log. A missing format is the default format."""

TIMES = frozenset({"runtime", "started_at", "ended_at"})

Json = Any


def outcome_on(engine: str, made: TaskPlan, out: Path, **settings: Any) -> dict[str, Json]:
    """Return the outcome of an engine for a plan, in a form that can be compared.

    Raises:
        BridgeError: the engine rejects the plan or the settings.
    """
    loaded = load_engine(engine)
    ready_task(loaded, made, **settings)
    log = run_job(loaded, made, out / engine, **settings)
    return comparable(loaded.read(log.path), out / engine / "result.json", made)


def comparable(evidence: Evidence, result: Path, made: TaskPlan) -> dict[str, Json]:
    """Return the evidence of a run and its result log, without values that may differ."""
    written = write_result(evidence, result, engine="any", planned=len(made.samples), own=made)
    return {
        "status": evidence.execution.status,
        "models": dict(evidence.models),
        "usage": {name: dict(usage) for name, usage in evidence.execution.model_usage.items()},
        "trials": [_trial(record) for record in evidence.trials()],
        "table": [
            (row.scorer_key, row.name, row.value, row.num_scored, row.problem) for row in written.metrics.rows
        ],
        "counts": written.tally.counts,
        "result": _result(json.loads(result.read_bytes())),
    }


def differences(left: Json, right: Json, path: str = "") -> list[str]:
    """Return the differences between two outcomes as paths with both values; empty if they are equal."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return [
            found
            for key in sorted({*left, *right}, key=str)
            for found in differences(left.get(key), right.get(key), f"{path}.{key}")
        ]
    if isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
        pairs = zip(left, right, strict=True)
        return [d for number, (a, b) in enumerate(pairs) for d in differences(a, b, f"{path}[{number}]")]
    both_nan = isinstance(left, float) and isinstance(right, float) and left != left and right != right
    if both_nan or (left == right and type(left) is type(right)):
        return []
    return [f"{path}: {left!r:.300} != {right!r:.300}"]


def _trial(record: TrialRecord) -> dict[str, Json]:
    """Return the data of a trial that JSON cannot hold: types of row values, NaN in scores, and the source
    sample of a row.
    """
    return {
        "sample": (record.sample_id, record.source_id, record.index),
        "data": dict(record.data),
        "scores": [(score.scorer_key, dict(score.values)) for score in record.scores],
        "errors": len(record.errors),
    }


def _result(log: Json) -> Json:
    kept = {key: value for key, value in log.items() if key not in ("execution", "evidence")}
    execution = {key: value for key, value in log["execution"].items() if key not in TIMES}
    samples = [_sample(sample) for sample in log["evidence"]["samples"]]
    return {**kept, "execution": execution, "evidence": {**log["evidence"], "samples": samples}}


def _sample(sample: Json) -> Json:
    trials = [_part(trial) for trial in sample["trials"]]
    return {**_part(sample), "trials": trials}


def _part(holder: Json) -> Json:
    """Return a sample or trial with its solver output without engine-specific notes, and with the number of
    scorer calls.
    """
    scores = [
        {**score, "direct_ios": len(score.get("direct_ios") or [])} for score in holder.get("scores") or []
    ]
    solver = holder.get("solver")
    if solver is not None:
        solver = {**solver, "output": _output(solver["output"])}
    return {**holder, "scores": scores, "solver": solver}


def _output(output: Json) -> Json:
    if not isinstance(output, dict):
        return output
    if "solver_outputs" in output:
        group = output["solver_outputs"]
        made = (
            [_output(each) for each in group]
            if isinstance(group, list)
            else {key: _output(each) for key, each in group.items()}
        )
        return {**output, "solver_outputs": made}
    found = dict(output)
    if "trace" in output:
        trace = {key: value for key, value in output["trace"].items() if key not in TRACE_NOTES}
        found["trace"] = {
            **trace,
            "items": [_item(item) for item in trace["items"]],
            # A retried call comes before or after its failed attempts, depending on the engine.
            "events": sorted(_calls(trace.get("events") or []), key=lambda call: call["failed"]),
        }
    # For a call without an answer, one engine keeps the request and the other does not.
    if not any(call["failed"] for call in found.get("trace", {}).get("events", [])):
        found["direct_ios"] = [_exchange(io) for io in output.get("direct_ios") or []]
    else:
        del found["direct_ios"]
    return found


def _exchange(io: Json) -> Json:
    """Return a request and its answer as JSON, with the options of the scripted model under the names of one
    engine.
    """
    sent = json.loads(io["direct_input"]["body"])
    if isinstance(sent, dict) and "config" in sent:
        sent = {**sent, "config": dict(_options(sent["config"]))}
    answer = io["direct_output"]
    return {"sent": sent, "answer": json.loads(answer["body"]), "status": answer["status_code"]}


def _options(config: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    for name, value in config.items():
        match name:
            case "max_retries" | "max_connections":
                continue  # affects the connection, not the request
            case "stop":
                yield "stop_seqs", [value] if isinstance(value, str) else value
            case "response_schema":
                yield "response_format", value["name"]
            case "response_format":
                yield name, value["json_schema"]["name"]
            case "temperature" | "top_p" | "presence_penalty" | "frequency_penalty":
                yield name, float(value)
            case _:
                yield name, value


def _calls(events: list[Json]) -> Iterator[Json]:
    """Yield the model calls, and whether the solver or a scorer made them. Other events are specific to an
    engine.
    """
    spans = {event["span_id"]: event for event in events if event["type"] == "span_begin"}
    for event in events:
        if event["type"] == "model_call_event":
            yield {
                "by": _kind_of(event["span_id"], spans),
                "model": event["model"],
                "input": [_told(item) for item in event["input_context"]],
                "output": [_told(item) for item in event["output_items"]],
                "usage": event.get("usage"),
                "failed": event.get("error") is not None,
            }


def _kind_of(span_id: str | None, spans: Mapping[str, Json]) -> str | None:
    while span_id is not None:
        span = spans[span_id]
        if span.get("span_type") in ("solver", "scorer"):
            return str(span["span_type"])
        span_id = span.get("parent_span_id")
    return None


def _told(item: Json) -> Json:
    """Return an item of a call. Inspect only knows messages, so its log contains the input and output of
    other models as text.
    """
    if item["type"] not in ("custom_task_input_message", "custom_task_output_message"):
        return _item(item)
    role, kind = ("user", "input_text") if "input" in item["type"] else ("assistant", "output_text")
    part: dict[str, Json] = {"type": kind, "text": json.dumps(item["content"])}
    if role == "assistant":
        part["annotations"] = []
    return {"type": "message", "status": "completed", "role": role, "content": [part]}


def _item(item: Json) -> Json:
    if isinstance(item, list):
        return [_item(part) for part in item]
    if not isinstance(item, dict):
        return item
    found = {key: _item(value) for key, value in item.items() if key not in ITEM_NOTES and value is not None}
    if item.get("type") == "function_call":
        found["arguments"] = json.loads(item["arguments"])
    return found
