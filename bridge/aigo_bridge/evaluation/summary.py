"""Machine-readable outcomes: `evaluation.json`, and the `--json` output of tasks and benchmarks.

Format: docs/reference/run-files.md.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.evaluation.running import EvaluationOutcome
from aigo_bridge.evaluation.writing import APP_VERSION
from aigo_bridge.metrics.names import metric_labels
from aigo_bridge.results.log_files import open_for_replacing

FORMAT = 1
"""Format version. Increase it if the meaning of a field changes."""

FILE = "evaluation.json"


def summary(outcome: EvaluationOutcome) -> dict[str, Any]:
    """Return the summary as plain data. Paths are relative, so that you can move the results folder."""
    evaluation = outcome.evaluation
    assert evaluation.run_file is not None
    return {
        "format": FORMAT,
        "app_version": APP_VERSION,
        "evaluation": {
            "key": evaluation.key,
            "display_name": evaluation.display_name,
            "file": evaluation.run_file.file.name,
        },
        "status": "success" if outcome.passed else "failure",
        "results": [_result(result, outcome) for result in outcome.results],
        "policies": [
            {
                "policy": verdict.policy,
                "rule": verdict.rule,
                "display_name": verdict.display_name,
                "passed": verdict.passed,
                "reason": verdict.reason,
                "values": [asdict(value) for value in verdict.values],
            }
            for verdict in outcome.verdicts
        ],
    }


def task_summary(outcome: Outcome, digest: str | None = None) -> dict[str, Any]:
    """Return the summary of a single task. `digest` is used if the outcome lacks a plan, as with merged
    logs.
    """
    plan = outcome.plan
    return {
        "task": outcome.task,
        "status": outcome.status,
        "digest": digest if plan is None else plan.digest,
        "sample_data": outcome.is_sample_data,
        "models": dict(outcome.models),
        **({} if plan is None or plan.snippets is None else {"snippets": plan.snippets}),
        "samples": {
            **_counts(outcome),
            **({"invalid": plan.num_invalid} if plan is not None and plan.num_invalid else {}),
        },
        "stop_reasons": dict(outcome.stop_reasons),
        "metrics": _metrics(outcome),
        "errors": [error.to_json() for error in outcome.first_errors],
        "warnings": _warnings(outcome),
        "faults": list(outcome.faults),
        "usage": {name: dict(usage) for name, usage in outcome.usage.items()},
        "native_log": str(outcome.native_log),
        "result": str(outcome.result),
        **_differences(outcome),
    }


def benchmark_summary(outcome: Outcome) -> dict[str, Any]:
    """Return the summary of an engine benchmark."""
    return {
        "task": outcome.task,
        "file": outcome.file,
        "status": outcome.status,
        "error": outcome.error,
        "model": outcome.models.get(""),
        "samples": {
            **_counts(outcome),
            "partly_unscored": outcome.num_unscored,
            "stopped": outcome.num_stopped,
        },
        "stop_reasons": dict(outcome.stop_reasons),
        "metrics": [
            {"scorer": row.scorer_key, "name": row.name, "value": row.value, "num_scored": row.num_scored}
            for row in outcome.metrics
        ],
        "errors": [
            {"sample_id": error.sample_id, "message": error.error.message, "count": error.count}
            for error in outcome.first_errors
        ],
        "reused": outcome.num_reused,
        "warnings": list(outcome.doubts),
        "native_log": str(outcome.native_log),
        "result": None if outcome.result is None else str(outcome.result),
        **_differences(outcome),
    }


def write_summary(outcome: EvaluationOutcome) -> Path:
    """Write the summary to the results folder."""
    path = outcome.out / FILE
    with open_for_replacing(path) as file:
        file.write(orjson.dumps(summary(outcome), option=orjson.OPT_INDENT_2) + b"\n")
    return path


def _result(result: Outcome, outcome: EvaluationOutcome) -> dict[str, Any]:
    out = outcome.out
    return {
        "key": result.key,
        "display_name": result.display_name,
        "task": result.task,
        "status": result.status,
        "right": outcome.has_passed(result),
        "problem": result.error,
        "sample_data": result.is_sample_data,
        "origin": result.origin,
        "earlier": result.earlier and _relative(result.earlier, out),
        "models": dict(result.models),
        "samples": _counts(result),
        "stop_reasons": dict(result.stop_reasons),
        "metrics": _metrics(result),
        "errors": [error.to_json() for error in result.first_errors],
        "warnings": _warnings(result),
        "faults": list(result.faults),
        "usage": {name: dict(usage) for name, usage in result.usage.items()},
        "started_at": _moment(result.started_at),
        "ended_at": _moment(result.ended_at),
        "result": result.result and _relative(result.result, out),
        "native_logs": [_relative(log.path, out) for log in result.logs],
        **_differences(result),
    }


def _counts(outcome: Outcome) -> dict[str, int]:
    return {
        "planned": outcome.num_planned,
        **outcome.counts.to_json(),
        "missing": outcome.num_missing,
        "reused": outcome.num_reused,
    }


def _metrics(outcome: Outcome) -> list[dict[str, Any]]:
    labels = metric_labels([row.identity for row in outcome.metrics])
    return [
        {
            "scorer": row.scorer_key,
            "key": row.metric_key,
            "name": row.name,
            "label": label,
            "score": row.score,
            "reducer": row.reducer,
            "value": row.value,
            "num_scored": row.num_scored,
            "problem": row.problem,
        }
        for row, label in zip(outcome.metrics, labels, strict=True)
    ]


def _warnings(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the warnings of the plan and the doubts about the run."""
    return [
        *(
            {"message": issue.message, "place": issue.place or None, "hint": issue.hint}
            for issue in outcome.warnings
            if issue.severity == "warning"
        ),
        *({"message": line, "place": None, "hint": None} for line in outcome.doubts),
    ]


def _differences(outcome: Outcome) -> dict[str, Any]:
    return {"differences": list(outcome.differences)} if outcome.differences else {}


def _relative(path: Path, out: Path) -> str:
    return Path(os.path.relpath(path, out)).as_posix()


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
