"""What two engines made of the same plan, side by side: everything but ids, times and an engine's own notes must be equal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import TraceItem, make_explicit
from aigo_bridge.engine import Evidence, RunSettings
from aigo_bridge.engines import load_engine
from aigo_bridge.evaluate import write_result
from aigo_bridge.plan import TaskPlan
from aigo_bridge.results.trials import TrialRecord

ENGINES = ("inspect", "lighteval")

ANYWHERE = frozenset({"id", "call_id", "tool_call_id", "inspect"})
"""Keys of items whose values are an engine's own."""

Json = Any


def outcome_on(engine: str, made: TaskPlan, out: Path, **settings: Any) -> dict[str, Json]:
    """What an engine makes of a plan, in a form that is equal when it says the same."""
    adapter = load_engine(engine)
    log = adapter.run(made, RunSettings(out=out / engine, **settings))
    evidence = adapter.read(log.path)
    return comparable(evidence, out / engine / "result.json")


def comparable(evidence: Evidence, result: Path) -> dict[str, Json]:
    """Trials, metrics and use of models of a run."""
    written = write_result(evidence, result, engine="any")
    return {
        "status": evidence.execution.status,
        # Inspect names a model even where none is asked.
        "models": {key: name for key, name in evidence.models.items() if name != "none/none"},
        "trials": [_trial(record) for record in evidence.trials()],
        "metrics": [
            (metric.scorer_key, metric.metric_key, dict(metric.values)) for metric in written.metrics.data
        ],
        "problems": [(row.scorer_key, row.name, row.num_scored, row.problem) for row in written.metrics.rows],
        "failed": (written.tally.num_samples, written.tally.num_failed, written.tally.num_excluded),
    }


def differences(left: Json, right: Json, path: str = "") -> list[str]:
    """Where two outcomes differ, as paths with both values; empty when they are equal."""
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
    return {
        "sample": (record.sample_id, record.source_id, record.index),
        "data": dict(record.data),
        "solver": None if record.solver is None else _output(_plain(record.solver)),
        "scores": [
            {
                "scorer": (score.scorer_key, score.scorer_purpose.value, score.scorer_name),
                "values": dict(score.values),
                "metadata": _plain(score).get("metadata"),
                "calls": len(score.direct_ios or []),
            }
            for score in record.scores
        ],
        "errors": [
            (error.error_type, error.message, error.stage and error.stage.value, error.hint)
            for error in record.errors
        ],
    }


def _plain(value: Any) -> dict[str, Json]:
    dumped: dict[str, Json] = make_explicit(value).model_dump(mode="json")
    return dumped


def _output(output: dict[str, Json]) -> Json:
    if "solver_outputs" in output:
        group = output["solver_outputs"]
        return (
            [_output(each) for each in group]
            if isinstance(group, list)
            else {key: _output(each) for key, each in group.items()}
        )
    if "trace" not in output:
        return output
    calls = [
        event for event in output["trace"].get("events") or [] if event.get("type") == "model_call_event"
    ]
    return {
        "items": [_item(item) for item in output["trace"]["items"]],
        "raw_outputs": output["raw_outputs"],
        "calls": len(output["direct_ios"]),
        "model_calls": [
            {
                "model": call["model"],
                "input": [_item(item) for item in call["input_context"]],
                "output": [_item(item) for item in call["output_items"]],
                "usage": call.get("usage"),
                "failed": call.get("error") is not None,
            }
            for call in calls
        ],
    }


def _item(item: Json) -> Json:
    if isinstance(item, TraceItem):
        item = _plain(item)
    if isinstance(item, list):
        return [_item(part) for part in item]
    if not isinstance(item, dict):
        return item
    found = {key: _item(value) for key, value in item.items() if key not in ANYWHERE and value is not None}
    if item.get("type") == "function_call":
        found["arguments"] = json.loads(item["arguments"])
    return found
