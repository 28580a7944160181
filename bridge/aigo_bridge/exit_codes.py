"""The exit codes of every verb: what they are, and which one a command ends with."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every verb; of several the largest counts."""

    DONE = 0
    FAILED = 1
    """The thing examined is not right: failed samples above the limit, a metric without a value, a failed
    policy, too much lost."""
    WRONG_USE = 2
    """Wrong arguments, or an invalid task."""
    PARTIAL = 3
    """Something was salvaged, or left out; not everything is there."""
    UNDECIDED = 4
    """A rule cannot be decided with this many samples."""
    HUNG_UP = 129
    """As `INTERRUPTED`, by SIGHUP: the terminal was closed."""
    INTERRUPTED = 130
    """Stopped by ctrl-C; what was finished is kept where the verb says so."""
    TERMINATED = 143
    """As `INTERRUPTED`, by SIGTERM."""


CANCELLED = "cancelled"
"""Status of a run that somebody has stopped."""


def of_signal(number: int) -> ExitCode:
    """Of a command that a signal has stopped: 128 and its number, as shells have it."""
    return ExitCode(128 + number)


def of_runs(
    statuses: Iterable[str], *, passed: bool, left_out: bool = False, stopped: ExitCode = ExitCode.INTERRUPTED
) -> ExitCode:
    """Of runs.

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
    """Of a log that was imported.

    Args:
        is_damaged: whether a part of it could not be read.
        num_lost: things that were dropped.
        max_loss: as many may be; `None`: any number.
    """
    if is_damaged:
        return ExitCode.PARTIAL
    return ExitCode.FAILED if max_loss is not None and num_lost > max_loss else ExitCode.DONE
