"""What is called, and what a call may use."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Snippet:
    """A piece of author's code and the function in it that is called."""

    source: str
    function: str
    """Name of the function that the snippet must define, e.g. `compute_scores`."""
    label: str
    """Names the snippet in errors: the field it stands in."""
    origin: str | None = None
    """File that the code stands in, named in errors and tracebacks; `None` where it is not known."""
    first_line: int = 1
    """Line of that file where the code begins, from 1: errors tell lines of the file."""

    def at(self, place: tuple[str, int] | None) -> Snippet:
        """The snippet with the file and the line that its code stands in, as plans keep them; `None`: not known."""
        return self if place is None else replace(self, origin=place[0], first_line=place[1])

    @property
    def where(self) -> str:
        """The label, and where the code stands if that is known."""
        return self.label if self.origin is None else f"{self.label} ({self.origin}, line {self.first_line})"

    def told(self, problem: str) -> str:
        """A problem with the code as a message that names its file, once: exceptions say themselves in which line they were raised."""
        names_it = self.origin is not None and self.origin in problem
        return f"{self.label if names_it else self.where}: {problem}"


@dataclass(frozen=True)
class SnippetLimits:
    """What one call may use."""

    seconds: float = 120.0
    """Wall-clock time of one call, compiling included; waiting for callbacks and for its turn are not."""
    memory_bytes: int = 4 * 1024**3
    """Address space of the worker process."""
