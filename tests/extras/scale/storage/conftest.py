"""S3 server for each module and an empty bucket for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.storage import S3, reached, s3_server


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    """Return a server with the S3 protocol."""
    with s3_server() as s3:
        yield s3


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """Return the empty storage, configured for this process."""
    for key in server.names():
        server.remove(key)
    with reached(server.address, monkeypatch):
        yield server
