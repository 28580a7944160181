"""Retries without waiting times."""

from __future__ import annotations

import anyio
import pytest


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waiting time of both engines before a retry."""

    async def at_once(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("inspect_ai.model._retry._sleep", at_once)
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.0)
