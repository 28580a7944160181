"""Samples that changed between right and wrong, with what was answered."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.errors import EvidenceError, SampleError
from aigo_bridge.results.reading import LogReader, SamplePart
from aigo_bridge.scoring.variables import answer_text
from aigo_stats.comparison.columns import SampleId
from aigo_stats.comparison.comparing import Comparison, Flips


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


def answers(path: Path, positions: Collection[int]) -> dict[int, str]:
    """Position of a sample → its answer in the first trial; without those that have none to show.

    Read from the file again: of a result's texts nothing is kept while it is compared. Reading ends with the
    last of them.

    Raises:
        EvidenceError: the file has changed since it was read.
    """
    wanted = set(positions)
    texts: dict[int, str] = {}
    if not wanted:
        return texts
    reader = LogReader(path)
    for part in reader.parts():
        if not isinstance(part, SamplePart) or part.run is not None or part.position not in wanted:
            continue
        # A group of answers, none, or a sample that is damaged has no answer to show.
        with contextlib.suppress(SampleError, EvidenceError):
            trials = reader.typed_sample(part).trials
            solver = trials[0].solver if trials else None
            texts[part.position] = answer_text(None if solver is None else solver.output)
        wanted.discard(part.position)
        if not wanted:
            break
    return texts
