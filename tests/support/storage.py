"""Object storage for tests: the S3 protocol of moto's server on 127.0.0.1, and a proxy that simulates network failures."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYzEXAMPLEKEY"
KEY_ID = "AKIAZQ3DRSTUVWXY2345"
BUCKET = "bucket"

Fault = Callable[[str, str, int], str | None]
"""Method, path and number of a request → `error`, `slow-down`, `cut` or `None`: it is answered."""


class S3:
    """Storage with one bucket."""

    def __init__(self, address: str):
        import boto3  # type: ignore[import-untyped]  # has no types

        self.address = address
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        self._client.create_bucket(Bucket=BUCKET)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which programs access the storage."""
        return environment_of(self.address)

    def put(self, key: str, content: bytes | str) -> None:
        """Put an object."""
        self._client.put_object(Bucket=BUCKET, Key=key, Body=content)

    def put_folder(self, key: str, folder: Path) -> None:
        """Put all files of a folder."""
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def get(self, key: str) -> bytes:
        """Return the content of an object."""
        content: bytes = self._client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return content

    def names(self, prefix: str = "") -> list[str]:
        """Return all keys with this prefix."""
        return [
            entry["Key"]
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            for entry in page.get("Contents", [])
        ]

    def take(self, prefix: str, target: Path) -> Path:
        """Save all objects of a folder as files."""
        for key in self.names(f"{prefix}/"):
            path = target / key.removeprefix(f"{prefix}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.get(key))
        return target

    def remove(self, key: str) -> None:
        """Remove an object."""
        self._client.delete_object(Bucket=BUCKET, Key=key)


def environment_of(address: str) -> dict[str, str]:
    """Return the variables with which programs access a storage."""
    return {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AIGO_BRIDGE_LEASE_SECONDS": "2",
        # The library's own tries, each after a longer wait, are not what is tested.
        "AWS_MAX_ATTEMPTS": "2",
    }


@contextmanager
def s3_server() -> Iterator[S3]:
    """Run a server inside the block."""
    from moto.moto_server.threaded_moto_server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3(f"http://{host}:{port}")
    finally:
        server.stop()


@contextmanager
def reached(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connect this process to a storage."""
    from aigo_scale.storage import objects

    for name, value in environment_of(address).items():
        monkeypatch.setenv(name, value)
    # What fails is tried again as often, and sooner.
    monkeypatch.setattr(objects, "LONGEST_WAIT", 0.1)
    objects.forget_connections()
    try:
        yield
    finally:
        objects.forget_connections()


@contextmanager
def faulty(address: str, fault: Fault) -> Iterator[str]:
    """Run a proxy with scripted failures and return its address."""
    port = int(address.rpartition(":")[2])
    numbers = iter(range(1, 1 << 30))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            """Print nothing."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                number = next(numbers)
            what = fault(self.command, self.path, number)
            if what in ("error", "slow-down"):
                code, name = (500, "InternalError") if what == "error" else (503, "SlowDown")
                text = f"<Error><Code>{name}</Code><Message>try again</Message></Error>".encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)
                return
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            try:
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in (
                    "connection",
                    "transfer-encoding",
                    "content-length",
                    "server",
                    "date",
                ):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command == "HEAD":
                return
            self.wfile.write(content[: len(content) // 2] if what == "cut" else content)
            if what == "cut":
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer  # noqa: N815  # the base class's names

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
