"""Samples that changed between right and wrong, with what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aigo_bridge.comparison.answers import answers
from aigo_bridge.comparison.columns import SampleId
from aigo_bridge.comparison.comparing import Comparison, Flips


@dataclass(frozen=True)
class FlippedSample:
    """One of them."""

    is_gain: bool
    """Whether it is right in the second result."""
    base_id: SampleId
    new_id: SampleId
    base_answer: str | None
    """`None`: there is none to show."""
    new_answer: str | None

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "change": "wrong to right" if self.is_gain else "right to wrong",
            "base_id": self.base_id,
            "new_id": self.new_id,
            "base_answer": self.base_answer,
            "new_answer": self.new_answer,
        }


def flipped_samples(comparison: Comparison, flips: Flips, count: int) -> list[FlippedSample]:
    """The first samples that changed, right to wrong before wrong to right.

    Args:
        comparison: of the two results; their answers are read from the files.
        flips: of one of its numbers.
        count: the most samples.

    Raises:
        EvidenceError: a file has changed since it was compared.
    """
    rows = [(False, *row) for row in flips.lost[:count].tolist()]
    rows += [(True, *row) for row in flips.gained[: count - len(rows)].tolist()]
    base = answers(comparison.base.path, [row[1] for row in rows])
    new = answers(comparison.new.path, [row[2] for row in rows])
    return [
        FlippedSample(
            is_gain, comparison.base.ids[one], comparison.new.ids[other], base.get(one), new.get(other)
        )
        for is_gain, one, other in rows
    ]
