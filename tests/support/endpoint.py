"""OpenAI-compatible endpoint for tests: real HTTP, scripted answers, and all requests recorded."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Raw:
    """Response given byte by byte."""

    chunks: tuple[bytes, ...]
    """Sent one after the other, as an HTTP stream."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    """Whether the connection is closed before the stream has ended."""
    delay: float = 0.0
    """Seconds before anything is sent."""
    stall: float = 0.0
    """Seconds of silence after the last chunk, before the stream ends."""


Answer = Callable[[Any], tuple[int, dict[str, Any]] | Raw]


def events(*pieces: Any, done: bool = True, **raw: Any) -> Raw:
    """Return server-sent events, one for each chunk, with the end mark of a chat completion."""
    lines = [piece if isinstance(piece, str) else json.dumps(piece) for piece in pieces]
    chunks = [f"data: {line}\n\n".encode() for line in [*lines, *(["[DONE]"] if done else [])]]
    return Raw(tuple(chunks), headers={"Content-Type": "text/event-stream"}, **raw)


def delta(text: str | None = None, *, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk of a streamed chat completion."""
    content = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": {**content, **fields}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "local", "choices": [choice]}


def completion(
    text: str, *, prompt_tokens: int = 11, completion_tokens: int = 3, **message: Any
) -> dict[str, Any]:
    """Return the body of a successful answer."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "local",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


class Endpoint:
    """Server whose `answer` is set by the test."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Any] = []
        """Bodies as JSON; as text when they are not."""
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        """When each request came in, monotonic seconds."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.clients: set[tuple[str, int]] = set()
        """Addresses of the connections."""
        self._lock = threading.Lock()
        self._scheme = "http" if tls is None else "https"
        self.answer: Answer = lambda _: (200, completion("ok"))
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with endpoint._lock:
                    endpoint.clients.add(self.client_address)
                    endpoint.times.append(time.monotonic())
                    endpoint.paths.append(self.path)
                    endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                    endpoint.in_flight += 1
                    endpoint.most_in_flight = max(endpoint.most_in_flight, endpoint.in_flight)
                try:
                    body = json.loads(text)
                except ValueError:
                    body = text
                endpoint.requests.append(body)
                try:
                    given = endpoint.answer(body)
                    if isinstance(given, Raw):
                        time.sleep(given.delay)
                finally:
                    with endpoint._lock:
                        endpoint.in_flight -= 1
                # A client that has given up is no mistake of the server.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._send(given)

            def _send(self, given: tuple[int, dict[str, Any]] | Raw) -> None:
                if isinstance(given, Raw):
                    self._send_raw(given)
                    return
                status, reply = given
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _send_raw(self, raw: Raw) -> None:
                self.send_response(raw.status)
                for name, value in {"Content-Type": "application/json", **raw.headers}.items():
                    self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                # An empty chunk would say that the stream ends.
                for chunk in filter(None, raw.chunks):
                    self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                    self.wfile.flush()
                time.sleep(raw.stall)
                if raw.cut:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name it overrides
                """Print nothing."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Print nothing, because some handshakes fail on purpose."""

        self._server = Server(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Return the base URL for clients."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/v1"

    def start(self) -> None:
        """Start the server."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
