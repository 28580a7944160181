"""Progress of runs in separate processes."""

from __future__ import annotations

import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from inspect_ai.log._recorders.buffer.buffer import sample_buffer  # used to recover a killed run

PATIENCE = 90
"""Seconds until a run that does not get anywhere fails its test."""


def finished_samples(log: Path) -> int:
    """Return the number of finished samples of a growing log that survive its process: in the file or Inspect's buffer."""
    try:
        with zipfile.ZipFile(log) as archive:
            written = sum(name.startswith("samples/") for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):  # not there yet, or in the midst of being written
        return 0
    try:
        samples = sample_buffer(str(log)).get_samples()
    except FileNotFoundError:
        return written
    if samples is None or isinstance(samples, str):
        return written
    return written + sum(bool(sample.completed) for sample in samples.samples)


def wait_until(process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
    """Wait for a condition caused by a running process."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, "the run has ended"
        assert time.monotonic() < deadline, "the run does not get anywhere"
        time.sleep(0.05)
    assert process.poll() is None, "the run has ended"
