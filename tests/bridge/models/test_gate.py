"""Slots for model calls that processes share: limited, in order, and freed when their process ends."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from aigo_bridge.models.gate import ModelSlots, gated, pace, passing, paused, waiting, waiting_calls


def test_concurrent_calls_never_exceed_the_slots() -> None:
    async def run() -> int:
        places = ModelSlots(3)

        async def call(number: int) -> None:
            await places.take("w", str(number))
            await asyncio.sleep(0.001)
            places.free(str(number))

        await asyncio.gather(*(call(number) for number in range(20)))
        return places.peak

    assert asyncio.run(run()) == 3


def test_abandoned_slots_are_freed_and_not_reassigned() -> None:
    async def run() -> None:
        places = ModelSlots(1)
        await places.take("gone", "a")
        given_up = asyncio.create_task(places.take("here", "b"))
        waiting = asyncio.create_task(places.take("here", "c"))
        await asyncio.sleep(0)
        places.free("b")
        await given_up
        assert not waiting.done()
        places.forget("gone")
        await asyncio.wait_for(waiting, 1)

    asyncio.run(run())


def test_pause_delays_all_calls() -> None:
    async def run() -> float:
        places = ModelSlots(None)
        places.pause(0.05)
        before = time.monotonic()
        await asyncio.gather(*(places.take("w", str(number)) for number in range(3)))
        return time.monotonic() - before

    assert asyncio.run(run()) >= 0.05


class Listed:
    def __init__(self) -> None:
        self.told: list[object] = []

    async def enter(self, model: str, most: int | None) -> object:
        self.told.append(("enter", model, most))
        return "place"

    def leave(self, model: str, place: object) -> None:
        self.told.append(("leave", model, place))

    def pause(self, model: str, seconds: float) -> None:
        self.told.append(("pause", model, seconds))

    async def reserve(self, name: str, per_minute: int) -> float:
        return 7.0


def test_calls_enter_and_leave_the_gate_if_there_is_one() -> None:
    gate = Listed()

    async def call() -> float:
        with contextlib.suppress(LookupError):
            async with passing("m", 4):
                paused("m", None)
                paused("m", 2.0)
                raise LookupError  # the slot is freed even so
        return await pace("test of a gate", 1)

    assert asyncio.run(call()) == 0.0
    with gated(gate):
        assert asyncio.run(call()) == 7.0
    assert gate.told == [("enter", "m", 4), ("pause", "m", 2.0), ("leave", "m", "place")]


def test_waiting_calls_are_listed_longest_wait_first() -> None:
    assert waiting_calls() == []
    with waiting("m", "s1"):
        with waiting("n"):
            assert [(call.model, call.sample) for call in waiting_calls()] == [("m", "s1"), ("n", None)]
        assert [call.model for call in waiting_calls()] == ["m"]
    assert waiting_calls() == []


def test_failed_call_is_no_longer_listed_as_waiting() -> None:
    with pytest.raises(ZeroDivisionError), waiting("m"):
        raise ZeroDivisionError
    assert waiting_calls() == []
