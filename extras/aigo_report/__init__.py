"""Views of results: the HTML page, the local viewer, terminal listings, tables, SQL and charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Disclosures:
    """Hook `disclosures`: files with one sample of a result, which `show` also takes."""

    is_disclosure: Callable[[Path], bool]
    """Returns whether a file is one disclosed sample."""
    facts: Callable[[Path], list[tuple[str, str]]]
    """Returns label and text of everything in the sample.

    Raises:
        EvidenceError: the file is not a disclosed sample.
    """
