"""The HTTP side of a model: one request, one response, whichever way it comes."""

from __future__ import annotations

import base64
import binascii
import email.utils
import json
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio.lowlevel
import httpx

from aigo_bridge import __version__
from aigo_bridge.connections.failures import CallError

CONNECT_SECONDS = 30.0
"""Time for a connection to be made."""

READ_SECONDS = 600.0
"""Time that an endpoint may be silent, before its answer or in the middle of it."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of a response that are accepted."""

TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which the same request may succeed."""

REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
"""Headers in which endpoints name an exchange, the first one that is there counts."""


@dataclass(frozen=True)
class Response:
    """What came back."""

    text: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""

    @property
    def request_id(self) -> str | None:
        """The endpoint's name of the exchange."""
        return next((self.headers[name] for name in REQUEST_IDS if name in self.headers), None)

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status in TRANSIENT or self.status >= 500

    @property
    def retry_after(self) -> float | None:
        """Seconds that the endpoint asks to wait (`retry-after-ms`, or `Retry-After` in seconds or as a date)."""
        for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
            try:
                return max(0.0, float(self.headers.get(name, "")) * scale)
            except ValueError:
                continue
        date = self.headers.get("retry-after")
        try:
            return None if date is None else max(0.0, _seconds(date) - time.time())
        except (ValueError, TypeError):
            return None


def _seconds(date: str) -> float:
    return email.utils.parsedate_to_datetime(date).timestamp()


class Transport(Protocol):
    """What carries a request body to a model and its response back."""

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Send one request.

        Raises:
            CallError: no response came.
        """
        ...

    async def aclose(self) -> None:
        """Give up what is held open."""
        ...


@dataclass(frozen=True)
class TLS:
    """How a server's certificate is checked, and ours shown."""

    trusted_ca: str | None = None
    """Certificates in PEM, of which one must vouch for the server; `None`: those that the machine trusts."""
    verify: bool = True
    """`False`: any certificate will do."""
    client_cert: str | None = None
    """File of our own certificate, with its key unless `client_key` names one."""
    client_key: str | None = None
    """File of its key."""

    def context(self) -> ssl.SSLContext:
        """Settings for connections.

        Raises:
            ValueError: the certificates cannot be used; the message says which.
        """
        try:
            context = ssl.create_default_context(cadata=self.trusted_ca)
        except (ssl.SSLError, ValueError) as error:
            raise ValueError("'trusted_ca' holds no certificates in PEM") from error
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
    """Certificates in PEM, given as such or in base64.

    Raises:
        ValueError: they are neither.
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
    """Posts to one address. Connections are kept for the event loop that they were made in."""

    def __init__(self, url: str, headers: Mapping[str, str], tls: TLS, *, read_seconds: float = READ_SECONDS):
        self.url = url
        ours = {"content-type": "application/json", "user-agent": f"aigo-bridge/{__version__}"}
        self._headers = {**ours, **headers}
        self._tls = tls
        self._timeout = httpx.Timeout(read_seconds, connect=min(CONNECT_SECONDS, read_seconds), pool=None)
        self._client: httpx.AsyncClient | None = None
        self._loop: object = None

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Post a body."""
        try:
            async with self._open().stream("POST", self.url, content=body.encode()) as response:
                data = await _read(response)
                headers = {name.lower(): value for name, value in response.headers.items()}
                encoding = response.charset_encoding or "utf-8"
                status = response.status_code
        except httpx.TimeoutException as error:
            raise CallError(_timed_out(error, self._timeout), "transient") from error
        except httpx.ConnectError as error:
            raise _not_connected(error, f"cannot connect to {self._where}: {error}") from error
        except ssl.SSLError as error:
            # Since TLS 1.3 a server refuses our certificate only after the connection stands. httpx lets this through as it is.
            raise _not_connected(error, f"{self._where} ended the connection: {error}") from error
        except (httpx.HTTPError, OSError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
            # Among them: the server closed the connection before its response was complete.
            told = str(error) or type(error).__name__
            raise CallError(f"the response was cut off: {told}", "transient") from error
        return Response(_decoded(data, encoding), status, headers)

    @property
    def _where(self) -> str:
        url = httpx.URL(self.url)
        return f"{url.host}:{url.port}" if url.port else str(url.host)

    def _open(self) -> httpx.AsyncClient:
        loop = anyio.lowlevel.current_token()
        if self._client is None or self._loop != loop:
            # How many requests there are at a time is decided elsewhere.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
            # Loading the machine's authorities takes longer than a request.
            verify = self._tls.context() if self.url.startswith("https:") else False
            self._client = httpx.AsyncClient(
                headers=self._headers, verify=verify, timeout=self._timeout, limits=limits
            )
            self._loop = loop
        return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None and self._loop == anyio.lowlevel.current_token():
            await client.aclose()


async def _read(response: httpx.Response) -> bytes:
    parts = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MOST_BYTES:
            raise CallError(f"the response is longer than {MOST_BYTES // 2**20} MiB", "invalid")
        parts.append(part)
    return b"".join(parts)


_WANTED_OF_US = re.compile(
    "ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE|ACCESS_DENIED)"
)
"""Alerts by which a server says that it wants a certificate, or another one."""


def _not_connected(error: Exception, message: str) -> CallError:
    """Certificates do not become right by trying again; everything else may."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        hint = "'tls_context.validation_context.trusted_ca' names an authority"
        return CallError(message, "refused", hint=hint)
    if _WANTED_OF_US.search(str(error)):
        return CallError(
            message, "refused", hint="the server wants a client certificate that it knows: see 'client_cert'"
        )
    return CallError(message, "transient")


def _decoded(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise CallError(f"the response is not text in {encoding}", "invalid") from error


def _timed_out(error: httpx.TimeoutException, timeout: httpx.Timeout) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {timeout.connect:g} s"
    return f"the endpoint was silent for {timeout.read:g} s"


def header_value(value: str | float | bool) -> str:
    """A header's value as text.

    Raises:
        ValueError: it has a character that no header can carry; the message does not show it.
    """
    text = value if isinstance(value, str) else json.dumps(value)
    if not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError("has a line break, a blank at an end, or a character outside of ASCII")
    return text
