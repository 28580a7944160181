"""The errors of a run that are shown: the first of each kind, and how many there are of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from aigo_bridge.dtypes import TaskResultError
from aigo_bridge.errors import error_kind


@dataclass(frozen=True)
class FirstError:
    """The first error of its kind in a run, for the terminal."""

    sample_id: str | int
    error: TaskResultError
    trial: int | None = None
    """Number of the trial, from 0; `None` where the sample has one, or the error is of none."""
    count: int = 1
    """Samples whose first error is of that kind."""

    @property
    def more(self) -> str:
        """How many others there are, to be put behind the message; empty for none."""
        return more_samples(self.count)

    @property
    def where(self) -> str:
        """Sample and trial for people, who count trials from 1."""
        return f"sample {self.sample_id}" + ("" if self.trial is None else f", trial {self.trial + 1}")

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        stage = None if self.error.stage is None else self.error.stage.value
        return {
            "sample_id": self.sample_id,
            "trial": self.trial,
            "stage": stage,
            "message": self.error.message,
            "hint": self.error.hint,
            "count": self.count,
        }


def more_samples(count: int) -> str:
    """That an error was not that of one sample alone, to be put behind its message; empty where it was."""
    return f" (and {count - 1} more sample{'s' * (count > 2)})" if count > 1 else ""


def note_error(errors: list[FirstError], error: FirstError, most: int) -> None:
    """Keep the first error of a sample among those of at most `most` kinds, or count it with its kind."""
    for place, kept in enumerate(errors):
        if _kind(kept) == _kind(error):
            errors[place] = replace(kept, count=kept.count + 1)
            return
    if len(errors) < most:
        errors.append(error)


def _kind(first: FirstError) -> tuple[object, ...]:
    return first.error.stage, first.error.error_type, error_kind(first.error.message)
