"""One address in front of several servers of a model: each call goes to the least busy of them.

Engines' clients know one address of a model. Behind it calls are counted, wherever in a cluster they come
from: a server that cannot be reached is left out, its calls go to the others, and it is tried again later.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from aigo_bridge.redaction.secrets import KNOWN, address_secrets, redact

FIRST_WAIT = 1.0
"""Seconds that a server is left out when it fails; twice as long each time that it fails again."""

LONGEST_WAIT = 30.0

CONNECT_SECONDS = 5.0
"""That a server may take to be reached; its answer may take any time, which is the engine's to limit."""

_AWAY = frozenset({502, 503, 504})
"""Statuses of a server, or of what stands before it, that has no answer now."""

_OF_A_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host"}
)
"""Headers that are not passed on."""


@dataclass(eq=False)
class Server:
    """One of the servers."""

    url: str
    """Base URL, such as `http://gpu-1:8000/v1`."""
    calls: int = 0
    """That it has now."""
    served: int = 0
    """That it has had."""
    failures: int = 0
    """In a row."""
    until: float = 0.0
    """Monotonic seconds until which it is left out."""
    problem: str = ""
    """Its last failure."""


class Servers:
    """The servers of a model, and what each has to do; used from many threads.

    Args:
        urls: their base URLs.
    """

    def __init__(self, urls: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._servers: dict[str, Server] = {}
        self.replace(urls)

    def replace(self, urls: Iterable[str]) -> None:
        """These are the servers from now on; what is known of those that stay is kept."""
        with self._lock:
            self._servers = {url: self._servers.get(url) or Server(url) for url in dict.fromkeys(urls)}

    def take(self, tried: Sequence[Server] = ()) -> Server | None:
        """The least busy one of those that answer; `None`: there is none beside those that were tried."""
        now = time.monotonic()
        with self._lock:
            candidates = [
                server
                for server in self._servers.values()
                if server.until <= now and all(server is not other for other in tried)
            ]
            if not candidates:
                return None
            server = min(candidates, key=lambda one: (one.calls, one.served))
            server.calls += 1
            server.served += 1
            if server.failures:
                # One call tries whether it is back, and the others do not wait for what becomes of that.
                server.until = now + _wait(server.failures)
            return server

    def free(self, server: Server, problem: str | None = None) -> None:
        """A call has ended; `problem`: the server has not answered."""
        with self._lock:
            server.calls -= 1
            if problem is None:
                server.failures, server.until = 0, 0.0
            else:
                server.failures += 1
                server.until = time.monotonic() + _wait(server.failures)
                server.problem = problem

    def next_try(self) -> float:
        """Seconds until a server that is left out is tried again."""
        with self._lock:
            soonest = min((server.until for server in self._servers.values()), default=math.inf)
        return min(LONGEST_WAIT, max(0.0, soonest - time.monotonic()))

    def state(self) -> list[Server]:
        """All of them."""
        with self._lock:
            return list(self._servers.values())


def _wait(failures: int) -> float:
    return float(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 10)))


@contextmanager
def balanced(servers: Servers, host: str = "127.0.0.1", *, is_direct: bool = False) -> Iterator[str]:
    """Answer calls at one address as long as the block lasts; its base URL.

    Args:
        servers: that calls go to.
        host: address of this machine, by which callers reach it.
        is_direct: whether the servers are reached past the proxies that the environment names.

    Raises:
        OSError: there is no port.
    """
    for server in servers.state():
        KNOWN.learn(address_secrets(server.url))
    client = httpx.Client(
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=1000),
        follow_redirects=False,
        trust_env=not is_direct,
    )
    front = _Front((host, 0), servers, client)
    thread = threading.Thread(target=front.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{front.server_address[1]}/v1"
    finally:
        front.shutdown()
        front.server_close()
        client.close()


class _Front(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1024

    def __init__(self, address: tuple[str, int], servers: Servers, client: httpx.Client) -> None:
        super().__init__(address, _Handler)
        self.servers, self.client = servers, client

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that has given up is no mistake."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are written apart: the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True
    server: _Front

    def do_GET(self) -> None:
        """Pass a call on."""
        self._pass_on()

    def do_POST(self) -> None:
        """Pass a call on."""
        self._pass_on()

    def _pass_on(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.close_connection = True
            self._refuse(411, "expected a request with its length")
            return
        body = self.rfile.read(int(length))
        tried: list[Server] = []
        while (server := self.server.servers.take(tried)) is not None:
            tried.append(server)
            if self._is_answered(server, body):
                return
        wait = max(1, math.ceil(self.server.servers.next_try()))
        state = [f"{server.url}: {server.problem}" for server in self.server.servers.state()]
        told = "; ".join(state) or "none has begun"
        self._refuse(503, f"no server of the model answers now ({told})", {"Retry-After": str(wait)})

    def _is_answered(self, server: Server, body: bytes) -> bool:
        """Whether the caller has an answer, or what there is of one."""
        problem: str | None = None
        is_begun = False
        try:
            with self.server.client.stream(
                self.command, self._address(server), headers=self._headers(), content=body
            ) as response:
                if response.status_code in _AWAY:
                    problem = f"HTTP {response.status_code}"
                    return False
                is_begun = True
                self._send(response)
        except (httpx.TransportError, httpx.InvalidURL, httpx.StreamError) as error:
            problem = str(error) or type(error).__name__
            # What has begun cannot be taken back: the caller sees that it is cut, and asks again.
            self.close_connection = self.close_connection or is_begun
        except OSError:
            self.close_connection = True  # the caller is gone
            return True
        finally:
            self.server.servers.free(server, problem)
        return is_begun

    def _address(self, server: Server) -> str:
        return f"{server.url.rstrip('/')}/{self.path.removeprefix('/v1').lstrip('/')}"

    def _headers(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION]

    def _send(self, response: httpx.Response) -> None:
        self.send_response_only(response.status_code, response.reason_phrase)
        for name, value in response.headers.multi_items():
            if name.lower() not in _OF_A_CONNECTION:
                self.send_header(name, value)
        is_whole = "content-length" in response.headers
        if not is_whole:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in filter(None, response.iter_raw()):
            self.wfile.write(chunk if is_whole else f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
        if not is_whole:
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"error": {"message": redact(message), "type": "unavailable"}}).encode()
        with suppress(OSError):
            self.send_response_only(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name it overrides
        """Quiet."""
