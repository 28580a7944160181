"""Limit of requests per minute."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.models.connections import Pace, shared_pace
from aigo_bridge.models.connections.connection import WINDOW


@given(st.integers(1, 5), st.lists(st.floats(0, 40), max_size=40))
def test_request_starts_never_exceed_the_limit_per_minute(limit: int, gaps: list[float]) -> None:
    pace = Pace(limit)
    now, starts = 1000.0, []
    for gap in gaps:
        now += gap
        starts.append(now + pace.reserve(now))
    assert starts == sorted(starts)
    for first, last in zip(starts, starts[limit:], strict=False):
        assert last - first >= WINDOW - 1e-6


@given(st.integers(1, 5), st.integers(1, 30))
def test_requests_wait_no_longer_than_necessary(limit: int, count: int) -> None:
    pace = Pace(limit)
    waits = [pace.reserve(0.0) for _ in range(count)]
    assert waits == [WINDOW * (index // limit) for index in range(count)]


def test_threads_share_the_rate_limit() -> None:
    pace = Pace(100)
    waits: list[float] = []

    def many() -> None:
        waits.extend(pace.reserve(0.0) for _ in range(50))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waits) == [0.0] * 100 + [WINDOW] * 100


def test_pace_is_shared_by_name_until_its_limit_changes() -> None:
    first = shared_pace("a model of this test", 10)
    assert shared_pace("a model of this test", 10) is first
    assert shared_pace("another model of this test", 10) is not first
    assert shared_pace("a model of this test", 20) is not first
