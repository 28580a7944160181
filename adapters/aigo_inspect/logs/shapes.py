"""What logs should look like, for logs that do not; and where our own data stands in them.

Fields of the wrong kind are set aside before anything reads them. Shapes of older Inspect versions are lifted
to today's keys: the same migrations that Inspect's own models do, on plain dictionaries, plus the one they
lack: version-3 pools (`message_pool`, `call_pool`; written by 0.3.195-0.3.199 on request), which Inspect
reads without an error and with every model input empty.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from msgspec import DecodeError

HEADER_KEY = "aigo_bridge"
"""Key of the task's (and so the log's) metadata that holds the plan."""

STORE_KEY = "aigo_bridge"
"""Key of the metadata of a sample's output that holds what our solver came to; of its store in older logs."""

SCORE_KEY = "aigo_bridge"
"""Key of a score's metadata that holds what Inspect's score has no place for."""

INDEX, FRAME, SAMPLES = "_aigo/index.json", "_aigo/frame.json", "_aigo/samples/"
"""Members of an archive with the evidence that it was written from: their checksums, the frame, the samples.
"""


MALFORMED = (
    AttributeError,
    DecodeError,  # a ValueError since msgspec 0.21
    IndexError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What code that reads a well-formed log raises at one that is not."""

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
    """Move fields of the wrong kind to `sample["malformed"]`, in place."""
    _settle(sample, _SAMPLE)
    pools = sample.get("events_data")
    _settle(pools, _POOLS)
    if isinstance(pools, dict) and isinstance(aside := pools.pop("malformed", None), dict):
        # Pools are put back into the events, and are not there afterwards.
        sample.setdefault("malformed", {})["events_data"] = aside


def settle_header(header: dict[str, Any]) -> None:
    """As `settle_sample`, for the header and its parts."""
    _settle(header, _HEADER)
    _settle(header.get("eval"), _EVAL)
    _settle(header.get("stats"), _STATS)
    _settle(header.get("results"), _RESULTS)
    plan = header.get("plan")
    _settle(plan, {"steps": list})


def set_aside(settled: Any) -> Counter[str]:
    """What was moved there in a sample, a header or a part of one: to be counted as changed."""
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
    """`value` if it is a finite number that a float can hold, otherwise `None`."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        # An integer of more than three hundred digits.
        return None


def listed(value: Any) -> list[Any]:
    """`value` as a list, an empty one for `None`; anything else is a `TypeError`, never taken for a list of
    its parts.
    """
    if value is None:
        return []
    if type(value) is not list:
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def count_of(value: Any) -> int | None:
    """`value` if it is a count (whole, not negative), otherwise `None`: an unknown count is not 0."""
    if type(value) is int:
        return value if value >= 0 else None
    if type(value) is float and value.is_integer() and 0 <= value < _EXACT:
        return int(value)
    return None


_EXACT = 2.0**53
"""Beyond, a float is not the number that was counted."""


# Shapes of older releases


_PLACEHOLDER = "scorer"
"""What a score is called whose scorer the log does not name."""


STATUS_UNKNOWN = "unknown"
"""The status of a log that had one, in a part that is damaged."""


def lift_header(header: dict[str, Any]) -> dict[str, Any]:
    """Bring an old header to today's keys, in place; `status`, `eval` and `stats` exist afterwards."""
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
        # Before 0.3.26 a log had one scorer, with its metrics beside it.
        scorer = results.pop("scorer") or {}
        metrics = results.pop("metrics", None) or {}
        if isinstance(scorer, dict):
            entry = {**scorer, "scorer": scorer.get("name", _PLACEHOLDER), "metrics": metrics}
            results.setdefault("scores", [entry])
    return header


def scorer_name(header: dict[str, Any]) -> str:
    """The name of the one scorer of an old log."""
    results = header.get("results")
    scores = results.get("scores") if isinstance(results, dict) else None
    if isinstance(scores, list) and scores and isinstance(scores[0], dict):
        return str(scores[0].get("name") or _PLACEHOLDER)
    return _PLACEHOLDER


def lift_sample(sample: dict[str, Any], header: dict[str, Any]) -> None:
    """Bring an old sample to today's keys, in place; fields of the wrong kind are set aside."""
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
