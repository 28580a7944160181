"""What a logger says, whatever other tests' libraries have done to logging in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def heard(name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have `caplog` hear a logger itself: frameworks disable loggers, cut them off from the root, or set the root up anew."""
    logger = logging.getLogger(name)
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, caplog.handler])
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    with caplog.at_level(logging.WARNING, logger=name):
        yield
