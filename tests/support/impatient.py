"""Calls of models that are made again at once."""

from __future__ import annotations

import pytest


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have neither engine wait before a call is made again; the waits of a client of a provider stay."""
    import inspect_ai.model._retry

    async def at_once(seconds: float) -> None:
        assert seconds >= 0

    monkeypatch.setattr(inspect_ai.model._retry, "_sleep", at_once)
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.001)
