"""`evaluation.json`: what became of an evaluation, for programs; described in docs/run-files.md."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.errors import Issue
from aigo_bridge.evaluate import APP_VERSION
from aigo_bridge.evaluation.results import EntryResult
from aigo_bridge.evaluation.running import EvaluationOutcome
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.secrets import redact_json

FORMAT = 1
"""Raised when a field changes its meaning."""

FILE = "evaluation.json"


def summary(outcome: EvaluationOutcome, tolerated: Sequence[int]) -> dict[str, Any]:
    """The summary as plain data; paths are relative to the folder of the results, so that it can be moved as a whole.

    Args:
        outcome: of the evaluation.
        tolerated: failed samples that each specification may have.
    """
    evaluation = outcome.evaluation
    return {
        "format": FORMAT,
        "app_version": APP_VERSION,
        "evaluation": {
            "key": evaluation.key,
            "display_name": evaluation.display_name,
            "file": evaluation.run_file.file.name,
        },
        "status": "success" if outcome.is_right(tolerated) else "failure",
        "results": [
            _result(result, limit, outcome.out)
            for result, limit in zip(outcome.results, tolerated, strict=True)
        ],
        "policies": [
            {
                "policy": verdict.policy,
                "rule": verdict.rule,
                "display_name": verdict.display_name,
                "passed": verdict.passed,
                "reason": verdict.reason,
                "values": [asdict(found) for found in verdict.values],
            }
            for verdict in outcome.verdicts
        ],
    }


def warnings_json(issues: Sequence[Issue], doubts: Sequence[str]) -> list[dict[str, Any]]:
    """What planning warned of, and what the run leaves to doubt, for programs."""
    return [
        *(
            {"message": issue.message, "place": issue.place or None, "hint": issue.hint}
            for issue in issues
            if issue.severity == "warning"
        ),
        *({"message": line, "place": None, "hint": None} for line in doubts),
    ]


def write_summary(outcome: EvaluationOutcome, tolerated: Sequence[int]) -> Path:
    """Write the summary beside the results."""
    path = outcome.out / FILE
    with open_for_replacing(path) as file:
        text = orjson.dumps(summary(outcome, tolerated), option=orjson.OPT_INDENT_2)
        file.write(redact_json(text) + b"\n")
    return path


def _result(result: EntryResult, tolerated: int, out: Path) -> dict[str, Any]:
    return {
        "key": result.key,
        "display_name": result.display_name,
        "task": result.task,
        "status": result.status,
        "right": result.is_right(tolerated),
        "problem": result.problem,
        "sample_data": result.is_sample_data,
        "origin": result.origin,
        "earlier": result.earlier and _relative(result.earlier, out),
        "models": dict(result.models),
        "samples": {
            "planned": result.num_planned,
            "scored": result.num_samples - result.num_failed,
            "failed": result.num_failed,
            "missing": result.num_missing,
            "excluded": result.num_excluded,
            "reused": result.num_reused,
        },
        "metrics": [
            {
                "scorer": row.scorer_key,
                "key": row.metric_key,
                "name": row.name,
                "value": row.value,
                "num_scored": row.num_scored,
                "problem": row.problem,
            }
            for row in result.metrics
        ],
        "errors": [error.to_json() for error in result.first_errors],
        "warnings": warnings_json(result.warnings, result.doubts),
        "faults": list(result.faults),
        "usage": {name: dict(usage) for name, usage in result.usage.items()},
        "started_at": _moment(result.started_at),
        "ended_at": _moment(result.ended_at),
        "result": result.result and _relative(result.result, out),
        "native_logs": [_relative(log, out) for log in result.native_logs],
        **({"differences": list(result.differences)} if result.differences else {}),
    }


def _relative(path: Path, out: Path) -> str:
    return Path(os.path.relpath(path, out)).as_posix()


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
