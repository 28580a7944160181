"""Exit codes of commands."""

from __future__ import annotations

import signal

import pytest

from aigo_bridge.exit_codes import CANCELLED, ExitCode, of_import, of_runs, of_signal


@pytest.mark.parametrize(
    ("statuses", "passed", "left_out", "code"),
    [
        ((), True, False, 0),
        (("success", "success"), True, False, 0),
        (("success",), False, False, 1),
        (("success",), True, True, 3),
        (("error",), False, True, 1),
        (("success", CANCELLED), False, True, 143),
    ],
)
def test_exit_code_follows_the_outcome_of_the_runs(
    statuses: tuple[str, ...], passed: bool, left_out: bool, code: int
) -> None:
    stopped = of_signal(signal.SIGTERM)
    assert of_runs(statuses, passed=passed, left_out=left_out, stopped=stopped) == code


def test_exit_code_of_signals_is_128_plus_the_number() -> None:
    assert [of_signal(getattr(signal, name)) for name in ("SIGHUP", "SIGINT", "SIGTERM")] == [129, 130, 143]


@pytest.mark.parametrize(
    ("is_damaged", "num_lost", "max_loss", "code"),
    [(False, 9, None, 0), (False, 2, 2, 0), (False, 3, 2, 1), (True, 3, 2, 3), (True, 0, None, 3)],
)
def test_exit_code_follows_the_losses_of_the_import(
    is_damaged: bool, num_lost: int, max_loss: int | None, code: ExitCode
) -> None:
    assert of_import(is_damaged=is_damaged, num_lost=num_lost, max_loss=max_loss) == code
