"""A program that ends with whoever started this one: `python -m aigo_scale.cluster.tending PROGRAM …`.

The starter holds the other end of the standard input, which the system closes when it is gone, also by `kill
-9`. The program has a group of its own, so that what it starts ends with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

PATIENCE = 5.0
"""Seconds that a program has to end by itself."""

NOT_FOUND = 127
"""Exit code of a program that is not there, as shells have it."""


def main(command: Sequence[str]) -> int:
    """Run a program until it ends, or nobody is there any more who wants it; its exit code."""
    # Ray kills the children of a worker that it ends, and theirs no more: who ends the program is no child.
    tender = os.fork()
    if tender:
        _, status = os.waitpid(tender, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code
    try:
        os.setsid()
        os._exit(_tend(command))
    finally:
        os._exit(1)  # an error of ours: its place is not the caller's


def _tend(command: Sequence[str]) -> int:
    try:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_FOUND
    threading.Thread(target=_end_with_input, args=(program,), daemon=True).start()
    code = program.wait()
    _signal(program, signal.SIGKILL)  # what it has started and left behind
    return code if code >= 0 else 128 - code


def _end_with_input(program: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):
        pass
    _signal(program, signal.SIGTERM)
    try:
        program.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        _signal(program, signal.SIGKILL)


def _signal(program: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
