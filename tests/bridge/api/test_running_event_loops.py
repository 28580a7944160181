"""Functions that start event loops can be called inside a running event loop."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import anyio
import pytest

from aigo_bridge.api.running import outside_event_loops

NAME: ContextVar[str] = ContextVar("name", default="nobody")


async def answer() -> tuple[str, int]:
    await anyio.sleep(0)
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
    return NAME.get(), threading.get_ident()


def work() -> tuple[str, int]:
    """Start an asyncio loop and an anyio loop, as engines do."""
    asyncio.run(answer())
    return anyio.run(answer)


def test_work_without_a_running_loop_runs_in_the_same_thread() -> None:
    assert outside_event_loops(work) == ("nobody", threading.get_ident())


async def within() -> None:
    NAME.set("somebody")
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    other = asyncio.create_task(asyncio.sleep(0, "slept"))

    with pytest.raises(RuntimeError):
        anyio.run(answer)
    assert outside_event_loops(work) == ("somebody", threading.get_ident())
    assert outside_event_loops(lambda: outside_event_loops(work)) == ("somebody", threading.get_ident())
    with pytest.raises(ZeroDivisionError):
        outside_event_loops(lambda: 1 / 0)

    assert (asyncio.current_task(), asyncio.get_running_loop()) == (task, loop)
    async with asyncio.timeout(10):
        assert await other == "slept"
    await anyio.sleep(0)


def test_work_inside_an_asyncio_loop_succeeds() -> None:
    asyncio.run(within())


def test_work_inside_an_anyio_loop_succeeds() -> None:
    anyio.run(within)


def test_work_inside_a_loop_callback_succeeds() -> None:
    async def wait() -> tuple[str, int]:
        future: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: future.set_result(outside_event_loops(work)))
        return await future

    assert asyncio.run(wait()) == ("nobody", threading.get_ident())
