"""Errors of aigo-bridge after the last model call. The evidence is written anyway and contains them.

Model calls are paid for, so an exception during assembly must not lose the evidence. The missing part is
left out, and the errors of the result name it with the reason. The terminal shows the first error of each
kind, with the number of its occurrences.
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
from aigo_bridge.results.writing import Sample, encoded_sample
from aigo_bridge.text.plurals import plural

T = TypeVar("T")
D = TypeVar("D")

LONGEST_MESSAGE = 1000
"""Maximum number of characters to keep of an exception message."""

PACKAGES = ("aigo_bridge", "aigo_inspect", "aigo_lighteval")


@dataclass
class Faults:
    """Errors during the assembly of evidence."""

    errors: list[TaskResultError] = field(default_factory=list)

    def attempt(self, what: str, stage: Stage, compute: Callable[[], T], otherwise: D) -> T | D:
        """Return the computed value, or `otherwise` after an exception. `what` describes the failure: `the
        metrics could not be computed`.
        """
        try:
            return compute()
        except Exception as error:  # noqa: BLE001  # any error: paid evidence is still written
            self.note(what, stage, error)
            return otherwise

    def note(self, what: str, stage: Stage, error: Exception) -> TaskResultError:
        """Record an error and return it as evidence."""
        fault = error_of(what, stage, error)
        self.errors.append(fault)
        return fault

    def samples(
        self, samples: Iterator[tuple[SampleEvidence, Sample]]
    ) -> Iterator[tuple[SampleEvidence, bytes]]:
        """Convert the form to write to JSON text, until no more samples can be created. A sample that cannot
        be encoded is replaced by its error.
        """
        number = 0
        while True:
            try:
                sample, written = next(samples)
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
            text = self.attempt(what, "dataset", partial(encoded_sample, written), None)
            if text is None:
                sample = bare_sample(sample.sample_id, self.errors[-1])
                text = self.attempt(what, "dataset", partial(encoded_sample, sample), None)
            if text is not None:
                yield sample, text


def error_of(what: str, stage: Stage, error: Exception) -> TaskResultError:
    """Convert an exception to an error of the evidence."""
    return TaskResultError(
        error_type=type(error).__name__,
        message=f"{what}: {explained(error)}",
        stage=TaskResultErrorStage(stage),
    )


def explained(error: Exception) -> str:
    """Describe an exception in one line: aigo-bridge's message, otherwise type, message and source line."""
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
            # Start the path at the package, so that evidence does not reveal paths of the machine.
            return f" ({'/'.join(parts[inside[-1] :])}, line {frame.lineno})"
    return ""


def bare_sample(sample_id: str | int | None, error: TaskResultError) -> SampleEvidence:
    """Return a sample that contains only an error."""
    trial = SampleTrialEvidence(
        index=0, sample_id=sample_id, sample=None, solver=None, scores=None, errors=[error]
    )
    return SampleEvidence(
        sample_id=sample_id, sample=None, solver=None, scores=None, errors=[], trials=[trial]
    )


# Terminal output


@dataclass(frozen=True)
class FirstError:
    """First error of its kind in a run, for the terminal."""

    sample_id: str | int
    error: TaskResultError
    trial: int | None = None
    """Number of the trial, from 0; `None` if the sample has only one or the error is not specific to a
    trial.
    """
    count: int = 1
    """Number of samples whose first error is of this kind."""

    @property
    def more(self) -> str:
        """Text about the number of other samples, to append to the message; empty if there are none."""
        return more_samples(self.count)

    @property
    def where(self) -> str:
        """Sample and trial for display. Trials are counted from 1."""
        return f"sample {self.sample_id}" + ("" if self.trial is None else f", trial {self.trial + 1}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
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
    """Return the number of other samples with the same error, to append; empty for a single sample."""
    return f" (and {count - 1} more sample{'s' * (count > 2)})" if count > 1 else ""


def note_error(errors: list[FirstError], error: FirstError, most: int) -> None:
    """Record the first error of a sample, or count it if an earlier error has the same kind. At most `most`
    kinds are recorded.
    """
    for place, earlier in enumerate(errors):
        if _kind(earlier) == _kind(error):
            errors[place] = replace(earlier, count=earlier.count + 1)
            return
    if len(errors) < most:
        errors.append(error)


def _kind(error: FirstError) -> tuple[object, ...]:
    return error.error.stage, error.error.error_type, error_kind(error.error.message)
