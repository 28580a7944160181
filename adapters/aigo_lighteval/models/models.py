"""A model as the sample program sees it: limited, called again after failures, every call recorded.

Of a call is kept what was sent and received, tokens, times and the raw exchange.
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
from aigo_bridge.execution.journal import ASKER, Call, asked_for
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
from aigo_lighteval.models.calling import ConnectionCaller, make_caller
from aigo_lighteval.models.cassettes import CassetteCaller, played_task, recorded, taped
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
class Recording:
    """The calls of one piece of work: those that are made inside of a `with` statement."""

    name: str
    kind: str
    """`solver` or `scorer`."""
    token_limit: int | None = None
    """Tokens that may be used; `None`: no limit."""
    started_at: float = field(default_factory=steady_time)
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
        """One call has ended, with an answer or without."""
        if tokens is not None:
            self.tokens += sum(tokens)
        sent = request.input.messages if request.items is None else request.items
        received: Sequence[TraceItem] = ()
        error = None
        if isinstance(outcome, SampleError):
            # Of an exception the text alone: it would keep all frames that it came through.
            error = outcome.message
        else:
            received = outcome.items
        self.calls.append(
            RecordedCall(model, sent, received, started_at, steady_time(), error, tokens, exchange)
        )

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
            "ended_at": self.ended_at or steady_time(),
            "calls": [call.to_json() for call in self.calls],
        }


_CURRENT: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current() -> Recording | None:
    """The recording that calls belong to; `None` outside of a run."""
    return _CURRENT.get()


def _item(message: Any) -> Any:
    is_message = isinstance(message, ChatCompletionInputMessage | ChatCompletionOutputMessage)
    return input_item(message) if is_message else message


def dumped(value: Any) -> Json:
    """A value of AI GO's types, complete."""
    fields: Json = make_explicit(value).model_dump(mode="json")
    return fields


# Back from the log


def tokens_used(recorded: Recording | Mapping[str, Any]) -> list[tuple[str, tuple[int, int] | None]]:
    """Return the model and the input and output tokens of each call; `None` for an answer without counts."""
    if isinstance(recorded, Recording):
        return [(call.model, call.tokens) for call in recorded.calls if call.tokens or call.error is None]
    return [
        (call["model"], tuple(call["usage"][name] for name in TOKEN_COUNTS) if "usage" in call else None)
        for call in recorded["calls"]
        if "usage" in call or "error" not in call
    ]


def direct_ios(recorded: Mapping[str, Any]) -> list[Json]:
    """Raw exchanges; the status is 0 where no HTTP was spoken."""
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
    """A span with a model call event for each call, as the events of a trace."""
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
"""Who is told of calls that will be made again; `None`: nobody."""


ATTEMPT_SECONDS: ContextVar[int | None] = ContextVar("attempt_seconds", default=None)
"""Seconds that one attempt at a call may take; `None`: as long as the model's client waits."""


_Called = tuple[Any, ModelResponse, tuple[int, int] | None, Exchange]
"""What a call gives its caller, and what is kept of it: response, tokens, raw exchange."""


class HostedModel:
    """A model as the sample program sees it; made per use, the caller and its limit are shared."""

    def __init__(self, key: str, caller: Caller, limiter: anyio.CapacityLimiter, stage: Stage = "solver"):
        self._key = key
        self._caller = caller
        self._limiter = limiter
        self._stage: Stage = stage

    @property
    def key(self) -> str:
        """AI GO key; `""` for the evaluated model."""
        return self._key

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self._caller.name

    @property
    def task(self) -> MLTask:
        """What the model is for."""
        if isinstance(self._caller, CassetteCaller):
            return played_task(self._key)
        return (
            self._caller.connection.task if isinstance(self._caller, ConnectionCaller) else "chat_completion"
        )

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """Call the model; again, as long as its failures are transient.

        Raises:
            SampleError: the request has no form for the model, or there was no answer.
        """
        asker = ASKER.get()
        call = None if asker is None else asker.call(self._key, self.name, request)
        with taped(call, self._stage):
            response: ModelResponse = await self._called(request, partial(self._answer, call))
        return response

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str]
    ) -> tuple[Likelihood, ...]:
        """How likely the model finds texts behind a request's prompt; tried again as `predict` does.

        Raises:
            SampleError: the request has no form for the model, or it tells no likelihoods.
        """
        asker = ASKER.get()
        call = None if asker is None else asker.call(self._key, self.name, request, continuations)

        async def weigh(asked: ModelRequest) -> _Called:
            if not isinstance(self._caller, LikelihoodCaller):
                raise SampleError(
                    f"model {self.name!r} tells no likelihoods of given texts",
                    stage=self._stage,
                    kind="NoLikelihoods",
                )
            weighed, exchange = await recorded(
                call, self._caller.likelihoods(asked, continuations, self._stage)
            )
            return weighed, ModelResponse(raw_output=raw_output(weighed), items=[]), None, exchange

        with taped(call, self._stage):
            weighed: tuple[Likelihood, ...] = await self._called(request, weigh)
        return weighed

    async def _answer(self, call: Call | None, request: ModelRequest) -> _Called:
        attempt = self._caller.attempt(request, self._stage)
        if not isinstance(self._caller, CassetteCaller):
            attempt = recorded(call, attempted(call, attempt))
        answer, exchange = await attempt
        if answer.reply.choices:
            exchange = replace(exchange, stop_reason=answer.reply.choices[0].finish_reason)
        response = answer.response()
        return response, response, tokens_of(answer.reply.usage), exchange

    async def _called(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[_Called]]) -> Any:
        """What one kind of call gives, kept in the recording, within the limits."""
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
                # A limit has ended the sample: what was asked is evidence, too.
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
    """Wait for one of a limiter's places.

    Its own `acquire` holds the place while others have their turn, so that most of them would have to be
    woken up again.
    """
    await checkpoint()
    try:
        limiter.acquire_nowait()
    except anyio.WouldBlock:
        await limiter.acquire()


def _own_limit(caller: Caller) -> int | None:
    """Calls at a time that a model's file allows; `None`: it does not say."""
    return caller.connection.max_concurrent if isinstance(caller, ConnectionCaller) else None


def _unanswered(stage: Stage) -> SampleError:
    return SampleError("the call was cancelled before there was an answer", stage=stage, kind="Cancelled")


def limiter(caller: Caller, most: int | None = None) -> anyio.CapacityLimiter:
    """The places of a model: calls at a time, `most` at most."""
    return anyio.CapacityLimiter(max(1, min(caller.max_concurrent, most or caller.max_concurrent)))


def load_caller(caller: Caller) -> None:
    """Load the model behind a caller, where it is one that runs in this process.

    Raises:
        UsageError: it cannot be loaded.
    """
    if isinstance(caller, LoadingCaller):
        caller.load()


def single_model(name: str) -> HostedModel:
    """A model for calls outside a run.

    Raises:
        UsageError: there is no such model.
    """
    caller = make_caller(name)
    load_caller(caller)
    return HostedModel(name, caller, limiter(caller))


class Models:
    """The other models of a task, by AI GO key.

    Raises:
        SampleError: (when called) no model was given for the key.
    """

    def __init__(self, callers: Mapping[str, tuple[Caller, anyio.CapacityLimiter]], stage: Stage):
        self._callers = callers
        self._stage: Stage = stage

    def __call__(self, key: str) -> HostedModel:
        """The model behind a key."""
        if key not in self._callers:
            raise SampleError(
                f"no model was given for {key!r}",
                stage=self._stage,
                hint=f"--model-map '{key}=PROVIDER/MODEL'",
                kind="MissingModel",
            )
        return HostedModel(key, *self._callers[key], self._stage)
