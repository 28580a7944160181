"""Places that processes share: never more than there are, in order, and none is lost with whoever had it."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

from aigo_bridge.models.gate import ModelSlots, gated, pace, passing, paused, waiting, waiting_calls


def test_as_many_calls_at_a_time_as_there_are_places() -> None:
    async def run() -> int:
        places = ModelSlots(3)

        async def call(number: int) -> None:
            await places.take("w", str(number))
            await asyncio.sleep(0.001)
            places.free(str(number))

        await asyncio.gather(*(call(number) for number in range(20)))
        return places.peak

    assert asyncio.run(run()) == 3


def test_abandoned_places_are_freed_and_not_handed_to_others() -> None:
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


def test_a_pause_holds_everybody() -> None:
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


def test_calls_go_through_the_gate_and_without_one_through_nothing() -> None:
    gate = Listed()

    async def call() -> float:
        with contextlib.suppress(LookupError):
            async with passing("m", 4):
                paused("m", None)
                paused("m", 2.0)
                raise LookupError  # its place is given back all the same
        return await pace("test of a gate", 1)

    assert asyncio.run(call()) == 0.0
    with gated(gate):
        assert asyncio.run(call()) == 7.0
    assert gate.told == [("enter", "m", 4), ("pause", "m", 2.0), ("leave", "m", "place")]


def test_calls_that_wait_are_listed_the_longest_first() -> None:
    assert waiting_calls() == []
    with waiting("m", "s1"):
        with waiting("n"):
            assert [(call.model, call.sample) for call in waiting_calls()] == [("m", "s1"), ("n", None)]
        assert [call.model for call in waiting_calls()] == ["m"]
    assert waiting_calls() == []


def test_a_call_that_fails_does_not_wait_any_more() -> None:
    with pytest.raises(ZeroDivisionError), waiting("m"):
        raise ZeroDivisionError
    assert waiting_calls() == []
