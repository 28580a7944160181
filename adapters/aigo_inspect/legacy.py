"""Log shapes of older Inspect versions, lifted to today's keys.

The same migrations that Inspect's own models do when they read such logs, on plain dictionaries, plus the one they
lack: version-3 pools (`message_pool`, `call_pool`; written by 0.3.195-0.3.199 on request), which Inspect reads
without an error and with every model input empty.
"""

from __future__ import annotations

from typing import Any

from .shapes import settle_header, settle_sample

_PLACEHOLDER = "scorer"
"""What a score is called whose scorer the log does not name."""


STATUS_UNKNOWN = "unknown"
"""The status of a log that had one, in a part that is damaged."""


def lift_header(header: dict[str, Any]) -> dict[str, Any]:
    """Bring an old header to today's keys, in place; the keys `status`, `eval` and `stats` exist afterwards."""
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
