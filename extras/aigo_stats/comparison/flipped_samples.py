"""Samples that changed between right and wrong, with their answers."""

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
    """Sample that changed between right and wrong."""

    is_gain: bool
    """Whether the second result is right."""
    base_id: SampleId
    new_id: SampleId
    base_answer: str | None
    """Answer in the first result; `None` if not available."""
    new_answer: str | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "change": "wrong to right" if self.is_gain else "right to wrong",
            "base_id": self.base_id,
            "new_id": self.new_id,
            "base_answer": self.base_answer,
            "new_answer": self.new_answer,
        }


def flipped_samples(comparison: Comparison, flips: Flips, count: int) -> list[FlippedSample]:
    """Return the first changed samples, losses before gains.

    Args:
        comparison: comparison of the two results. The answers are read from their files.
        flips: changed samples of one metric.
        count: maximum number of samples.

    Raises:
        EvidenceError: a file has changed since the comparison.
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
    """Return the answer in the first trial of each sample by index, without samples that have no answer to
    show.

    The file is read again, because a comparison does not keep texts. Reading stops after the last requested
    sample.

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
        # A group of answers, a missing answer or a damaged sample cannot be displayed.
        with contextlib.suppress(SampleError, EvidenceError):
            trials = reader.typed_sample(part).trials
            solver = trials[0].solver if trials else None
            texts[part.position] = answer_text(None if solver is None else solver.output)
        wanted.discard(part.position)
        if not wanted:
            break
    return texts
