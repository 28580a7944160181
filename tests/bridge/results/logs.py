"""Logs and samples for the tests of this folder."""

from __future__ import annotations

import copy
import json
from typing import Any

from aigo_bridge.dtypes import TaskResultLog

FRAME: dict[str, Any] = {
    "format_version": "v1",
    "app_version": "x",
    "status": "success",
    "evidence": {"metrics": [{"values": {"a": 1.0}, "metric_key": "mean"}]},
    "specification": {
        "display_name": "E",
        "config": {},
        "run_config": {},
        "task": {
            "id": "t",
            "key": "t",
            "display_name": "T",
            "description": "",
            "config_spec": [],
            "tags": [],
            "provider": "user",
            "definition": {"type": "benchmark_task", "evaluated_entity_type": "model", "scorers": []},
        },
        "evaluated_entity": {
            "id": "m",
            "display_name": "M",
            "key": "gpt",
            "task": "chat_completion",
            "adapter_id": "a",
            "config": {"connection_type": "provider_connection", "provider_id": "openai", "model_key": "gpt"},
        },
    },
    "execution": {"runtime": 1.0, "started_at": 1, "ended_at": 2},
    "errors": [],
}


def frame(**evidence: Any) -> TaskResultLog:
    """Return a log without samples."""
    return TaskResultLog.model_validate(whole(**evidence))


def whole(**evidence: Any) -> dict[str, Any]:
    """Return a log as plain data, with these fields in its evidence."""
    log = copy.deepcopy(FRAME)
    log["evidence"].update(evidence)
    return log


def sample(name: str | int, text: str = "?") -> dict[str, Any]:
    """Return a sample as plain data."""
    item = {
        "type": "message",
        "id": "",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": text}],
    }
    trial = {
        "index": 0,
        "sample_id": name,
        "sample": {"data": {"q": text}},
        "solver": {"output": {"trace": {"items": [item]}, "raw_outputs": []}},
        "scores": [{"scorer_key": "s", "values": {"a": None}}],
        "errors": [],
    }
    return {
        "sample_id": name,
        "sample": None,
        "solver": None,
        "scores": None,
        "errors": [],
        "trials": [trial],
    }


def text_of_log(samples: list[Any], **dump: Any) -> str:
    """Return a log with samples as one JSON document."""
    return json.dumps(whole(samples=samples), **dump)
