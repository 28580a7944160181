"""Parts of a sample as it is written in a result: row, scores and texts; also in the legacy form, and where a
value is not of the type that AI GO expects.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from aigo_bridge.metrics.grades import score_number
from aigo_bridge.results.counts import trials_of
from aigo_bridge.results.reading import SamplePart
from aigo_bridge.results.rows import items_of
from aigo_bridge.results.values import Json, mappings, member
from aigo_bridge.results.values import value_text as cut_text


def data_of(sample: Json, trial: Json) -> Json:
    """The row of the dataset."""
    for data in (member(trial, "sample", "data"), member(sample, "sample", "data")):
        if isinstance(data, dict):
            return data
    return {}


def values_of(score: Json) -> Iterator[tuple[str, Any]]:
    """Name and value of what a scorer says."""
    values = score.get("values")
    yield from values.items() if isinstance(values, dict) else ()


def mean_score(part: SamplePart, score: str, *, graded: bool) -> float | None:
    """The mean of a score over the trials of a sample that have it as a number; `None`: none of them has.

    Args:
        part: the sample.
        score: `scorer.score`.
        graded: whether the scores are Inspect's, whose letters count as numbers.
    """
    numbers = [
        double
        for trial in trials_of(part.value)
        for name, double in numbers_of(trial, graded=graded)
        if name == score and double is not None
    ]
    return math.fsum(numbers) / len(numbers) if numbers else None


def numbers_of(trial: Json, *, graded: bool) -> Iterator[tuple[str, float | None]]:
    """Yield `scorer.score` and its number for each score of a trial; `graded` as in `mean_score`."""
    for score in mappings(trial.get("scores")):
        for name, value in values_of(score):
            yield f"{score.get('scorer_key')}.{name}", score_number(value, graded=graded)


_CUSTOM = {"custom_task_input_message": "user", "custom_task_output_message": "assistant"}


def role_of(item: Json) -> str:
    """Who a message is of; the type of what is no message."""
    kind = str(item.get("type"))
    return _CUSTOM.get(kind) or str(item.get("role") or kind)


def last_text(outputs: Sequence[Json], role: str) -> str | None:
    """The text of the last message of a role, in the last conversation that has one."""
    for output in reversed(outputs):
        for item in reversed(list(items_of(output))):
            if role_of(item) == role:
                return message_text(item.get("content"))
    return None


def message_text(content: Any) -> str:
    """The texts of a message, one line after the other; a custom task's value as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return value_text(content)
    texts = [part.get("text") or part.get("refusal") for part in mappings(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def value_text(value: Any) -> str:
    """A value in full: a text as it is, all else as JSON."""
    return cut_text(value, sys.maxsize)
