"""Expected types of the fields in a log, conversion of old layouts, and keys of aigo-bridge's own data.

Fields of an unexpected type are moved aside before they are read. Layouts of older Inspect versions are
converted to current keys, with the same migrations as in Inspect's own models. One migration is only
implemented here: version-3 pools (`message_pool`, `call_pool`, optional in 0.3.195-0.3.199), which Inspect
reads without an error but with empty model inputs.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from msgspec import DecodeError

HEADER_KEY = "aigo_bridge"
"""Key in the metadata of a task and its log that contains the plan."""

STORE_KEY = "aigo_bridge"
"""Key in the metadata of a sample's output that contains the result of aigo-bridge's solver. In older logs,
it is a key of the store."""

SCORE_KEY = "aigo_bridge"
"""Key in the metadata of a score that contains data without a field in Inspect's score."""

INDEX, FRAME, SAMPLES = "_aigo/index.json", "_aigo/frame.json", "_aigo/samples/"
"""Archive members with the embedded evidence: checksums, frame and samples."""


MALFORMED = (
    AttributeError,
    DecodeError,  # a subclass of ValueError since msgspec 0.21
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions raised by code that expects a well-formed log."""

_SAMPLE: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("scores", "metadata", "model_usage", "role_usage", "attachments", "events_data"), dict),
    **dict.fromkeys(("store", "output", "limit", "invalidation"), dict),
    **dict.fromkeys(("messages", "events", "error_retries", "choices", "files", "timelines"), list),
    **dict.fromkeys(("uuid", "started_at", "completed_at"), str),
    "error": (dict, str),
}
_POOLS: dict[str, type | tuple[type, ...]] = {"messages": list, "calls": list}
_HEADER: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("eval", "stats", "plan", "results"), dict),
    **dict.fromkeys(("tags", "log_updates"), list),
    "error": (dict, str),
    "status": str,
}
_EVAL: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("dataset", "config", "task_args", "packages"), dict),
    **dict.fromkeys(("tags", "scorers"), list),
    **dict.fromkeys(("task", "model", "created", "task_display_name", "task_description", "solver"), str),
}
_STATS: dict[str, type | tuple[type, ...]] = {"model_usage": dict, "started_at": str, "completed_at": str}
_RESULTS: dict[str, type | tuple[type, ...]] = {"scores": list}


def settle_sample(sample: dict[str, Any]) -> None:
    """Move fields of an unexpected type to `sample["malformed"]`, in place."""
    _settle(sample, _SAMPLE)
    pools = sample.get("events_data")
    _settle(pools, _POOLS)
    if isinstance(pools, dict) and isinstance(aside := pools.pop("malformed", None), dict):
        # Pools are removed when they are restored to the events.
        sample.setdefault("malformed", {})["events_data"] = aside


def settle_header(header: dict[str, Any]) -> None:
    """Move fields of an unexpected type in the header and its parts, like `settle_sample`."""
    _settle(header, _HEADER)
    _settle(header.get("eval"), _EVAL)
    _settle(header.get("stats"), _STATS)
    _settle(header.get("results"), _RESULTS)
    plan = header.get("plan")
    _settle(plan, {"steps": list})


def set_aside(settled: Any) -> Counter[str]:
    """Return the fields that were moved aside in a sample, a header or a part of one, as changes."""
    aside = settled.get("malformed") if isinstance(settled, dict) else None
    changes: Counter[str] = Counter()
    if isinstance(aside, dict):
        changes.update({f"{name} of an unexpected kind: kept under 'malformed'": 1 for name in aside})
    return changes


def _settle(found: Any, kinds: dict[str, type | tuple[type, ...]]) -> None:
    if not isinstance(found, dict):
        return
    for name, kind in kinds.items():
        value = found.get(name)
        if value is not None and not isinstance(value, kind):
            aside = found.setdefault("malformed", {})
            if isinstance(aside, dict):
                aside[name] = value
            del found[name]


def number(value: Any) -> float | int | None:
    """Return `value` if it is a finite number in the range of a float, otherwise `None`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        # An integer with more than three hundred digits.
        return None


def listed(value: Any) -> list[Any]:
    """Return `value` if it is a list, or an empty list for `None`. Raise `TypeError` for other values, so
    that they are never split into parts.
    """
    if value is None:
        return []
    if type(value) is not list:
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def count_of(value: Any) -> int | None:
    """Return `value` if it is a count (an integer of at least 0), otherwise `None`. An unknown count is not
    0.
    """
    if type(value) is int:
        return value if value >= 0 else None
    if type(value) is float and value.is_integer() and 0 <= value < _EXACT:
        return int(value)
    return None


_EXACT = 2.0**53
"""Largest float that represents a count exactly."""


# Layouts of older releases


_PLACEHOLDER = "scorer"
"""Name of a scorer that the log does not name."""


STATUS_UNKNOWN = "unknown"
"""Status of a log whose status is in a damaged part."""


def lift_header(header: dict[str, Any]) -> dict[str, Any]:
    """Convert an old header to current keys, in place. Afterwards `status`, `eval` and `stats` exist."""
    settle_header(header)
    if not header.get("status"):
        header["status"] = "started"
    for key in ("eval", "stats", "plan"):
        if not isinstance(header.get(key), dict):
            header[key] = {}
    spec = header["eval"]
    if not isinstance(spec.get("dataset"), dict):
        spec["dataset"] = {}
    if not isinstance(spec.get("config"), dict):
        spec["config"] = {}
    sandbox = spec.get("sandbox")
    if isinstance(sandbox, list) and sandbox:
        spec["sandbox"] = {"type": sandbox[0], **({"config": sandbox[1]} if len(sandbox) > 1 else {})}
    results = header.get("results")
    if isinstance(results, dict) and "scorer" in results:
        # Before 0.3.26, a log had one scorer, and its metrics were a separate field.
        scorer = results.pop("scorer") or {}
        metrics = results.pop("metrics", None) or {}
        if isinstance(scorer, dict):
            entry = {**scorer, "scorer": scorer.get("name", _PLACEHOLDER), "metrics": metrics}
            results.setdefault("scores", [entry])
    return header


def scorer_name(header: dict[str, Any]) -> str:
    """Return the name of the only scorer of an old log."""
    results = header.get("results")
    scores = results.get("scores") if isinstance(results, dict) else None
    if isinstance(scores, list) and scores and isinstance(scores[0], dict):
        return str(scores[0].get("name") or _PLACEHOLDER)
    return _PLACEHOLDER


def lift_sample(sample: dict[str, Any], header: dict[str, Any]) -> None:
    """Convert an old sample to current keys, in place. Fields of an unexpected type are moved aside."""
    if "score" in sample and "scores" not in sample:
        score = sample.pop("score")
        if score is not None:
            sample["scores"] = {scorer_name(header): score}
    transcript = sample.pop("transcript", None)
    if isinstance(transcript, dict):
        sample.setdefault("events", transcript.get("events", []))
        sample.setdefault("attachments", transcript.get("content", {}))
    if "message_pool" in sample or "call_pool" in sample:
        pools = {
            "messages": sample.pop("message_pool", None) or [],
            "calls": sample.pop("call_pool", None) or [],
        }
        sample.setdefault("events_data", pools)
    settle_sample(sample)
