"""A program ends with whoever wanted it, however that one ended, and with all that it has started."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

TENDING = [sys.executable, "-m", "aigo_scale.cluster.tending"]


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(map(is_there, processes)):
        assert time.monotonic() < deadline, "it outlives who wanted it"
        time.sleep(0.02)


@contextmanager
def started(program: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The tender of a program that says its processes."""
    with subprocess.Popen(
        [*TENDING, "sh", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tender:
        assert tender.stdout is not None
        yield tender, [int(word) for word in tender.stdout.readline().split()]


def ended(*words: str) -> tuple[int, str]:
    """The exit code of a tender whose owner outlives it, and what it says."""
    with subprocess.Popen(
        [*TENDING, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tender:
        assert tender.stderr is not None
        # Not by `communicate`, which closes its input at once: that is the end of its owner.
        return tender.wait(60), tender.stderr.read()


def test_the_exit_code_is_that_of_the_program() -> None:
    for program, code in (("exit 3", 3), ("kill -9 $$", 137), ("exit 0", 0)):
        assert ended("sh", "-c", program) == (code, "")


def test_a_program_that_is_not_there_is_named() -> None:
    assert ended("no-such-program") == (127, "no-such-program: No such file or directory\n")


@pytest.mark.parametrize(
    "program",
    ["sleep 600 & echo $$ $!; wait", "trap '' TERM; sleep 600 & echo $$ $!; wait; wait"],
    ids=["plain", "one that does not hear"],
)
def test_it_ends_when_its_input_does_and_so_does_what_it_started(program: str) -> None:
    with started(program) as (tender, processes):
        assert tender.stdin is not None
        assert all(map(is_there, processes))
        tender.stdin.close()
        until_gone(processes)
        assert tender.wait(30) != 0


def test_a_kill_of_who_was_started_ends_all_when_the_input_ends() -> None:
    """As Ray kills the children of a worker, and the worker then."""
    with started("sleep 600 & echo $$ $!; wait") as (tender, processes):
        tender.send_signal(signal.SIGKILL)
        tender.wait()
        assert tender.stdin is not None
        tender.stdin.close()
        until_gone(processes)


def test_what_a_program_leaves_behind_ends_with_it() -> None:
    with started("sleep 600 & echo $!; exit 0") as (tender, processes):
        until_gone(processes)
        assert tender.wait(30) == 0
