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


def test_objects_from_before_the_block_are_not_scanned_in_it() -> None:
    gc.unfreeze()  # the test process has frozen its modules
    try:
        with fewer_collections(1000, 10, 30):
            assert gc.get_freeze_count() > 0
            with fewer_collections(1000, 10, 30):
                pass
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


def test_objects_that_the_program_has_frozen_stay_frozen() -> None:
    gc.freeze()
    with fewer_collections(1000, 10, 30):
        pass
    assert gc.get_freeze_count() > 0
