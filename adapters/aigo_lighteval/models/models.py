"""Models for the sample program, with limits, retries and a recording of every call.

A recording contains the messages sent and received, tokens, times, and the raw exchange.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.lowlevel import checkpoint

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    ModelResponse,
    TraceItem,
    make_explicit,
)
from aigo_bridge.engine.protocol import Retry
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.checkpoint import ASKER, CheckpointCall, asked_for
from aigo_bridge.execution.progress import ATTEMPTS, wait_after
from aigo_bridge.models.connections import (
    Exchange,
    MLTask,
)
from aigo_bridge.models.gate import passing, paused, waiting
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.process import steady_time
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.scoring.likelihoods import Likelihood, raw_output
from aigo_bridge.solving.conversation import input_item
from aigo_lighteval.models.callers import ConnectionCaller, make_caller
from aigo_lighteval.models.cassettes import CassetteCaller, call_recording, played_task, recorded
from aigo_lighteval.models.messages import (
    AttemptError,
    Caller,
    LikelihoodCaller,
    LoadingCaller,
    attempted,
    tokens_of,
)

Json = dict[str, Any]
TOKEN_COUNTS = ("num_prompt_tokens", "num_completion_tokens")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """Finished model call. It is converted to JSON only when it is saved."""

    model: str
    asked: Sequence[Any]
    """Input of the call: chat messages or trace items."""
    said: Sequence[TraceItem]
    """Output items; empty if the call failed."""
    started_at: float
    ended_at: float
    error: str | None
    """Error message; `None` if the call returned an answer."""
    tokens: tuple[int, int] | None
    """Input and output tokens; `None` if unknown."""
    exchange: Exchange | None

    def to_json(self) -> Json:
        """Return the call as stored in logs."""
        call: Json = {
            "model": self.model,
            "input": [dumped(_item(message)) for message in self.asked],
            "output": [dumped(item) for item in self.said],
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }
        if self.tokens is not None:
            call["usage"] = dict(zip(TOKEN_COUNTS, self.tokens, strict=True))
        if self.error is not None:
            call["error"] = self.error
        if self.exchange is not None:
            call["exchange"] = [self.exchange.request, self.exchange.response, self.exchange.status]
            if self.exchange.stop_reason is not None:
                call["stop_reason"] = self.exchange.stop_reason
        return call


@dataclass(slots=True)
class CallLog:
    """Recording of all model calls inside a `with` block."""

    name: str
    kind: str
    """Kind of work: `solver` or `scorer`."""
    token_limit: int | None = None
    """Maximum number of tokens; `None`: no limit."""
    started_at: float = field(default_factory=steady_time)
    ended_at: float | None = None
    calls: list[RecordedCall] = field(default_factory=list)
    tokens: int = 0
    _outer: Token[CallLog | None] | None = None

    def __enter__(self) -> Self:
        self._outer = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._outer is not None
        _CURRENT.reset(self._outer)
        self._outer = None
        self.ended_at = steady_time()

    def add(
        self,
        model: str,
        request: ModelRequest,
        started_at: float,
        outcome: ModelResponse | SampleError,
        tokens: tuple[int, int] | None,
        exchange: Exchange | None,
    ) -> None:
        """Add a finished call, with an answer or an error."""
        if tokens is not None:
            self.tokens += sum(tokens)
        sent = request.input.messages if request.items is None else request.items
        received: Sequence[TraceItem] = ()
        error = None
        if isinstance(outcome, SampleError):
            # Keep only the message, because an exception would keep all its stack frames in memory.
            error = outcome.message
        else:
            received = outcome.items
        self.calls.append(
            RecordedCall(model, sent, received, started_at, steady_time(), error, tokens, exchange)
        )

    def check_limit(self, stage: Stage) -> None:
        """Raise an error if the token limit is exceeded.

        Raises:
            SampleError: the sample used more tokens than allowed.
        """
        if self.token_limit is not None and self.tokens > self.token_limit:
            raise SampleError(
                f"the token limit ({self.token_limit}) of the sample was exceeded",
                stage=stage,
                kind="LimitExceeded",
            )

    def to_json(self) -> Json:
        """Return the recording as stored in logs."""
        return {
            "name": self.name,
            "kind": self.kind,
            "started_at": self.started_at,
            "ended_at": self.ended_at or steady_time(),
            "calls": [call.to_json() for call in self.calls],
        }


_CURRENT: ContextVar[CallLog | None] = ContextVar("recording", default=None)


def current() -> CallLog | None:
    """Return the current recording; `None` outside of a run."""
    return _CURRENT.get()


def _item(message: Any) -> Any:
    is_message = isinstance(message, ChatCompletionInputMessage | ChatCompletionOutputMessage)
    return input_item(message) if is_message else message


def dumped(value: Any) -> Json:
    """Return all fields of an AI GO object as JSON."""
    fields: Json = make_explicit(value).model_dump(mode="json")
    return fields


# Reading from logs


def tokens_used(recorded: CallLog | Mapping[str, Any]) -> list[tuple[str, tuple[int, int] | None]]:
    """Return the model and the input and output tokens of each call; `None` for an answer without counts."""
    if isinstance(recorded, CallLog):
        return [(call.model, call.tokens) for call in recorded.calls if call.tokens or call.error is None]
    return [
        (call["model"], tuple(call["usage"][name] for name in TOKEN_COUNTS) if "usage" in call else None)
        for call in recorded["calls"]
        if "usage" in call or "error" not in call
    ]


def direct_ios(recorded: Mapping[str, Any]) -> list[Json]:
    """Return the raw exchanges. The status is 0 if the call did not use HTTP."""
    ios: list[Json] = []
    for call in recorded["calls"]:
        if "exchange" in call:
            request, response, status = call["exchange"]
            ios.append(
                {
                    "direct_input": {"body": request},
                    "direct_output": {
                        "body": "null" if response is None else response,
                        "status_code": status or 0,
                    },
                }
            )
    return ios


def call_events(recorded: Mapping[str, Any], span_id: str) -> list[Json]:
    """Return the trace events of a recording: a span with one model call event per call."""
    begin, end = _time(recorded["started_at"]), _time(recorded["ended_at"])
    span: list[Json] = [
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
        if "stop_reason" in call:
            event["metadata"] = {"lighteval": {"stop_reason": call["stop_reason"]}}
        span.append(event | {name: call[name] for name in ("usage", "error") if name in call})
    span.append({"type": "span_end", "id": f"{span_id}:end", "span_id": span_id, "timestamp": end})
    return span


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


RETRIES: ContextVar[Callable[[Retry], None] | None] = ContextVar("retries", default=None)
"""Callback for every retry; `None`: no callback."""


ATTEMPT_SECONDS: ContextVar[int | None] = ContextVar("attempt_seconds", default=None)
"""Maximum seconds of one attempt; `None`: no limit except the client's own."""


_Called = tuple[Any, ModelResponse, tuple[int, int] | None, Exchange]
"""Result of a call for its caller, and the recorded parts: response, tokens and raw exchange."""


class HostedModel:
    """Model for the sample program. Objects are created per use and share the caller and its limit."""

    def __init__(self, key: str, caller: Caller, limiter: anyio.CapacityLimiter, stage: Stage = "solver"):
        self._key = key
        self._caller = caller
        self._limiter = limiter
        self._stage: Stage = stage

    @property
    def key(self) -> str:
        """Return the AI GO key; `""` for the evaluated model."""
        return self._key

    @property
    def name(self) -> str:
        """Return the model name as the user wrote it."""
        return self._caller.name

    @property
    def task(self) -> MLTask:
        """Return the task type of the model."""
        if isinstance(self._caller, CassetteCaller):
            return played_task(self._key)
        return (
            self._caller.connection.task if isinstance(self._caller, ConnectionCaller) else "chat_completion"
        )

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Call the model, with retries after transient failures.

        Raises:
            SampleError: the model does not support the request, or all attempts failed.
        """
        asker = ASKER.get()
        call = None if asker is None else asker.call(self._key, self.name, request)
        with call_recording(call, self._stage):
            response: ModelResponse = await self._called(request, partial(self._answer, call))
        return response

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str]
    ) -> tuple[Likelihood, ...]:
        """Return the likelihoods of texts after a request's prompt, with retries as in `predict`.

        Raises:
            SampleError: the model does not support the request or does not return likelihoods.
        """
        asker = ASKER.get()
        call = None if asker is None else asker.call(self._key, self.name, request, continuations)

        async def weigh(asked: ModelRequest) -> _Called:
            if not isinstance(self._caller, LikelihoodCaller):
                raise SampleError(
                    f"model {self.name!r} does not return likelihoods of given texts",
                    stage=self._stage,
                    kind="NoLikelihoods",
                )
            weighed, exchange = await recorded(
                call, self._caller.likelihoods(asked, continuations, self._stage)
            )
            return weighed, ModelResponse(raw_output=raw_output(weighed), items=[]), None, exchange

        with call_recording(call, self._stage):
            weighed: tuple[Likelihood, ...] = await self._called(request, weigh)
        return weighed

    async def _answer(self, call: CheckpointCall | None, request: ModelRequest) -> _Called:
        attempt = self._caller.attempt(request, self._stage)
        if not isinstance(self._caller, CassetteCaller):
            attempt = recorded(call, attempted(call, attempt))
        answer, exchange = await attempt
        if answer.reply.choices:
            exchange = replace(exchange, stop_reason=answer.reply.choices[0].finish_reason)
        response = answer.response()
        return response, response, tokens_of(answer.reply.usage), exchange

    async def _called(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[_Called]]) -> Any:
        """Make one kind of call within the limits, record it and return its result."""
        record = current()
        if record is not None:
            record.check_limit(self._stage)
        for attempt in range(1, ATTEMPTS + 1):
            wait = 0.0
            await _take_place(self._limiter)
            started = steady_time()
            try:
                async with passing(self.name, _own_limit(self._caller)):
                    with waiting(self.name, asked_for()):
                        result, response, tokens, exchange = await self._in_time(call(request))
            except AttemptError as failed:
                paused(self.name, failed.retry_after)
                is_last = not failed.is_transient or attempt == ATTEMPTS
                if record is not None:
                    exchange_kept = failed.exchange if is_last else None
                    record.add(self.name, request, started, failed.error, None, exchange_kept)
                if is_last:
                    raise failed.error from failed
                wait = wait_after(attempt, failed.retry_after)
                if (tell := RETRIES.get()) is not None:
                    tell(Retry(self.name, attempt, wait, redact(failed.error.message)))
            except anyio.get_cancelled_exc_class():
                # A limit has ended the sample. Evidence still includes the request.
                if record is not None:
                    record.add(self.name, request, started, _unanswered(self._stage), None, None)
                raise
            else:
                if record is not None:
                    record.add(self.name, request, started, response, tokens, exchange)
                    record.check_limit(self._stage)
                return result
            finally:
                self._limiter.release()
            await anyio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _in_time(self, attempt: Awaitable[_Called]) -> _Called:
        seconds = ATTEMPT_SECONDS.get()
        if seconds is None:
            return await attempt
        with anyio.move_on_after(seconds):
            return await attempt
        message = f"model {self.name!r}: no answer within {seconds} s (--attempt-timeout)"
        raise AttemptError(SampleError(message, stage=self._stage, kind="ModelError"), is_transient=True)


async def _take_place(limiter: anyio.CapacityLimiter) -> None:
    """Wait for a free slot of a limiter.

    `acquire` of anyio would hold the slot while other tasks run, and wake most of them up in vain.
    """
    await checkpoint()
    try:
        limiter.acquire_nowait()
    except anyio.WouldBlock:
        await limiter.acquire()


def _own_limit(caller: Caller) -> int | None:
    """Return the maximum number of concurrent calls in the model file; `None` if not set."""
    return caller.connection.max_concurrent if isinstance(caller, ConnectionCaller) else None


def _unanswered(stage: Stage) -> SampleError:
    return SampleError("the call was canceled before the model answered", stage=stage, kind="Cancelled")


def limiter(caller: Caller, most: int | None = None) -> anyio.CapacityLimiter:
    """Return a limiter with the caller's concurrency, reduced to `most` if given."""
    return anyio.CapacityLimiter(max(1, min(caller.max_concurrent, most or caller.max_concurrent)))


def load_caller(caller: Caller) -> None:
    """Load a caller's model if it runs in this process.

    Raises:
        UsageError: the model cannot be loaded.
    """
    if isinstance(caller, LoadingCaller):
        caller.load()


def single_model(name: str) -> HostedModel:
    """Return a model for calls outside a run.

    Raises:
        UsageError: the model does not exist.
    """
    caller = make_caller(name)
    load_caller(caller)
    return HostedModel(name, caller, limiter(caller))


class TaskModels:
    """Other models of a task, by AI GO key.

    Raises:
        SampleError: (when called) no model was given for the key.
    """

    def __init__(self, callers: Mapping[str, tuple[Caller, anyio.CapacityLimiter]], stage: Stage):
        self._callers = callers
        self._stage: Stage = stage

    def __call__(self, key: str) -> HostedModel:
        """Return the model with this key."""
        if key not in self._callers:
            raise SampleError(
                f"no model was given for {key!r}",
                stage=self._stage,
                hint=f"--model-map '{key}=PROVIDER/MODEL'",
                kind="MissingModel",
            )
        return HostedModel(key, *self._callers[key], self._stage)
