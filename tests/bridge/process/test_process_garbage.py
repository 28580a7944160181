"""Garbage is collected less often while samples run, and as before afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

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


@pytest.mark.usefixtures("frozen_counted")
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


@pytest.mark.usefixtures("frozen_counted")
def test_objects_that_the_program_has_frozen_stay_frozen() -> None:
    gc.freeze()
    with fewer_collections(1000, 10, 30):
        pass
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize(
    ("work", "frozen"), [("", "True"), ("gc.collect()", "False"), ("import duckdb", "False")]
)
def test_a_command_that_collected_nothing_ends_without_scans(work: str, frozen: str) -> None:
    """DuckDB reports objects as leaked that are not collected."""
    code = f"""
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from aigo_bridge.process import collect_late
collect_late()
{work}
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout.split(), ended.stderr) == ([frozen], "")


def test_a_run_under_a_profiler_collects_garbage_as_usual() -> None:
    """A profiler creates objects inside the callback, so that it is called again before it has removed itself."""
    code = """
import cProfile, gc
from aigo_bridge.process import collect_late, fewer_collections
collect_late()
kept = [[] for _ in range(2000)]
def run():
    with fewer_collections(1000, 10, 30):
        pass
cProfile.run("run()", "/dev/null")
print(gc.callbacks)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]"]
