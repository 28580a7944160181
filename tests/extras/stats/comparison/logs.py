"""Helpers that write result logs for the tests in this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from tests.bridge.results.logs import FRAME


def trial(
    number: int, name: Any, row: dict[str, Any], values: dict[str, Any] | None, answer: str = ""
) -> dict[str, Any]:
    """Return a trial. Without values, it failed."""
    message = {
        "type": "message",
        "id": "",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": answer, "annotations": []}],
    }
    output = {
        "trace": {"items": [message]},
        "raw_outputs": [{"choices": [{"message": {"role": "assistant", "content": answer}}]}],
    }
    failed = [{"error_type": "Timeout", "message": "took too long", "stage": "solver"}]
    return {
        "index": number,
        "sample_id": name,
        "sample": {"data": row},
        "solver": None if values is None else {"output": output},
        "scores": None if values is None else [{"scorer_key": "judge", "values": _declared(values)}],
        "errors": failed if values is None else [],
    }


def _declared(values: dict[str, Any]) -> dict[str, Any]:
    """Return boolean values for the score `right`, which declares a proportion."""
    right = values.get("right")
    return {**values, "right": bool(right)} if isinstance(right, float) and right in (0.0, 1.0) else values


def sample(
    name: Any,
    values: dict[str, Any] | None,
    row: dict[str, Any] | None = None,
    *,
    answer: str = "",
    excluded: bool = False,
) -> dict[str, Any]:
    """Return a sample with one trial."""
    row = {"question": f"q{name}"} if row is None else row
    records = [{"action": "exclude", "rule_key": "rule"}] if excluded else None
    return {
        "sample_id": name,
        "sample": None,
        "solver": None,
        "scores": None,
        "action_records": records,
        "errors": [],
        "trials": [trial(0, name, row, values, answer)],
    }


def repeated(name: Any, scores: Sequence[float | None], row: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a sample with a right/wrong score per trial, or `None` for a failed trial."""
    row = {"question": f"q{name}"} if row is None else row
    present = [score for score in scores if score is not None]
    mean = [{"scorer_key": "judge", "values": {"right": sum(present) / len(present)}}] if present else []
    return {
        "sample_id": name,
        "sample": None,
        "solver": None,
        "scores": mean,
        "errors": [],
        "trials": [
            trial(number, name, row, None if score is None else {"right": score})
            for number, score in enumerate(scores)
        ],
    }


def log(
    path: Path,
    samples: Sequence[dict[str, Any]],
    metrics: Sequence[tuple[dict[str, Any], dict[str, float]]],
    **frame: Any,
) -> Path:
    """Write a log of a task with the scorer `judge`.

    Args:
        path: Output file.
        samples: Samples from the functions above.
        metrics: Metric definitions of the task and their values in the result.
        frame: fields of the log in place of the usual ones; `task`: of its definition.
    """
    content = orjson.loads(orjson.dumps(FRAME))
    definitions = [definition for definition, _ in metrics]
    content["specification"]["task"]["definition"] |= {
        "scorers": [{"key": "judge", "type": "python", "metrics": definitions}],
        **frame.pop("task", {}),
    }
    content["specification"] |= frame.pop("specification", {})
    content |= frame
    content["evidence"] = {
        "samples": list(samples),
        "metrics": [
            {
                "scorer_key": "judge",
                "metric_key": definition.get("key", definition["type"]),
                "metric_type": definition["type"],
                "values": values,
            }
            for definition, values in metrics
        ],
    }
    path.write_bytes(orjson.dumps(content))
    return path


MEAN = {"type": "mean", "field": "right", "name": "accuracy"}
"""A share of right samples."""
