"""A model that can be called: adapter, transport, limits, and what must not be shown."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aigo_bridge.models.connections.calls import (
    HINT,
    Adapter,
    CallError,
    CallInput,
    Exchange,
    FailureKind,
    ModelInfo,
    page_message,
    parse_json,
    unreadable,
)
from aigo_bridge.models.connections.replies import Reply, parse_reply
from aigo_bridge.models.connections.secrets import Mask
from aigo_bridge.models.connections.shipped import response_text
from aigo_bridge.models.connections.streaming import is_cut_off, joined_texts, stream_error, stream_of, tokens
from aigo_bridge.models.connections.transports import Response, Transport
from aigo_bridge.redaction.secrets import MASK
from aigo_bridge.spec.base import MLTask

WINDOW = 60.0
"""Seconds in which at most so many requests start."""


class Pace:
    """At most so many starts in any window of a minute, whichever event loops and threads they come from.

    A start is reserved at once and waited for by the caller; one that is given up is not given back, so the
    limit is never exceeded.
    """

    def __init__(self, per_minute: int):
        self.per_minute = per_minute
        self._lock = threading.Lock()
        self._starts: deque[float] = deque(maxlen=per_minute)

    def reserve(self, now: float | None = None) -> float:
        """Seconds to wait before the next request may start.

        Args:
            now: monotonic time in seconds; `None`: read from the clock.
        """
        now = time.monotonic() if now is None else now
        with self._lock:
            full = len(self._starts) == self.per_minute
            start = max(now, self._starts[0] + WINDOW) if full else now
            self._starts.append(start)
        return start - now


_PACES: dict[str, Pace] = {}
_LOCK = threading.Lock()


def shared_pace(name: str, per_minute: int) -> Pace:
    """The pace of one endpoint: the same for everybody in this process who names it with the same limit."""
    with _LOCK:
        pace = _PACES.get(name)
        if pace is None or pace.per_minute != per_minute:
            pace = _PACES[name] = Pace(per_minute)
        return pace


_UNFORESEEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What an answer may lead to that has a number, a list or nothing in a place where nobody thought of it."""

MOST_TOLD = 500
"""Characters of an unforeseen error that are told."""

SHOWN = 200
"""Characters of an answer that cannot be read which its error shows."""

MASKED_PIECES = f"{MASK} (the response contained a split or encoded secret)"
"""Stands for a response of which the answer was made that a secret had to be taken out of."""


@dataclass(frozen=True)
class Answered:
    """A call that gave an answer."""

    reply: Reply
    exchange: Exchange
    headers: Mapping[str, str]
    """Headers of the response, names in lower case, secrets taken out."""


@dataclass(frozen=True)
class Connection:
    """A model entity, ready to be called."""

    key: str
    """AI GO key of the model."""
    display_name: str
    info: ModelInfo
    adapter: Adapter
    transport: Transport = field(repr=False)
    mask: Mask = field(repr=False)
    digest: str = ""
    """Changes with everything that may change an answer, and with no secret."""
    rate_limit: int | None = None
    """Requests per minute; `None`: no limit."""
    max_concurrent: int | None = None
    """Requests at a time; `None`: no limit of its own."""
    depends_on_sample: bool = False
    """Whether equal inputs may have different answers for different rows."""

    @property
    def task(self) -> MLTask:
        """What the model is for."""
        return self.info.task

    @property
    def takes_options(self) -> bool:
        """Whether generation options reach the endpoint."""
        return self.adapter.takes_options

    async def call(self, call: CallInput) -> Answered:
        """Call the model once: no limit is applied and nothing is tried again.

        Raises:
            CallError: there is no answer; secrets are taken out of its message and of its exchange.
        """
        # `from None` everywhere: engines log what an error came from, and that may hold a secret.
        self._check(call)
        try:
            body = self.adapter.request(call, self.info)
        except (CallError, ValueError) as error:
            raise self._failed(error, None) from None
        try:
            body.encode()
        except UnicodeEncodeError:
            problem = CallError(
                "the request contains half of a surrogate pair, which is not valid text", "invalid"
            )
            raise self._failed(problem, None) from None
        exchange = Exchange(self.mask(body))
        try:
            response = await self.transport.send(body, call.sample)
        except CallError as error:
            raise self._failed(error, exchange) from None
        # From here on nothing knows a secret, whatever the endpoint repeats.
        response = replace(response, text=self.mask(response.text))
        request_id = response.request_id and self.mask(response.request_id)
        shown = MASKED_PIECES if self._is_in_pieces(response) else response.text
        exchange = replace(exchange, response=shown, status=response.status, request_id=request_id)
        try:
            reply = self._read(response, call)
        except CallError as error:
            raise self._failed(error, exchange) from None
        except _UNFORESEEN as error:
            message = f"its answer cannot be read: {type(error).__name__}: {error}"[:MOST_TOLD]
            raise self._failed(CallError(message, "invalid"), exchange) from None
        headers = {name: self.mask(value) for name, value in response.headers.items()}
        clean = self.mask.value(reply)
        if clean is not reply or shown is MASKED_PIECES:
            # The answer came in pieces, or its adapter has decoded it: what went over the wire shows no piece
            # either.
            clean = _without_tokens(clean)
            exchange = replace(exchange, response=MASKED_PIECES)
        return Answered(clean, exchange, headers)

    async def aclose(self) -> None:
        """Give up what is held open."""
        await self.transport.aclose()

    def _is_in_pieces(self, response: Response) -> bool:
        """Whether the pieces of a stream, or the tokens of an answer, make up a secret."""
        stream = stream_of(response.text)
        joined = [tokens(response.text)] if stream is None else joined_texts(stream)
        return any(self.mask(text) != text for text in joined)

    def _check(self, call: CallInput) -> None:
        if self.task == "embeddings" and not _is_texts(call.input):
            raise CallError(
                f"model {self.key!r} makes embeddings: expected a list of texts to embed", "invalid"
            )

    def _read(self, response: Response, call: CallInput) -> Reply:
        if response.is_transient:
            kind: FailureKind = "rate_limit" if response.status == 429 else "transient"
            raise CallError(_refusal(response), kind, retry_after=response.retry_after)
        if 300 <= response.status < 400:
            raise CallError(
                f"the endpoint answered {response.status}, a redirection, which is not followed",
                "refused",
                hint="write the address that it leads to as 'url'",
            )
        stream = (
            stream_of(response.text) if self.task == "chat_completion" and response.status < 300 else None
        )
        if stream is not None:
            if (problem := stream_error(stream)) is not None:
                raise CallError(f"the endpoint gave up in the middle of its answer: {problem}", "transient")
            if is_cut_off(stream):
                raise CallError("the stream ended before the answer did", "transient")
        try:
            value = self.adapter.answer(response.text, response.status, self.info)
            return parse_reply(value, self.task, len(call.input) if self.task == "embeddings" else None)
        except CallError as error:
            if response.status < 400:
                if error.kind == "invalid":
                    raise self._with_start(error, response) from error
                raise
            if page_message(response.text, response.status) is not None:
                raise CallError(_refusal(response), "refused") from error
            if error.kind == "refused" and response_text(response.text) in error.message:
                raise
            if error.kind == "refused":
                raise CallError(f"{error.message} ({_refusal(response)})", "refused") from error
            # The adapter was not made for errors; what the endpoint said is better than that it cannot be
            # read.
            raise CallError(_refusal(response), "refused") from error

    def _with_start(self, error: CallError, response: Response) -> CallError:
        """An answer that cannot be read, with its start; what is secret is masked before it is cut, so that
        no half of it stays.
        """
        page = page_message(self.mask(response.text), response.status)
        start = MASKED_PIECES if self._is_in_pieces(response) else self.mask(response.text).strip()
        shown = start if len(start) <= SHOWN else start[:SHOWN] + "…"
        began = f"the response begins {shown!r}" if shown else "the response is empty"
        if page is not None:
            return CallError(f"{page} ({began})", error.kind, hint=HINT)
        if response.server is not None and not _is_json(response.text):
            # Cut off, or of something between here and the server: the next answer may be whole.
            cause = f"{error} ({began})"
            return CallError(
                unreadable(response.server, response.status, cause), "transient", hint=error.hint
            )
        return CallError(f"{error} ({began})", error.kind, hint=error.hint)

    def _failed(self, error: CallError | ValueError, exchange: Exchange | None) -> CallError:
        message = self.mask(str(error))
        if not isinstance(error, CallError):
            return CallError(f"model {self.key!r}: {message}", "invalid", exchange=exchange)
        return CallError(
            f"model {self.key!r}: {message}",
            error.kind,
            hint=error.hint and self.mask(error.hint),
            retry_after=error.retry_after,
            exchange=exchange,
        )


def _without_tokens(reply: Reply) -> Reply:
    """An answer without its log probabilities: their tokens spell its text."""
    return replace(reply, choices=tuple(replace(choice, logprobs=()) for choice in reply.choices))


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _refusal(response: Response) -> str:
    page = page_message(response.text, response.status)
    if page is not None:
        return f"{page} ({HINT})"
    reason = response_text(response.text)
    return f"the endpoint answered {response.status}" + (f": {reason}" if reason else "")


def _is_texts(value: Any) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value)
    )
