"""Small handmade result logs with every type of sample content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

Json = dict[str, Any]

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAFElEQVR4nGOUqPnPgBsw4ZEboNIA"
    "pu4BgnaL0sMAAAAASUVORK5CYII="
)


def message(role: str, *parts: str | Json) -> Json:
    """Return a message with texts and other parts."""
    kind = "output_text" if role == "assistant" else "input_text"
    extra: Json = {"annotations": []} if role == "assistant" else {}
    content = [{"type": kind, "text": part, **extra} if isinstance(part, str) else part for part in parts]
    return {"type": "message", "id": "", "status": "completed", "role": role, "content": content}


def score(key: str, values: Json, **metadata: Any) -> Json:
    """Return a scorer's result for a trial."""
    return {"scorer_key": key, "scorer_purpose": "score", "values": values, "metadata": metadata or None}


def trial(
    sample_id: str | int,
    items: Sequence[Json] | None,
    *,
    scores: Sequence[Json] = (),
    data: Json | None = None,
    errors: Sequence[Json] = (),
    events: Sequence[Json] = (),
    index: int = 0,
) -> Json:
    """Return one trial; without items, its solver has failed."""
    trace: Json = {"items": list(items or ()), "events": list(events), "metadata": {"total_time": 1.25}}
    return {
        "index": index,
        "sample_id": sample_id,
        "sample": {"data": data or {}},
        "solver": None if items is None else {"output": {"trace": trace, "raw_outputs": []}},
        "scores": list(scores),
        "errors": list(errors),
    }


def sample(*trials: Json, excluded: str | None = None, errors: Sequence[Json] = ()) -> Json:
    """Return a sample with trials."""
    records = [] if excluded is None else [{"action": "exclude_from_metrics", "rule_key": excluded}]
    return {
        "sample_id": trials[0]["sample_id"],
        "sample": None,
        "solver": None,
        "scores": None,
        "action_records": records,
        "errors": list(errors),
        "trials": list(trials),
    }


def metric(values: Json, scorer: str = "exact", key: str = "mean", **fields: Any) -> Json:
    """Return a metric of a scorer."""
    return {"values": values, "metric_key": key, "metric_type": "mean", "scorer_key": scorer, **fields}


def question(number: int, answer: str, truth: str, **fields: Any) -> Json:
    """Return a question with an answer, scored by correctness."""
    right = score("exact", {"is_correct": float(answer == truth)}, answer_gt=truth, answer_pred=answer)
    items = [message("user", f"Question {number}?"), message("assistant", answer)]
    data = {"question": f"Question {number}?", "gold": truth, "topic": ["rivers", "cities"][number % 2]}
    return sample(trial(number, items, scores=[right], data=data), **fields)


def result(
    samples: Sequence[Json], metrics: Sequence[Json] | None = (), *, title: str = "Quiz", **fields: Any
) -> Json:
    """Return a result log; `fields` replace the default fields."""
    failed = sum(bool(one["errors"] or any(part["errors"] for part in one["trials"])) for one in samples)
    return {
        "format_version": "v1",
        "app_version": "aigo-bridge test",
        "status": "success",
        "errors": [],
        "specification": {
            "display_name": title,
            "task": {
                "id": "quiz",
                "key": "quiz",
                "display_name": title,
                "description": "Questions and answers.",
                "config_spec": [],
                "definition": {
                    "type": "benchmark_task",
                    "evaluated_entity_type": "model",
                    "dataset": {"id": "quiz-rows"},
                    "solver": {
                        "type": "single_turn_solver",
                        "input_builder": {"type": "chat_completion", "input_messages": []},
                    },
                    "scorers": [],
                },
                "provider": "user",
                "tags": [],
            },
            "config": {"shots": 3},
            "evaluated_entity": {
                "id": "m",
                "key": "m",
                "display_name": "some/model",
                "task": "chat_completion",
                "config": {
                    "connection_type": "custom_connection",
                    "adapter_id": "inspect",
                    "url": "inspect://some/model",
                    "model_key": "some/model",
                },
                "adapter_id": "inspect",
            },
            "run_config": {"cache_policy": "update"},
        },
        "execution": {"runtime": 1.5, "started_at": 1_700_000_000, "ended_at": 1_700_000_002},
        "evidence": {
            "metrics": None if metrics is None else list(metrics),
            "samples": list(samples),
            "errors": [],
            "failures": {"num_errors": failed, "num_total": len(samples)},
        },
        **fields,
    }


def write_result(path: Path, log: Json) -> Path:
    """Write a result log to a file and validate it."""
    from aigo_bridge.results.validating import validate_log

    path.write_bytes(orjson.dumps(log))
    assert [str(issue) for issue in validate_log(path)] == []
    return path
