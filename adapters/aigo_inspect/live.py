"""Inspect's live objects → the dictionaries a log would hold; without importing Inspect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from aigo_bridge.importing.encoding import without_non_finite

from .parsing import parse_json


def as_sample(given: Any) -> dict[str, Any]:
    """An `EvalSample` object or dictionary, or a list of events, as a sample dictionary that the caller may change."""
    if isinstance(given, BaseModel):
        sample = _dump(given)
        return sample if isinstance(sample, dict) else {}
    if isinstance(given, dict):
        copied: dict[str, Any] = _copy(given)
        return copied
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return {"events": [_dump(event) if isinstance(event, BaseModel) else _copy(event) for event in given]}
    raise TypeError(f"expected a sample or a list of events, found {type(given).__name__}")


def _dump(model: BaseModel) -> Any:
    # Through JSON, as the log's writer does: what JSON cannot say becomes null there too.
    text = model.model_dump_json(exclude_none=True, fallback=_plain, warnings=False)
    parsed = parse_json(text.encode(), type(model).__name__)
    return _copy(parsed.value) if parsed.non_finite else parsed.value


def _copy(given: Any) -> Any:
    """A copy that holds no number for which JSON has no name: they are spelled out, as those of a log are."""
    return without_non_finite(given)[0]


def _plain(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None
