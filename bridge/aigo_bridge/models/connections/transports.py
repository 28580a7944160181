"""Transports of one request and its response: HTTP, or the author's own code in worker processes."""

from __future__ import annotations

import ast
import base64
import binascii
import email.utils
import json
import math
import re
import ssl
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import anyio
import anyio.lowlevel
import httpx

from aigo_bridge.access.opening import MEBIBYTE, Bound, in_words
from aigo_bridge.errors import SnippetError
from aigo_bridge.models.connections.calls import CallError, FailureKind, unreadable
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits
from aigo_bridge.version import __version__

CONNECT_SECONDS = 30.0
"""Maximum seconds for opening a connection."""

READ_SECONDS = 600.0
"""Maximum seconds without data from an endpoint, before or within its answer."""

ANSWER = Bound("AIGO_BRIDGE_ANSWER_MIB", 16)
"""Maximum size of one decompressed answer. A model does not write longer texts, and all data is copied
several times.
"""

ERROR_PAGE = MEBIBYTE
"""Maximum number of bytes that are read from an error response."""

SILENCES = 6
"""Factor for the maximum duration of an answer: this many times `READ_SECONDS`, even if data keeps arriving.
"""

_CODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Accepted encodings of a response body → window bits of zlib."""

TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""

REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
"""Headers with an endpoint's request ID; the first one that exists is used."""


@dataclass(frozen=True)
class Response:
    """Response to a request."""

    text: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header names in lowercase."""
    server: str | None = None
    """Host, and port if the URL contains one; `None` for the author's code."""

    @property
    def request_id(self) -> str | None:
        """Request ID from the endpoint."""
        return next((self.headers[name] for name in REQUEST_IDS if name in self.headers), None)

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in TRANSIENT or self.status >= 500

    @property
    def retry_after(self) -> float | None:
        """Return the seconds that the endpoint asks to wait (`retry-after-ms`, or `Retry-After` in seconds or
        as a date); `None` if it names no time.
        """
        for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            if (value := self.headers.get(name)) is not None:
                seconds = _seconds(value)
                return None if seconds is None else seconds * scale
        return None


def _seconds(value: str) -> float | None:
    """Return seconds, or the seconds until a date; `None` for a negative number, infinity or a past date."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, ArithmeticError, OSError):
            return None
    return seconds if 0 <= seconds < math.inf else None


class Transport(Protocol):
    """Transport of a request body to a model and of its response."""

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Send one request.

        Raises:
            CallError: no response arrived.
        """
        ...

    async def aclose(self) -> None:
        """Close open connections and workers."""
        ...


@dataclass(frozen=True)
class TLS:
    """Settings for checking the server certificate and for sending a client certificate."""

    trusted_ca: str | None = None
    """PEM certificates of trusted authorities; `None`: the machine's trusted authorities."""
    verify: bool = True
    """Whether to verify the server certificate; `False` accepts any certificate."""
    client_cert: str | None = None
    """File with the client certificate, and with its private key unless `client_key` is set."""
    client_key: str | None = None
    """File with the private key."""

    def context(self) -> ssl.SSLContext:
        """Return the settings for connections.

        Raises:
            ValueError: a certificate cannot be used; the message names it.
        """
        try:
            context = ssl.create_default_context(cadata=self.trusted_ca)
        except (ssl.SSLError, ValueError) as error:
            raise ValueError("'trusted_ca' contains no PEM certificates") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert is not None:
            try:
                context.load_cert_chain(self.client_cert, self.client_key)
            except (OSError, ssl.SSLError) as error:
                raise ValueError(
                    f"client certificate {self.client_cert!r} cannot be used: {error}"
                ) from error
        return context


def pem_of(text: str) -> str:
    """Return PEM certificates from PEM or Base64 text.

    Raises:
        ValueError: the text is neither.
    """
    if "-----BEGIN" not in text:
        try:
            text = base64.b64decode("".join(text.split()), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError("expected certificates in PEM, or PEM in base64") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise ValueError("expected certificates in PEM, or PEM in base64")
    return text


class Endpoint:
    """Endpoint with one URL. Connections belong to the event loop that opened them."""

    def __init__(self, url: str, headers: Mapping[str, str], tls: TLS, *, read_seconds: float = READ_SECONDS):
        self.url = url
        ours = {"content-type": "application/json", "user-agent": f"aigo-bridge/{__version__}"}
        self._headers = {**ours, "accept-encoding": "gzip", **headers}
        self._tls = tls
        self._most_bytes = ANSWER.bytes
        self._most_seconds = SILENCES * read_seconds
        self._timeout = httpx.Timeout(read_seconds, connect=min(CONNECT_SECONDS, read_seconds), pool=None)
        # One client per connection: a client with many checks all of them for each request.
        self._free: list[httpx.AsyncClient] = []
        self._loop: object = None

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Send a body with POST."""
        if self._loop != (loop := anyio.lowlevel.current_token()):
            self._free, self._loop = [], loop
        free = self._free
        client = (
            free.pop()
            if free
            else httpx.AsyncClient(headers=self._headers, verify=self._verify, timeout=self._timeout)
        )
        try:
            with anyio.fail_after(self._most_seconds):
                async with client.stream("POST", self._parsed_url, content=body.encode()) as response:
                    headers = {name.lower(): value for name, value in response.headers.items()}
                    encoding = response.charset_encoding or "utf-8"
                    status = response.status_code
                    data = await self._read(response, Response("", status, headers))
        except httpx.TimeoutException as error:
            raise CallError(_timed_out(error, self._timeout), "transient") from error
        except TimeoutError as error:
            # A second request would most likely behave the same way, at eight times the cost.
            raise CallError(f"the answer had not ended after {self._most_seconds:g} s", "invalid") from error
        except httpx.ConnectError as error:
            raise _not_connected(error, f"cannot connect to {self._where}: {error}") from error
        except ssl.SSLError as error:
            # Since TLS 1.3, a server refuses a client certificate only after the connection is open. httpx
            # does not wrap this error.
            raise _not_connected(error, f"{self._where} ended the connection: {error}") from error
        except (httpx.HTTPError, OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            # For example, the server closed the connection before the response was complete.
            reason = str(error) or type(error).__name__
            raise CallError(f"the response was cut off: {reason}", "transient") from error
        finally:
            free.append(client)
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError) as error:
            raise CallError(
                unreadable(self._where, status, f"it is not text in {encoding}"), "transient"
            ) from error
        return Response(text, status, headers, self._where)

    async def _read(self, response: httpx.Response, head: Response) -> bytes:
        """Read the decompressed body up to the size limit, and stop there."""
        most = self._most_bytes if head.status < 400 else min(ERROR_PAGE, self._most_bytes)
        parts: list[bytes] = []
        size = 0
        unpacking = _Unpacking(head.headers.get("content-encoding", ""), most)
        async for part in response.aiter_raw():
            for piece in unpacking.pieces(part):
                size += len(piece)
                if size > most:
                    raise _too_long(head, most)
                parts.append(piece)
        unpacking.end()
        return b"".join(parts)

    @cached_property
    def _parsed_url(self) -> httpx.URL:
        return httpx.URL(self.url)

    @property
    def _where(self) -> str:
        url = self._parsed_url
        return f"{url.host}:{url.port}" if url.port else str(url.host)

    @cached_property
    def _verify(self) -> ssl.SSLContext | bool:
        # Loading the machine's authorities takes longer than a request.
        return self._tls.context() if self.url.startswith("https:") else False

    async def aclose(self) -> None:
        """Close the connections."""
        clients, self._free = self._free, []
        if self._loop == anyio.lowlevel.current_token():
            for client in clients:
                await client.aclose()


class _Unpacking:
    """Decompressor that returns at most `most` bytes at a time, because a megabyte can expand to a gigabyte.

    Raises:
        CallError: the encoding was not requested, or the body is compressed several times.
    """

    def __init__(self, coding: str, most: int):
        self._name = coding.strip().lower()
        self._most = most
        self._inflater: Any = None
        if self._name not in ("", "identity", *_CODINGS):
            raise CallError(
                f"the response is encoded in {coding[:100]!r}, which was not requested", "invalid"
            )

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """Yield the decompressed data of a part."""
        if self._name not in _CODINGS:
            yield part
            return
        try:
            while part:
                if self._inflater is None or self._inflater.eof:
                    self._inflater = zlib.decompressobj(_CODINGS[self._name])
                yield self._inflater.decompress(part, self._most + 1)
                part = self._inflater.unconsumed_tail or self._inflater.unused_data
        except zlib.error as error:
            raise CallError(
                f"the response is damaged: not valid {self._name}: {error}", "transient"
            ) from error

    def end(self) -> None:
        """Check that the compressed data is complete."""
        if self._inflater is not None and not self._inflater.eof:
            raise CallError("the response was truncated: its compressed body is incomplete", "transient")


def _too_long(head: Response, most: int) -> CallError:
    if head.status < 400:
        return CallError(
            f"the answer is longer than {in_words(most)}; the rest was not read", "invalid", hint=ANSWER.hint
        )
    message = f"the endpoint answered {head.status} with more than {in_words(most)}, which were not read"
    if not head.is_transient:
        return CallError(message, "refused")
    kind: FailureKind = "rate_limit" if head.status == 429 else "transient"
    return CallError(message, kind, retry_after=head.retry_after)


_WANTED_OF_US = re.compile(
    "ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE|ACCESS_DENIED)"
)
"""TLS alerts with which a server asks for a client certificate or a different one."""


def _not_connected(error: Exception, message: str) -> CallError:
    """Return the error of a failed connection. Only certificate errors are surely permanent."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        hint = "'tls_context.validation_context.trusted_ca' names an authority"
        return CallError(message, "refused", hint=hint)
    if _WANTED_OF_US.search(str(error)):
        return CallError(
            message, "refused", hint="the server requires a known client certificate: see 'client_cert'"
        )
    return CallError(message, "transient")


def _timed_out(error: httpx.TimeoutException, timeout: httpx.Timeout) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {timeout.connect:g} s"
    return f"the endpoint was silent for {timeout.read:g} s"


def header_value(value: str | float | bool) -> str:
    """Return a header value as text.

    Raises:
        ValueError: the value contains a character that headers cannot contain; the message does not show it.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    if not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError("contains a line break, outer whitespace or a non-ASCII character")
    return text


FUNCTION = "run_inference"

MOST_WORKERS = 8
"""Maximum concurrent calls if the model sets no limit; each call has its own worker process."""


def sample_argument(source: str) -> Literal["third", "named"] | None:
    """Return how `run_inference` takes the row: as its third argument, as `sample=`, or not at all."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == FUNCTION:
            arguments = node.args
            named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
            if len(named) > 2:
                return "third"
            if any(argument.arg == "sample" for argument in arguments.kwonlyargs):
                return "named"
    return None


class Inference:
    """Transport through the author's function. It mostly waits for the network, so each call has its own
    worker.
    """

    def __init__(
        self,
        source: str,
        label: str,
        environment: Mapping[str, Any],
        *,
        place: tuple[str, int] | None = None,
        seconds: float | None = None,
    ):
        self._snippet = Snippet(source, FUNCTION, label).at(place)
        self._environment = dict(environment)
        self._limits = (
            SnippetLimits(network=True) if seconds is None else SnippetLimits(seconds, network=True)
        )
        self._sample_argument = sample_argument(source)
        self._lock = threading.Lock()
        self._free: list[SnippetHost] = []

    @property
    def depends_on_sample(self) -> bool:
        """Whether the answer depends on more than the model input."""
        return self._sample_argument is not None

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Call the function and return its text as the response."""
        with self._lock:
            host = self._free.pop() if self._free else SnippetHost(self._limits)
        row = dict(sample or {})
        args = (row,) if self._sample_argument == "third" else ()
        named = {"sample": row} if self._sample_argument == "named" else {}
        try:
            text = await host.call(self._snippet, body, self._environment, *args, **named)
        except SnippetError as error:
            self._put_back(host)
            raise CallError(str(error), "invalid") from error
        # A worker whose call was abandoned is still busy and is not used again.
        self._put_back(host)
        if not isinstance(text, str):
            raise CallError(
                self._snippet.told(f"{FUNCTION} returned a {type(text).__name__}, expected text"),
                "invalid",
                hint="return json.dumps(…)",
            )
        return Response(text, 200)

    def _put_back(self, host: SnippetHost) -> None:
        with self._lock:
            self._free.append(host)

    async def aclose(self) -> None:
        """Stop the workers."""
        with self._lock:
            hosts, self._free = self._free, []
        for host in hosts:
            host.close()
