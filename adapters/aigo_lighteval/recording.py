"""What is kept of model calls while a sample is solved or scored: raw exchanges, tokens, times."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aigo_bridge.connections import Exchange
from aigo_bridge.dtypes import ModelResponse, ModelUsage, make_explicit
from aigo_bridge.errors import SampleError, Stage

Json = dict[str, Any]


@dataclass
class Recording:
    """The calls of one piece of work, as they stand in the log."""

    name: str
    kind: str
    """`solver` or `scorer`."""
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    calls: list[Json] = field(default_factory=list)
    token_limit: int | None = None
    """Tokens that may be used; `None`: no limit."""
    tokens: int = 0

    def add(
        self,
        model: str,
        items: Sequence[Any],
        started_at: float,
        outcome: ModelResponse | SampleError,
        usage: ModelUsage | None,
        exchange: Exchange | None,
    ) -> None:
        """One call has ended, with an answer or without."""
        call: Json = {
            "model": model,
            "input": [dumped(item) for item in items],
            "output": [dumped(item) for item in outcome.items] if isinstance(outcome, ModelResponse) else [],
            "started_at": started_at,
            "ended_at": time.time(),
        }
        if usage is not None:
            call["usage"] = {
                "num_prompt_tokens": usage.num_prompt_tokens or 0,
                "num_completion_tokens": usage.num_completion_tokens or 0,
            }
            self.tokens += sum(call["usage"].values())
        if isinstance(outcome, SampleError):
            call["error"] = outcome.message
        if exchange is not None:
            call["exchange"] = [exchange.request, exchange.response, exchange.status]
        self.calls.append(call)

    def check_limit(self, stage: Stage) -> None:
        """Refuse to go on above the limit.

        Raises:
            SampleError: more tokens were used than allowed.
        """
        if self.token_limit is not None and self.tokens > self.token_limit:
            raise SampleError(
                f"the token limit ({self.token_limit}) of the sample was exceeded",
                stage=stage,
                kind="LimitExceeded",
            )

    def to_json(self) -> Json:
        """As kept in logs."""
        return {
            "name": self.name,
            "kind": self.kind,
            "started_at": self.started_at,
            "ended_at": self.ended_at or time.time(),
            "calls": self.calls,
        }


_CURRENT: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current() -> Recording | None:
    """The recording that calls belong to; `None` outside of a run."""
    return _CURRENT.get()


@contextmanager
def recording(name: str, kind: str, token_limit: int | None = None) -> Iterator[Recording]:
    """Keep the model calls made inside."""
    made = Recording(name, kind, token_limit=token_limit)
    token = _CURRENT.set(made)
    try:
        yield made
    finally:
        _CURRENT.reset(token)
        made.ended_at = time.time()


def dumped(value: Any) -> Json:
    """A value of AI GO's types, complete."""
    found: Json = make_explicit(value).model_dump(mode="json")
    return found


# Back from the log


def direct_ios(recorded: Mapping[str, Any]) -> list[Json]:
    """Raw exchanges; the status is 0 where no HTTP was spoken."""
    found: list[Json] = []
    for call in recorded["calls"]:
        if "exchange" in call:
            request, response, status = call["exchange"]
            found.append(
                {
                    "direct_input": {"body": request},
                    "direct_output": {
                        "body": "null" if response is None else response,
                        "status_code": status or 0,
                    },
                }
            )
    return found


def events(recorded: Mapping[str, Any], span_id: str) -> list[Json]:
    """A span with a model call event for each call, as the events of a trace."""
    begin, end = _time(recorded["started_at"]), _time(recorded["ended_at"])
    found: list[Json] = [
        {
            "type": "span_begin",
            "id": f"{span_id}:begin",
            "span_id": span_id,
            "timestamp": begin,
            "name": recorded["name"],
            "span_type": recorded["kind"],
        }
    ]
    for number, call in enumerate(recorded["calls"]):
        event = {
            "type": "model_call_event",
            "id": f"{span_id}:call:{number}",
            "span_id": span_id,
            "timestamp": _time(call["started_at"]),
            "model": call["model"],
            "input_context": call["input"],
            "output_items": call["output"],
            "tools": [],
            "total_time": max(0.0, call["ended_at"] - call["started_at"]),
        }
        found.append(event | {name: call[name] for name in ("usage", "error") if name in call})
    found.append({"type": "span_end", "id": f"{span_id}:end", "span_id": span_id, "timestamp": end})
    return found


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
