"""Faults of our own after the last model call: they are told in the evidence, which is written all the same.

What a run has cost is in its evidence. An exception while it is put together must not lose it: the part that
could not be made is left out, and the errors of the result say which it was and why. Of all the errors of a
run the first of each kind are shown, with their number.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import Any, TypeVar

from aigo_bridge.dtypes import (
    SampleEvidence,
    SampleTrialEvidence,
    TaskResultError,
    TaskResultErrorStage,
)
from aigo_bridge.errors import BridgeError, Stage, error_kind
from aigo_bridge.results.writing import encoded_sample
from aigo_bridge.text.plurals import plural

T = TypeVar("T")
D = TypeVar("D")

LONGEST_MESSAGE = 1000
"""Characters of an exception's message that are kept."""

PACKAGES = ("aigo_bridge", "aigo_inspect", "aigo_lighteval")


@dataclass
class Faults:
    """What went wrong while evidence was put together."""

    errors: list[TaskResultError] = field(default_factory=list)

    def attempt(self, what: str, stage: Stage, compute: Callable[[], T], otherwise: D) -> T | D:
        """The value, or `otherwise` where computing it fails; `what` says what has failed: `the metrics could
        not be computed`.
        """
        try:
            return compute()
        except Exception as error:  # noqa: BLE001  # whatever it is: evidence that was paid for is written
            self.note(what, stage, error)
            return otherwise

    def note(self, what: str, stage: Stage, error: Exception) -> TaskResultError:
        """Keep a fault; returns it as evidence has it."""
        fault = error_of(what, stage, error)
        self.errors.append(fault)
        return fault

    def samples(self, samples: Iterator[SampleEvidence]) -> Iterator[tuple[SampleEvidence, bytes]]:
        """Samples with their JSON text, as long as they can be made; one that has no text stands there with
        the reason alone.
        """
        number = 0
        while True:
            try:
                sample = next(samples)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001  # as above
                self.note(
                    f"only the first {plural(number, 'sample')} could be read back from the native log",
                    "dataset",
                    error,
                )
                return
            number += 1
            what = f"sample {sample.sample_id!r} could not be written"
            text = self.attempt(what, "dataset", partial(encoded_sample, sample), None)
            if text is None:
                sample = bare_sample(sample.sample_id, self.errors[-1])
                text = self.attempt(what, "dataset", partial(encoded_sample, sample), None)
            if text is not None:
                yield sample, text


def error_of(what: str, stage: Stage, error: Exception) -> TaskResultError:
    """A fault as evidence has it."""
    return TaskResultError(
        error_type=type(error).__name__,
        message=f"{what}: {explained(error)}",
        stage=TaskResultErrorStage(stage),
    )


def explained(error: Exception) -> str:
    """An exception in a line: ours by their message, others with their kind and the line of our code."""
    text = " ".join(str(error).split())[:LONGEST_MESSAGE]
    if isinstance(error, BridgeError) and text:
        return text
    kind = type(error).__name__
    return f"{kind}: {text}{_origin(error)}" if text else f"{kind}{_origin(error)}"


def _origin(error: Exception) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        parts = PurePath(frame.filename).parts
        inside = [place for place, part in enumerate(parts) if part in PACKAGES]
        if inside:
            # From the package on: evidence tells nothing of the machine.
            return f" ({'/'.join(parts[inside[-1] :])}, line {frame.lineno})"
    return ""


def bare_sample(sample_id: str | int | None, error: TaskResultError) -> SampleEvidence:
    """A sample of which nothing but an error is known."""
    trial = SampleTrialEvidence(
        index=0, sample_id=sample_id, sample=None, solver=None, scores=None, errors=[error]
    )
    return SampleEvidence(
        sample_id=sample_id, sample=None, solver=None, scores=None, errors=[], trials=[trial]
    )


# Shown


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
            "trial": None if self.trial is None else self.trial + 1,
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
    for place, earlier in enumerate(errors):
        if _kind(earlier) == _kind(error):
            errors[place] = replace(earlier, count=earlier.count + 1)
            return
    if len(errors) < most:
        errors.append(error)


def _kind(error: FirstError) -> tuple[object, ...]:
    return error.error.stage, error.error.error_type, error_kind(error.error.message)
