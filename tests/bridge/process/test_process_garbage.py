"""Garbage is collected less often while samples run, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from aigo_bridge.process import fewer_collections


def test_thresholds_are_restored_after_an_error() -> None:
    before = gc.get_threshold()
    seen = []

    def work() -> None:
        seen.append(gc.get_threshold())
        raise RuntimeError

    with pytest.raises(RuntimeError), fewer_collections(10_000, 300, 100):
        work()
    assert seen == [(10_000, 300, 100)]
    assert gc.get_threshold() == before


def test_higher_thresholds_of_the_program_are_kept() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 1000)
        with fewer_collections(1000, 10, 30):
            assert gc.get_threshold() == (1000, 10, 1000)
        assert gc.get_threshold() == (700, 10, 1000)
    finally:
        gc.set_threshold(*before)
