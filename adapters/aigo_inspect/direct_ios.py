"""Raw requests and responses of a sample's model calls, and whose they are: the solver's, or a scorer's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.importing.encoding import json_text

ROW_SPAN = "aigo_row"
"""Type of the span around one scorer's work on one row that a post-processor made; its name is the row's id."""


@dataclass
class DirectIOs:
    """Exchanges with model endpoints, in the order of the log."""

    solver: list[dict[str, Any]] = field(default_factory=list)
    scorers: dict[tuple[str, str | None], list[dict[str, Any]]] = field(default_factory=dict)
    """By scorer and row; the row is `None` for the sample itself."""


def direct_ios(events: Iterable[Any]) -> DirectIOs:
    """The exchanges of a sample; only those that the log holds (`log_model_api`)."""
    owners: dict[str, tuple[str, str | None] | None] = {}
    found = DirectIOs()
    for event in events:
        if not isinstance(event, dict):
            continue
        span = event.get("span_id")
        if event.get("event") == "span_begin":
            owner = owners.get(str(event.get("parent_id")))
            if event.get("type") == "scorer":
                owner = (str(event.get("name")), None)
            elif event.get("type") == ROW_SPAN and owner is not None:
                owner = (owner[0], str(event.get("name")))
            owners[str(event.get("id"))] = owner
        elif event.get("event") == "model" and (io := direct_io(event)) is not None:
            owner = owners.get(str(span))
            (found.solver if owner is None else found.scorers.setdefault(owner, [])).append(io)
    return found


def direct_io(call: Mapping[str, Any]) -> dict[str, Any] | None:
    """Raw request and response of a model call.

    AI GO wants a status code; it is 0 where the log does not tell which one the endpoint sent.
    """
    raw = call.get("call")
    if not isinstance(raw, dict):
        return None
    requests = call.get("request_ids")
    last = requests[-1] if isinstance(requests, list) and requests else None
    status = last.get("status") if isinstance(last, dict) else None
    return {
        "direct_input": {"body": json_text(raw.get("request"))},
        "direct_output": {
            "body": json_text(raw.get("response")),
            "status_code": status if isinstance(status, int) else 0,
        },
    }
