"""Web server of `aigo-bridge view`. It is read-only and available on this machine only.

| path below `/<session>/` | response |
|---|---|
| ``, `r/<entry>`, `compare/<result>/<result>…` | the page, always the same file |
| `data/folder` | content of the folder |
| `data/entry/<entry>` | first view of an item; 202 while it is prepared |
| `data/block/<entry>/<number>/<block>` | compressed samples or table rows |
| `data/compare/<result>/<result>` | comparison of two results; a result is `<entry>.<its position>` |

No part of a URL is used as a file path. Item IDs come from the last folder scan.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.redaction.secrets import redact_json
from aigo_report.page.pages import BUNDLE, STYLE, asset, policy
from aigo_report.viewing.folder import FolderItem
from aigo_report.viewing.guarding import Guard, safe_headers
from aigo_report.viewing.library import Library, Preparation, blocks_file, summary_file

HOST = "127.0.0.1"
MOST_CONNECTIONS = 200
IDLE = 60.0
"""Seconds before an idle connection is closed."""
STRANGER_SECONDS = 5.0
"""Seconds in which a new connection must present the token or the cookie."""
PATIENCE = 1.0
"""Seconds that a response waits for an item being prepared."""
_STEP = 1 << 20

_ENTRY = r"(?P<entry>[0-9a-f]{16})"
_RESULT = r"[0-9a-f]{16}\.[0-9]{1,6}"
_PAGE = re.compile(rf"|r/{_ENTRY}|compare/{_RESULT}(?:/{_RESULT}){{1,5}}")
_DATA_ENTRY = re.compile(rf"data/entry/{_ENTRY}")
_DATA_BLOCK = re.compile(rf"data/block/{_ENTRY}/(?P<number>[0-9]{{1,12}})/(?P<block>r[0-9]+[pt][0-9]+)")
_DATA_COMPARISON = re.compile(rf"data/compare/(?P<base>{_RESULT})/(?P<new>{_RESULT})")

NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""Content security policy of responses that are not pages."""


@dataclass(frozen=True)
class HttpResponse:
    """Response."""

    status: HTTPStatus
    kind: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    policy: str = NOTHING
    file: tuple[Path, int, int] | None = None
    """Range of a file to send instead of a body."""

    @property
    def length(self) -> int:
        """Length of the body in bytes."""
        return len(self.body) if self.file is None else self.file[2]


def _text(status: HTTPStatus, text: str) -> HttpResponse:
    return HttpResponse(status, "text/plain; charset=utf-8", f"{text}\n".encode())


def _json(content: Any, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    return HttpResponse(status, "application/json", redact_json(orjson.dumps(content)))


class ViewServer(ThreadingHTTPServer):
    """Server for one folder.

    Args:
        root: folder to serve.
        port: port number; 0 for any free port.

    Raises:
        UsageError: the port is in use, or the folder does not exist.
        OSError: temporary files cannot be created.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, root: Path, port: int = 0):
        if not root.is_dir():
            raise UsageError(f"{root}: the folder does not exist", code=Code.NOTHING_THERE)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._strangers: dict[socket.socket, float] = {}
        """Unauthenticated connections with their start time, oldest first."""
        # Set before the port is opened, because `server_close` is called if that fails.
        self.library = Library(root.resolve())
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            hint = "--port 0 uses any free port"
            raise UsageError(
                f"port {port} cannot be used: {reason} ({hint})", code=Code.PORT_IN_USE
            ) from error
        self.guard = Guard(self.server_address[1])
        self.page = _page()

    def server_close(self) -> None:
        """Stop the server, cancel all work and delete all temporary files."""
        super().server_close()
        self.library.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for each connection. At the limit, the oldest unauthenticated connection is
        closed.
        """
        if not self._connections.acquire(blocking=False):
            self._close_strangers(most=1)
            if not self._connections.acquire(timeout=1.0):
                self.shutdown_request(request)
                return
        self._strangers[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.admit(request)
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the requests of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.admit(request)
            self._connections.release()

    def service_actions(self) -> None:
        """Close connections without authentication after a time limit. Called twice a second."""
        self._close_strangers(before=time.monotonic() - STRANGER_SECONDS)

    def admit(self, request: socket.socket) -> None:
        """Mark a connection as authenticated."""
        self._strangers.pop(request, None)

    def _close_strangers(self, *, before: float = math.inf, most: int | None = None) -> None:
        """Close the oldest unauthenticated connections, so that their threads end."""
        for request, since in list(self._strangers.items())[:most]:
            if since < before:
                self.admit(request)
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect. Print one line for other errors."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            sys.stderr.write(f"error: a request failed: {type(error).__name__}: {error}\n")

    # Responses

    def answer(self, path: str, headers: Any) -> HttpResponse:
        """Return the response to an authorized request.

        Args:
            path: path below the session folder.
            headers: headers of the request.
        """
        if _PAGE.fullmatch(path):
            html, page_policy = self.page
            return HttpResponse(HTTPStatus.OK, "text/html; charset=utf-8", html, policy=page_policy)
        if path == "data/folder":
            return self._folder()
        if match := _DATA_ENTRY.fullmatch(path):
            return self._entry(match["entry"], headers.get("If-None-Match"))
        if match := _DATA_BLOCK.fullmatch(path):
            return self._block(match["entry"], int(match["number"]), match["block"])
        if match := _DATA_COMPARISON.fullmatch(path):
            return self._comparison(match["base"], match["new"])
        return _text(HTTPStatus.NOT_FOUND, "unknown page")

    def _folder(self) -> HttpResponse:
        listing = self.library.listing()
        entries = [
            {
                "id": entry.id,
                "kind": entry.kind,
                "name": _shown(entry.name),
                "size": entry.size,
                "modified": entry.modified,
                "engine": entry.engine,
                "run": None
                if entry.run is None
                else {"alive": entry.run.alive, "version": _digest(entry.run.version)},
                **self.library.head(entry),
            }
            for entry in listing.entries.values()
        ]
        return _json(
            {
                "folder": _shown(self.library.root.name or str(self.library.root)),
                "entries": entries,
                "links": [_shown(name) for name in listing.links],
                "cut": listing.cut,
            }
        )

    def _entry(self, name: str, known: str | None) -> HttpResponse:
        entry = self.library.listing().entries.get(name)
        if entry is None:
            return _gone()
        work = self.library.work(entry)
        answer = _ended(work)
        if answer is not None:
            return answer
        prepared = work.future.result()
        tag = f'"{work.number}"'
        if known == tag:
            return HttpResponse(HTTPStatus.NOT_MODIFIED, "application/json", headers=(("ETag", tag),))
        extra = (("ETag", tag), ("X-Number", str(work.number)))
        if prepared.problem is not None:
            problem = {"problem": prepared.problem.replace(f"{self.library.root}{os.sep}", "")}
            return _json(problem, HTTPStatus.UNPROCESSABLE_ENTITY)
        try:
            body = summary_file(prepared).read_bytes()
        except OSError:  # deleted in the meantime
            return _busy()
        return HttpResponse(HTTPStatus.OK, "application/json", body, (*extra, ("Content-Encoding", "gzip")))

    def _block(self, name: str, number: int, block: str) -> HttpResponse:
        prepared = self.library.prepared(name, number)
        if prepared is None:
            return _text(HTTPStatus.GONE, "a newer version exists")
        if prepared.run is None and not prepared.is_current:
            return _text(HTTPStatus.GONE, "the file has changed")
        place = prepared.blocks.get(block)
        if place is None:
            return _text(HTTPStatus.NOT_FOUND, "unknown block")
        return HttpResponse(
            HTTPStatus.OK,
            "application/json",
            headers=(("Content-Encoding", "gzip"),),
            file=(blocks_file(prepared), *place),
        )

    def _comparison(self, base: str, new: str) -> HttpResponse:
        sides: list[tuple[FolderItem, int, int, Path]] = []
        for side in (base, new):
            name, _, digits = side.partition(".")
            position = int(digits)
            entry = self.library.listing().entries.get(name)
            if entry is None:
                return _gone()
            work = self.library.work(entry)
            answer = _ended(work)
            if answer is not None:
                return answer
            results = work.future.result().results
            path = results[position] if position < len(results) else None
            if path is None:
                return _json({"problem": f"{entry.name}: the result does not exist"}, HTTPStatus.NOT_FOUND)
            sides.append((entry, work.number, position, path))
        key = tuple((entry.id, number, position) for entry, number, position, _ in sides)
        work = self.library.comparison(key, sides[0][3], sides[1][3])
        answer = _ended(work)
        if answer is not None:
            return answer
        content = orjson.loads(work.future.result())
        for label, (entry, number, position, _) in zip(("base", "new"), sides, strict=True):
            names = self._names(entry.id, number, position)
            content[label] = {
                "entry": entry.id,
                "name": _shown(entry.name),
                "position": position,
                "run": entry.run is not None,
                **names,
            }
        return _json(content)

    def _names(self, entry: str, number: int, position: int) -> dict[str, Any]:
        """Return title and model of a prepared result."""
        prepared = self.library.prepared(entry, number)
        if prepared is None:
            return {}
        try:
            summary = orjson.loads(gzip.decompress(summary_file(prepared).read_bytes()))
        except OSError:  # deleted in the meantime
            return {}
        return {name: summary["results"][position].get(name) for name in ("title", "model")}


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


@contextmanager
def _opened(answer: HttpResponse) -> Iterator[tuple[int | None, int]]:
    """Yield the file of a response and its start offset, before the first byte is sent."""
    if answer.file is None:
        yield None, 0
        return
    path, start, _ = answer.file
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield file, start
    finally:
        os.close(file)


def _ended(work: Preparation) -> HttpResponse | None:
    """Return the response for an item that is not ready or has failed; `None` if it is ready."""
    try:
        error = work.future.exception(PATIENCE)
    except (FutureTimeoutError, CancelledError):
        return _busy()
    if error is None:
        return None
    if isinstance(error, BrokenProcessPool):
        error = UsageError("the process that read it was ended", code=Code.FAILED_ENGINE)
    text = str(error) if isinstance(error, (BridgeError, OSError)) else f"{type(error).__name__}: {error}"
    return _json({"problem": text}, HTTPStatus.UNPROCESSABLE_ENTITY)


def _busy() -> HttpResponse:
    return _json({"state": "reading"}, HTTPStatus.ACCEPTED)


def _gone() -> HttpResponse:
    return _json({"problem": "it is no longer in the folder"}, HTTPStatus.NOT_FOUND)


def _shown(name: str) -> str:
    """Return a name that can be written as JSON."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _page() -> tuple[bytes, str]:
    """Return the page and its policy: its own script and style, data from this server, and images in the
    log.
    """
    script, style = asset(BUNDLE), asset(STYLE)
    html = (
        b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        b'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        b'<meta name="color-scheme" content="light dark">\n<title>Results</title>\n<style>'
        + style
        + b'</style>\n</head>\n<body data-view="1">\n'
        b'<div id="app"><noscript>This page needs JavaScript.</noscript></div>\n<script>'
        + script
        + b"</script>\n</body>\n</html>\n"
    )
    rules = f"{policy(script, style)}; connect-src 'self'; frame-ancestors 'none'"
    return html, rules


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE
    server_version = "aigo-bridge"
    sys_version = ""

    def do_GET(self) -> None:
        """Send a response."""
        self._send(self._answer())

    def do_HEAD(self) -> None:
        """Send a response without its body."""
        self._send(self._answer())

    def _answer(self) -> HttpResponse:
        guard = self.server.guard
        if self.headers.get("Content-Length", "0").strip() != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return _text(HTTPStatus.BAD_REQUEST, "the request must not have a body")
        reason = guard.refusal(self.headers)
        if reason is not None:
            return _text(HTTPStatus.FORBIDDEN, reason)
        path, _, query = self.path.partition("?")
        if path == "/" and guard.has_token(query):
            self.server.admit(self.connection)
            return self._welcome()
        prefix = f"/{guard.session}/"
        if not (path.startswith(prefix) and guard.has_cookie(self.headers)):
            return _text(HTTPStatus.FORBIDDEN, "open the address that `aigo-bridge view` printed")
        self.server.admit(self.connection)
        if guard.from_elsewhere(self.headers):
            return _text(HTTPStatus.FORBIDDEN, "this server only accepts requests from its own pages")
        return self.server.answer(path.removeprefix(prefix), self.headers)

    def _welcome(self) -> HttpResponse:
        # Not a redirect: for a request started by another program, the browser would not send the cookie.
        target = f"/{self.server.guard.session}/"
        html = f'<!doctype html><meta http-equiv="refresh" content="0;url={target}"><title>Results</title>'
        return HttpResponse(
            HTTPStatus.OK,
            "text/html; charset=utf-8",
            html.encode(),
            (("Set-Cookie", self.server.guard.cookie_header),),
        )

    def _send(self, answer: HttpResponse) -> None:
        try:
            with _opened(answer) as (file, start):
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(answer.length))
                for name, value in (*safe_headers(answer.policy).items(), *answer.headers):
                    self.send_header(name, value)
                if self.close_connection:
                    self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD" and answer.status != HTTPStatus.NOT_MODIFIED:
                    self.wfile.write(answer.body)
                    if file is not None:
                        self._send_range(file, start, answer.length)
        except FileNotFoundError:
            self._send(_text(HTTPStatus.GONE, "a newer version exists"))

    def _send_range(self, file: int, start: int, length: int) -> None:
        end = start + length
        while start < end:
            data = os.pread(file, min(_STEP, end - start), start)
            if not data:
                self.close_connection = True
                return
            self.wfile.write(data)
            start += len(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the errors of the standard library, for example for other methods or malformed requests."""
        self.close_connection = True
        allow = (("Allow", "GET, HEAD"),) if code == HTTPStatus.NOT_IMPLEMENTED else ()
        status = HTTPStatus.METHOD_NOT_ALLOWED if allow else HTTPStatus(code)
        answer = HttpResponse(status, "text/plain; charset=utf-8", b"this server only reads\n", allow)
        with suppress(OSError):
            self._send(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # name from the standard library
        """Log nothing, because URLs contain the token."""
