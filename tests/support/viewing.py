"""Server of `aigo-bridge view` in this process, and HTTP clients for it."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_report.viewing import ViewServer

SECONDS = 60
"""That something may take, on a busy machine."""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reader:
    """Simple browser, with or without the cookie."""

    port: int
    cookie: str = ""
    base: str = "/"
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, method: str = "GET", **headers: str) -> Reply:
        """Send one request with only the given parts."""
        own = {"Host": f"127.0.0.1:{self.port}", **({"Cookie": self.cookie} if self.cookie else {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {
                **own,
                **{name.replace("_", "-"): text for name, text in headers.items()},
            }.items():
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.getheader("Content-Encoding") == "gzip" and body:
            body = gzip.decompress(body)
        return Reply(response.status, dict(response.getheaders()), body)

    def get(self, path: str, **headers: str) -> Reply:
        """Request a path below the session folder until it is ready."""
        deadline = time.monotonic() + SECONDS
        while (reply := self.ask(self.base + path, **headers)).status == 202 and time.monotonic() < deadline:
            time.sleep(0.1)
        return reply

    def entries(self) -> dict[str, dict[str, Any]]:
        """Return the folder entries by name."""
        return {entry["name"]: entry for entry in self.get("data/folder").json["entries"]}


def reader_of(address: str) -> Reader:
    """Return a reader that has opened the printed address."""
    match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=\S+)", address)
    assert match is not None
    reader = Reader(int(match[1]))
    reply = reader.ask(match[2])
    assert reply.status == 200, reply
    place = re.search(rb'url=(/[0-9a-f]{16}/)"', reply.body)
    assert place is not None
    reader.cookie, reader.base = reply.headers["Set-Cookie"].split(";")[0], place[1].decode()
    return reader


def ended_by_the_kernel(*arguments: Any) -> None:
    """Simulate the signal for a reader of a truncated memory-mapped file."""
    os.kill(os.getpid(), signal.SIGBUS)


@contextmanager
def serving(folder: Path) -> Iterator[ViewServer]:
    """Serve a folder in a thread."""
    server = ViewServer(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
