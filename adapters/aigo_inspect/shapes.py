"""What logs should look like, for logs that do not: fields of the wrong kind are set aside before anything reads them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

MALFORMED = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
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
    """`value` as a list, an empty one for `None`; anything else is a `TypeError`, never taken for a list of its parts."""
    if value is None:
        return []
    if type(value) is not list:
        raise TypeError(f"expected a list, found {type(value).__name__}")
    return value


def count_of(value: Any) -> int | None:
    """`value` if it is a count (a whole number, not negative), otherwise `None`: an unknown count is not 0."""
    if type(value) is int:
        return value if value >= 0 else None
    if type(value) is float and value.is_integer() and 0 <= value < _EXACT:
        return int(value)
    return None


_EXACT = 2.0**53
"""Beyond, a float is not the number that was counted."""
