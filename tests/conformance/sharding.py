"""Comparison of a plan that ran in shards with a single run. Except for ids and times, the merged result must
be identical to the byte.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from tests.conformance.features import Ready

from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.protocol import RunSettings
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.evaluation.running import prepare as with_models
from aigo_bridge.evaluation.running import run_evaluation
from aigo_bridge.evaluation.task import evaluations_of
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.plan.shards import Shard
from aigo_scale.sharding.merging import merge
from aigo_scale.sharding.running import run_shard
from aigo_scale.sharding.shard_matching import find_shards

IDS = frozenset(
    {"id", "call_id", "model_call_id", "tool_call_id", "trace_id", "span_id", "parent_span_id", "message_id"}
)
"""Keys in solver outputs and scores whose texts are random in each run. Equal texts stay equal in the
comparison."""

TIMES = frozenset(
    {
        "runtime",
        "started_at",
        "ended_at",
        "created",
        "created_at",
        "timestamp",
        "total_time",
        "working_time",
        "working_start",
        "completed_at",
        "completed",
        "output_time",
        "time",
    }
)

SETTINGS = {field.name for field in fields(RunSettings)} - {"out", "on_progress"}


def normalised(result: Path, *, was_recovered: bool = False) -> bytes:
    """Return a result log without the values that differ between runs of the same plan.

    For samples that Inspect recovers from the buffer of a killed run (`was_recovered`), it has sorted the
    keys of raw requests.
    """
    log = json.loads(result.read_bytes())
    runs = [run["samples"] for run in log["evidence"].get("runs") or ()]
    for sample in itertools.chain(log["evidence"]["samples"], *runs):
        # Each shard numbers its ids from the start.
        names: dict[str, str] = {}
        for trial in sample.get("trials") or ():
            trial["solver"] = _normal(trial.get("solver"), names)
            trial["scores"] = _normal(trial.get("scores"), names)
    log["execution"] = _normal(log["execution"], {})
    text = json.dumps(_bodies_sorted(log), sort_keys=True) if was_recovered else json.dumps(log)
    return text.encode()


def _bodies_sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_bodies_sorted(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: json.loads(part) if key == "body" and isinstance(part, str) else _bodies_sorted(part)
        for key, part in value.items()
    }


def _normal(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_normal(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, part, names) for key, part in value.items()}


def _field(key: str, value: Any, names: dict[str, str]) -> Any:
    if key in IDS and isinstance(value, str):
        return names.setdefault(value, f"#{len(names)}")
    if key in TIMES and isinstance(value, str | int | float):
        return 0
    return _normal(value, names)


def shard_faults(
    engine: Engine, origin: PlanOrigin, settings: Mapping[str, Any], out: Path, counts: Iterable[int]
) -> list[str]:
    """Return the differences between merged shards and a single run; empty if there are none.

    Args:
        engine: engine of the runs.
        origin: origin of the task.
        settings: models and limits, as in `Ready`.
        out: folder for the runs.
        counts: numbers of shards to test.
    """
    choice = ModelChoice(settings.get("model"), settings.get("model_map"))
    limits = {name: value for name, value in settings.items() if name in SETTINGS}

    def prepared(shard: Shard | None) -> Any:
        own = origin if shard is None else replace(origin, shard=str(shard))
        return with_models(evaluations_of(own, cache=None), [engine], choice, resume=False)

    (whole,) = prepared(None)
    (expected,) = run_evaluation(whole, engine, RunSettings(out / "whole", **limits)).results
    found: list[str] = []
    for count in counts:
        folder = out / f"of-{count}"
        for number in range(1, count + 1):
            shard = Shard(number, count)
            run_shard(prepared(shard), engine, RunSettings(folder, **limits), shard)
        merged = merge(find_shards([folder]), engine, out / f"merged-{count}", origin).outcomes[0]
        assert merged.result is not None
        assert expected.result is not None
        if normalised(merged.result) != normalised(expected.result):
            found.append(f"{engine.name}, {count} shards: {_first(merged.result, expected.result)}")
        shown = [(row.scorer_key, row.name, row.value, row.num_scored, row.problem) for row in merged.metrics]
        wanted = [
            (row.scorer_key, row.name, row.value, row.num_scored, row.problem) for row in expected.metrics
        ]
        if repr(shown) != repr(wanted):
            found.append(f"{engine.name}, {count} shards: shown {shown} instead of {wanted}")
        counted = [(one.status, one.num_planned, one.counts) for one in (merged, expected)]
        if counted[0] != counted[1]:
            found.append(f"{engine.name}, {count} shards: counted {counted[0]} instead of {counted[1]}")
    return found


def is_stateless(document: Mapping[str, Any]) -> bool:
    """Return whether a feature's models always give the same answer to the same question.

    A rule that applies a limited number of times is allowed if it matches only one sample, because one shard
    runs this sample.
    """
    models = [document.get("model") or [], *(document.get("models") or {}).values()]
    rules = [rule for model in models if isinstance(model, list) for rule in model]
    return all("exact" in rule.get("match", {}) for rule in rules if "times" in rule)


def origin_of(made: Ready) -> PlanOrigin:
    """Return the origin of a feature's plan."""
    assert made.plan.origin is not None
    return made.plan.origin


def _first(merged: Path, expected: Path) -> str:
    left, right = normalised(merged), normalised(expected)
    at = next((n for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]), 0)
    return f"{left[max(0, at - 150) : at + 60]!r} instead of {right[max(0, at - 150) : at + 60]!r}"
