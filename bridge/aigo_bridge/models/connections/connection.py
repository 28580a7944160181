"""Callable models: adapter, transport, limits and the secrets to mask."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aigo_bridge.models.connections.adapters import response_text
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
from aigo_bridge.models.connections.streaming import is_cut_off, joined_texts, stream_error, stream_of, tokens
from aigo_bridge.models.connections.transports import Response, Transport
from aigo_bridge.redaction.secrets import MASK, redact, redact_value
from aigo_bridge.spec.base import MLTask

WINDOW = 60.0
"""Seconds of the window in which the number of starting requests is limited."""


class Pace:
    """Limit for the number of starts in any minute, across event loops and threads.

    A start is reserved immediately, and the caller waits for it. A start that the caller abandons stays
    reserved, so the limit is never exceeded.
    """

    def __init__(self, per_minute: int):
        self.per_minute = per_minute
        self._lock = threading.Lock()
        self._starts: deque[float] = deque(maxlen=per_minute)

    def reserve(self, now: float | None = None) -> float:
        """Return the seconds to wait before the next request may start. `now` is monotonic time."""
        now = time.monotonic() if now is None else now
        with self._lock:
            full = len(self._starts) == self.per_minute
            start = max(now, self._starts[0] + WINDOW) if full else now
            self._starts.append(start)
        return start - now


_PACES: dict[str, Pace] = {}
_LOCK = threading.Lock()


def shared_pace(name: str, per_minute: int) -> Pace:
    """Return the pace of an endpoint, shared by all callers with the same name and limit."""
    with _LOCK:
        pace = _PACES.get(name)
        if pace is None or pace.per_minute != per_minute:
            pace = _PACES[name] = Pace(per_minute)
        return pace


_UNFORESEEN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""Errors of an adapter or parser when an answer has an unexpected type, e.g. a number for a list."""

MOST_TOLD = 500
"""Maximum number of characters of an unforeseen error in a message."""

SHOWN = 200
"""Number of characters of an unreadable answer that the error message shows."""

MASKED_PIECES = f"{MASK} (the response contained a split or encoded secret)"
"""Text that replaces a response whose decoded answer contained a secret."""


@dataclass(frozen=True)
class CallResult:
    """Successful call."""

    reply: Reply
    exchange: Exchange
    headers: Mapping[str, str]
    """Response headers; names in lowercase, secrets removed."""


@dataclass(frozen=True)
class Connection:
    """Model entity that is ready to be called."""

    key: str
    """AI GO key of the model."""
    display_name: str
    info: ModelInfo
    adapter: Adapter
    transport: Transport = field(repr=False)
    digest: str = ""
    """Checksum of everything that may change an answer; contains no secret."""
    rate_limit: int | None = None
    """Maximum requests per minute; `None`: no limit."""
    max_concurrent: int | None = None
    """Maximum concurrent requests; `None`: no limit."""
    depends_on_sample: bool = False
    """Whether equal inputs may have different answers for different rows."""

    @property
    def task(self) -> MLTask:
        """ML task of the model."""
        return self.info.task

    @property
    def takes_options(self) -> bool:
        """Whether generation options reach the endpoint."""
        return self.adapter.takes_options

    async def call(self, call: CallInput) -> CallResult:
        """Call the model once. Limits and retries are up to the caller.

        Raises:
            CallError: the call failed; its message and exchange contain no secrets.
        """
        # `from None` everywhere: engines log the cause of an error, and the cause may contain a secret.
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
        exchange = Exchange(redact(body))
        try:
            response = await self.transport.send(body, call.sample)
        except CallError as error:
            raise self._failed(error, exchange) from None
        # From here on no variable contains a secret, even if the endpoint repeats one.
        response = replace(response, text=redact(response.text))
        request_id = response.request_id and redact(response.request_id)
        shown = MASKED_PIECES if self._is_in_pieces(response) else response.text
        exchange = replace(exchange, response=shown, status=response.status, request_id=request_id)
        try:
            reply = self._read(response, call)
        except CallError as error:
            raise self._failed(error, exchange) from None
        except _UNFORESEEN as error:
            message = f"its answer cannot be read: {type(error).__name__}: {error}"[:MOST_TOLD]
            raise self._failed(CallError(message, "invalid"), exchange) from None
        headers = {name: redact(value) for name, value in response.headers.items()}
        clean = redact_value(reply)
        if clean is not reply or shown is MASKED_PIECES:
            # The answer arrived in pieces, or its adapter decoded it. Therefore the exchange must not show
            # the pieces.
            clean = _without_tokens(clean)
            exchange = replace(exchange, response=MASKED_PIECES)
        return CallResult(clean, exchange, headers)

    async def aclose(self) -> None:
        """Close open connections and workers."""
        await self.transport.aclose()

    def _is_in_pieces(self, response: Response) -> bool:
        """Return whether the joined pieces of a stream, or the tokens of an answer, contain a secret."""
        stream = stream_of(response.text)
        joined = [tokens(response.text)] if stream is None else joined_texts(stream)
        return any(redact(text) != text for text in joined)

    def _check(self, call: CallInput) -> None:
        if self.task == "embeddings" and not _is_texts(call.input):
            raise CallError(
                f"model {self.key!r} creates embeddings: expected a list of texts to embed", "invalid"
            )

    def _read(self, response: Response, call: CallInput) -> Reply:
        if response.is_transient:
            kind: FailureKind = "rate_limit" if response.status == 429 else "transient"
            raise CallError(_refusal(response), kind, retry_after=response.retry_after)
        if 300 <= response.status < 400:
            raise CallError(
                f"the endpoint answered {response.status}, a redirection, which is not followed",
                "refused",
                hint="write its target address as 'url'",
            )
        stream = (
            stream_of(response.text) if self.task == "chat_completion" and response.status < 300 else None
        )
        if stream is not None:
            if (problem := stream_error(stream)) is not None:
                raise CallError(f"the endpoint stopped in the middle of its answer: {problem}", "transient")
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
            # The adapter was not written for errors. The endpoint's own message is more useful than a parse
            # error.
            raise CallError(_refusal(response), "refused") from error

    def _with_start(self, error: CallError, response: Response) -> CallError:
        """Return the error of an unreadable answer with the start of the answer. Secrets are masked before
        truncation, so that half a secret never remains.
        """
        page = page_message(redact(response.text), response.status)
        start = MASKED_PIECES if self._is_in_pieces(response) else redact(response.text).strip()
        shown = start if len(start) <= SHOWN else start[:SHOWN] + "…"
        began = f"the response begins {shown!r}" if shown else "the response is empty"
        if page is not None:
            return CallError(f"{page} ({began})", error.kind, hint=HINT)
        if response.server is not None and not _is_json(response.text):
            # Possibly truncated, or sent by a proxy: the next answer may be complete.
            cause = f"{error} ({began})"
            return CallError(
                unreadable(response.server, response.status, cause), "transient", hint=error.hint
            )
        return CallError(f"{error} ({began})", error.kind, hint=error.hint)

    def _failed(self, error: CallError | ValueError, exchange: Exchange | None) -> CallError:
        message = redact(str(error))
        if not isinstance(error, CallError):
            return CallError(f"model {self.key!r}: {message}", "invalid", exchange=exchange)
        return CallError(
            f"model {self.key!r}: {message}",
            error.kind,
            hint=error.hint and redact(error.hint),
            retry_after=error.retry_after,
            exchange=exchange,
        )


def _without_tokens(reply: Reply) -> Reply:
    """Return an answer without log probabilities, because their tokens spell its text."""
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
