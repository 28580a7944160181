"""What is kept of model calls while a sample is solved or scored: raw exchanges, tokens, times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from aigo_bridge.connections import Exchange
from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    ModelResponse,
    TraceItem,
    make_explicit,
)
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_bridge.solving.conversation import input_item

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call that has ended; it becomes JSON only where it is kept."""

    model: str
    asked: Sequence[Any]
    """What was sent: chat messages, or items of a trace."""
    said: Sequence[TraceItem]
    """What came back; nothing when the call failed."""
    started_at: float
    ended_at: float
    error: str | None
    """Why there was no answer; `None` when there was one."""
    tokens: tuple[int, int] | None
    """Read and written; `None` when unknown."""
    exchange: Exchange | None

    def to_json(self) -> Json:
        """As kept in logs."""
        call: Json = {
            "model": self.model,
            "input": [dumped(_item(asked)) for asked in self.asked],
            "output": [dumped(item) for item in self.said],
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }
        if self.tokens is not None:
            call["usage"] = dict(
                zip(("num_prompt_tokens", "num_completion_tokens"), self.tokens, strict=True)
            )
        if self.error is not None:
            call["error"] = self.error
        if self.exchange is not None:
            call["exchange"] = [self.exchange.request, self.exchange.response, self.exchange.status]
        return call


@dataclass(slots=True)
class Recording:
    """The calls of one piece of work: those that are made inside of a `with` statement."""

    name: str
    kind: str
    """`solver` or `scorer`."""
    token_limit: int | None = None
    """Tokens that may be used; `None`: no limit."""
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None
    calls: list[RecordedCall] = field(default_factory=list)
    tokens: int = 0
    _outer: Token[Recording | None] | None = None

    def __enter__(self) -> Self:
        self._outer = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._outer is not None
        _CURRENT.reset(self._outer)
        self._outer = None
        self.ended_at = time.time()

    def add(
        self,
        model: str,
        request: ModelRequest,
        started_at: float,
        outcome: ModelResponse | SampleError,
        tokens: tuple[int, int] | None,
        exchange: Exchange | None,
    ) -> None:
        """One call has ended, with an answer or without."""
        if tokens is not None:
            self.tokens += sum(tokens)
        asked = request.input.messages if request.items is None else request.items
        said: Sequence[TraceItem] = ()
        error = None
        if isinstance(outcome, SampleError):
            # Of an exception the text alone: it would keep all frames that it came through.
            error = outcome.message
        else:
            said = outcome.items
        self.calls.append(RecordedCall(model, asked, said, started_at, time.time(), error, tokens, exchange))

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
            "calls": [call.to_json() for call in self.calls],
        }


_CURRENT: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current() -> Recording | None:
    """The recording that calls belong to; `None` outside of a run."""
    return _CURRENT.get()


def _item(asked: Any) -> Any:
    is_message = isinstance(asked, ChatCompletionInputMessage | ChatCompletionOutputMessage)
    return input_item(asked) if is_message else asked


def dumped(value: Any) -> Json:
    """A value of AI GO's types, complete."""
    found: Json = make_explicit(value).model_dump(mode="json")
    return found


# Back from the log


def tokens_used(recorded: Recording | Mapping[str, Any]) -> list[tuple[str, tuple[int, int]]]:
    """Models that were called, with the tokens that they read and wrote; calls of which that is not known are left out."""
    if isinstance(recorded, Recording):
        return [(call.model, call.tokens) for call in recorded.calls if call.tokens is not None]
    return [
        (call["model"], (call["usage"]["num_prompt_tokens"], call["usage"]["num_completion_tokens"]))
        for call in recorded["calls"]
        if "usage" in call
    ]


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
