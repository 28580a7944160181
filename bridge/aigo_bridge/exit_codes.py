"""Exit codes of all commands, and their computation."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands; with several results, the largest is used."""

    DONE = 0
    FAILED = 1
    """Negative result: too many failed samples, a metric without a value, a failed policy, or too many
    losses.
    """
    WRONG_USE = 2
    """Wrong arguments, or an invalid task."""
    PARTIAL = 3
    """Incomplete result: a part was damaged or left out."""
    UNDECIDED = 4
    """Rule that cannot be decided with this number of samples."""
    HUNG_UP = 129
    """Stopped by SIGHUP, because the terminal was closed."""
    INTERRUPTED = 130
    """Stopped by Ctrl+C; finished work is kept if the help of the command says so."""
    TERMINATED = 143
    """Stopped by SIGTERM."""


CANCELLED = "cancelled"
"""Status of a run that a user stopped."""


def of_signal(number: int) -> ExitCode:
    """Return the exit code of a command that a signal stopped: 128 plus its number, as in shells."""
    return ExitCode(128 + number)


def of_runs(
    statuses: Iterable[str], *, passed: bool, left_out: bool = False, stopped: ExitCode = ExitCode.INTERRUPTED
) -> ExitCode:
    """Return the exit code of runs.

    Args:
        statuses: of each.
        passed: whether all of them have (see `Outcome.passed`), with every policy and in agreement.
        left_out: whether invalid parts of a task were.
        stopped: the code of a run that was cancelled.
    """
    if CANCELLED in statuses:
        return stopped
    if not passed:
        return ExitCode.FAILED
    return ExitCode.PARTIAL if left_out else ExitCode.DONE


def of_import(*, is_damaged: bool, num_lost: int, max_loss: int | None) -> ExitCode:
    """Return the exit code of an import.

    Args:
        is_damaged: whether a part of it could not be read.
        num_lost: things that were dropped.
        max_loss: as many may be; `None`: any number.
    """
    if is_damaged:
        return ExitCode.PARTIAL
    return ExitCode.FAILED if max_loss is not None and num_lost > max_loss else ExitCode.DONE
