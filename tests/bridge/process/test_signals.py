"""Blocks that a signal must not leave half done."""

from __future__ import annotations

import signal
import threading

import pytest

from aigo_bridge.process.signals import STOPPED_BY, finishing, interruptible, stop_here


def interrupted_work(done: list[str], *, times: int, error: Exception | None = None) -> None:
    """Interrupt a block this many times."""
    with finishing():
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        if error is not None:
            raise error
        done.append("written")


def test_first_interrupt_waits_for_the_end_of_the_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_work(done, times=1)
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_second_interrupt_ends_the_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted_work(done, times=2)
    assert done == []


def test_error_in_the_block_is_not_hidden_by_an_interrupt() -> None:
    with pytest.raises(ValueError, match="full"):
        interrupted_work([], times=1, error=ValueError("full"))


def test_interrupt_is_allowed_in_a_part_of_the_block() -> None:
    done: list[str] = []
    with finishing():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interruptible():
            done.append("unreachable")
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(signal.SIGINT)
        done.append("written")
    assert done == ["written"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signal_handlers_are_unchanged_in_other_threads() -> None:
    def work() -> None:
        with finishing():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[object] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_caught_signal_stops_at_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_here()
    monkeypatch.setattr("aigo_bridge.process.signals.STOPPED_BY", [*STOPPED_BY, signal.SIGTERM])
    with pytest.raises(KeyboardInterrupt):
        stop_here()
