"""Output of a logger, independent of logging changes by other libraries in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def heard(name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connect `caplog` to a logger directly, because frameworks disable loggers or reconfigure the root logger."""
    logger = logging.getLogger(name)
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, caplog.handler])
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    with caplog.at_level(logging.WARNING, logger=name):
        yield
