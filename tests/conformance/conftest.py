"""Retries without waiting times, and tables of results that Inspect lays out although it does not print them."""

from __future__ import annotations

import anyio
import pytest
from inspect_ai._display.rich import display
from tests.support.fork_server import skip_hidden_results


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the waiting time of both engines before a retry."""

    async def at_once(seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr("inspect_ai.model._retry._sleep", at_once)
    monkeypatch.setattr("aigo_bridge.execution.progress.FIRST_WAIT", 0.0)


@pytest.fixture(autouse=True)
def results_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Inspect lay out each table of results, as for users: a name in it must not fail a run."""
    skip_hidden_results()
    monkeypatch.setattr(display, "tasks_results", vars(display)["lay_out_results"])
