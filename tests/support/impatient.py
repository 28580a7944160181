"""Model calls that are repeated without waiting."""

from __future__ import annotations

import pytest


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waits of both engines before repeated calls; provider clients keep theirs."""
    import inspect_ai.model._retry

    async def at_once(seconds: float) -> None:
        assert seconds >= 0

    monkeypatch.setattr(inspect_ai.model._retry, "_sleep", at_once)
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.001)
