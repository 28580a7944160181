"""What an import kept, changed and dropped: counted while it works, so that nothing gets lost silently.

What may be dropped and changed, engine by engine, stands in `docs/importing.md`; everything else is kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class LossReport:
    """Counts per kind. One report is filled while a log is read; reports of parts add up."""

    kept: Counter[str] = field(default_factory=Counter)
    """Things that are in the evidence with all their content: kind → count."""
    changed: Counter[str] = field(default_factory=Counter)
    """Things that are in the evidence in another form: kind and what was done → count."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Things that are not in the evidence: kind and why → count."""

    def add(self, other: LossReport) -> None:
        """Add the counts of another report."""
        for mine, theirs in (
            (self.kept, other.kept),
            (self.changed, other.changed),
            (self.dropped, other.dropped),
        ):
            for kind, count in theirs.items():
                mine[kind] += count

    def clear(self) -> None:
        """Forget all counts."""
        self.kept.clear()
        self.changed.clear()
        self.dropped.clear()

    @property
    def lost(self) -> int:
        """How many things were dropped."""
        return sum(self.dropped.values())

    def as_dict(self) -> dict[str, dict[str, int]]:
        """The report as JSON, kinds in alphabetical order."""
        return {name: dict(sorted(getattr(self, name).items())) for name in ("kept", "changed", "dropped")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LossReport:
        """The inverse of `as_dict`."""
        return cls(*(Counter(data.get(name, {})) for name in ("kept", "changed", "dropped")))
