"""What is called, and what a call may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Snippet:
    """A piece of author's code and the function in it that is called."""

    source: str
    function: str
    """Name of the function that the snippet must define, e.g. `compute_scores`."""
    label: str
    """Names the snippet in errors and tracebacks: its file, or the field it stands in."""


@dataclass(frozen=True)
class SnippetLimits:
    """What one call may use."""

    seconds: float = 120.0
    """Wall-clock time of one call, compiling included; waiting for callbacks and for its turn are not."""
    memory_bytes: int = 4 * 1024**3
    """Address space of the worker process."""
