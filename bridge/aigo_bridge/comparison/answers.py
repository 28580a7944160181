"""The answers of a few samples, read from the file again: of a result's texts nothing is kept while it is
compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

from aigo_bridge.errors import EvidenceError, SampleError
from aigo_bridge.results import LogReader
from aigo_bridge.results.reading import SamplePart
from aigo_bridge.scoring.variables import answer_text


def answers(path: Path, positions: Collection[int]) -> dict[int, str]:
    """Position of a sample → its answer in the first trial; without those that have none to show.

    Reading ends with the last of them.

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
