"""Documents of a task with what they were asked, wherever they were read; loaded without the packages that read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A document with one way of asking; parts that could not be read are `None`."""

    number: int
    """Position in the file, from 0."""
    doc: Json | None
    response: Json | None
    metric: Json | None
    odd: bool
    """Whether it may hold a number that is not finite."""
    failure: str | None = None
    """Why the document failed, as a run of aigo-bridge wrote it; `None` when it did not, or nobody says."""


@dataclass(frozen=True)
class Asked:
    """A document with everything that it was asked."""

    sample_id: str
    """The document's id, with a number where another document has the same."""
    rows: list[Row]
    """One for each way of asking."""
