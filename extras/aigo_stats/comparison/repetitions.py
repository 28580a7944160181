"""Repetitions of one task: several results, runs of a repeatability result, or trials.

The module computes the sources of score variance, and finds samples whose scores change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from aigo_bridge.codes import Code
from aigo_bridge.dtypes.task_result import one_trial
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.metrics.grades import graded_number, is_graded, is_missing
from aigo_bridge.process import no_collections
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart
from aigo_bridge.text.summaries import short
from aigo_stats.statistics.components import Components, components

Score = tuple[str, str]
"""Key of a scorer and name of one of its scores."""

Key = tuple[type, Any]
"""ID that identifies a sample in every repetition."""

Time = tuple[int, int | None, int]
"""Index of a result, of a run in it, and of a trial."""


@dataclass(frozen=True)
class FlakySample:
    """Sample with different scores in different repetitions."""

    sample_id: Any
    scores: tuple[float, ...]
    """Scores in the order of the repetitions."""


@dataclass(frozen=True)
class Repeatability:
    """One score over all repetitions."""

    scorer: str
    name: str
    means: tuple[float, ...]
    """Mean over the samples in each repetition with this score."""
    num_samples: int
    """Number of samples scored more than once."""
    components: Components | None
    """Variance components; `None` if unknown, see `reason`."""
    reason: str | None
    flaky: tuple[FlakySample, ...]
    """Samples with changing scores, largest changes first."""

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean of one repetition with this number of samples."""
        parts = self.components
        return None if parts is None else math.sqrt((parts.sampling + parts.within) / self.num_samples)

    def to_json(self, most: int) -> dict[str, Any]:
        """Return a JSON-serializable dictionary with at most `most` flaky samples."""
        parts = self.components
        return {
            "scorer": self.scorer,
            "name": self.name,
            "means": list(self.means),
            "samples": self.num_samples,
            "variance": None
            if parts is None
            else {
                "sampling": parts.sampling,
                "model_and_judge": parts.within,
                "model": parts.model,
                "judge": parts.judge,
            },
            "reason": self.reason,
            "standard_error": self.standard_error,
            "num_flaky": len(self.flaky),
            "flaky": [
                {"sample_id": sample.sample_id, "scores": list(sample.scores)} for sample in self.flaky[:most]
            ],
        }


@dataclass
class _Times:
    """Scores of one sample."""

    times: list[Time] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class _Reading:
    """Scores and answers of all repetitions while they are read."""

    def __init__(self) -> None:
        self.scores: dict[Score, dict[Key, _Times]] = {}
        self.texts: dict[Time, dict[Key, int]] = {}
        """Digests of answers. Equal answers have equal digests within one process."""
        self.rows: dict[Key, int] = {}
        self.odd: set[Key] = set()
        """Samples whose ID is used for several rows, or occurs twice in one repetition."""
        self.problems: dict[Score, str] = {}
        self.letters: dict[Score, Any] = {}
        """Text scores that Inspect counts as a number, with an example text."""

    def add(self, number: int, part: SamplePart) -> None:
        sample = part.value if part.value.get("trials") else one_trial(part.value)
        if sample.get("action_records"):
            return
        key = (type(sample.get("sample_id")), sample.get("sample_id"))
        for position, trial in enumerate(sample["trials"]):
            time = (number, part.run, position)
            row = hash(orjson.dumps((trial.get("sample") or {}).get("data"), option=orjson.OPT_SORT_KEYS))
            texts = self.texts.setdefault(time, {})
            if key in texts or self.rows.setdefault(key, row) != row:
                self.odd.add(key)
                continue
            texts[key] = _answer(trial)
            for score in trial.get("scores") or ():
                self._add_scores(time, key, score)

    def _add_scores(self, time: Time, key: Key, score: Mapping[str, Any]) -> None:
        for name, value in (score.get("values") or {}).items():
            place = (score["scorer_key"], name)
            if is_missing(value):
                continue
            number = graded_number(value)
            if number is None:
                self.problems[place] = f"the score {short(value)} is not a number"
                continue
            if isinstance(value, str):
                self.letters[place] = value
            times = self.scores.setdefault(place, {}).setdefault(key, _Times())
            times.times.append(time)
            times.values.append(number)


def _answer(trial: Mapping[str, Any]) -> int:
    """Return the digest of the model's message texts, or of the whole output without messages."""
    output = (trial.get("solver") or {}).get("output") or {}
    items = (output.get("trace") or {}).get("items") or ()
    contents = [item.get("content") or () for item in items if item.get("role") == "assistant"]
    texts = [
        content if isinstance(content, str) else [part.get("text") for part in content]
        for content in contents
    ]
    return hash(orjson.dumps(texts or output.get("raw_outputs") or output, option=orjson.OPT_SORT_KEYS))


def repeatability(results: Sequence[Path]) -> tuple[list[Repeatability], int]:
    """Return every score over all repetitions, and the number of samples skipped because of ambiguous IDs.

    Args:
        results: results of one task.

    Raises:
        EvidenceError: a file cannot be read.
        UsageError: the results belong to different tasks.
    """
    reading = _Reading()
    definitions: list[Any] = []
    with no_collections():
        for number, path in enumerate(results):
            definitions.append(_read(reading, number, path))
            if definitions[-1] != definitions[0]:
                raise UsageError(
                    f"{results[0]} and {path} are of tasks with different definitions, expected repetitions "
                    f"of one; show the differences with: aigo-bridge compare {results[0]} {path}",
                    code=Code.INCOMPARABLE_RESULTS,
                )
    draws = _draws(reading.texts)
    places = dict.fromkeys((*reading.scores, *reading.problems))
    return [_repeatability(reading, place, draws) for place in places], len(reading.odd)


def _read(reading: _Reading, number: int, path: Path) -> Any:
    """Add a result, and return the definition of its task."""
    for part in LogReader(path).parts():
        if isinstance(part, FramePart):
            specification = part.value.get("specification") or {}
            if not is_graded(specification.get("config")):
                for place, value in reading.letters.items():
                    reading.problems[place] = f"the score {short(value)} is not a number"
            return (specification.get("task") or {}).get("definition")
        try:
            reading.add(number, part)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            LogReader(path).typed_sample(part)
            issue = Issue(
                f"cannot be read: {error}", file=str(path), path=part.path, code=Code.DAMAGED_RESULT
            )
            raise EvidenceError([issue]) from error
    raise AssertionError("parts() ends with the frame or raises")


def _draws(texts: Mapping[Time, Mapping[Key, int]]) -> dict[Time, int]:
    """Return the answer number of each repetition. Repetitions with equal answers were only scored again."""
    numbers: dict[frozenset[tuple[Key, int]], int] = {}
    return {
        time: numbers.setdefault(frozenset(answers.items()), len(numbers)) for time, answers in texts.items()
    }


def _repeatability(reading: _Reading, place: Score, draws: Mapping[Time, int]) -> Repeatability:
    if place in reading.problems:
        return Repeatability(*place, (), 0, None, reading.problems[place], ())
    samples = {key: times for key, times in reading.scores[place].items() if key not in reading.odd}
    by_time: dict[Time, list[float]] = {}
    for times in samples.values():
        for time, value in zip(times.times, times.values, strict=True):
            by_time.setdefault(time, []).append(value)
    means = tuple(float(np.mean(by_time[time])) for time in reading.texts if time in by_time)
    repeated = {key: times for key, times in samples.items() if len(times.values) > 1}
    parts = components(
        [np.array(times.values) for times in repeated.values()],
        [[draws[time] for time in times.times] for times in repeated.values()],
        [[reading.texts[time][key] for time in times.times] for key, times in repeated.items()],
    )
    reason = None if parts is not None else "fewer than two samples were scored more than once"
    flaky = [
        FlakySample(key[1], tuple(times.values))
        for key, times in repeated.items()
        if len(set(times.values)) > 1
    ]
    flaky.sort(key=lambda sample: -float(np.var(sample.scores)))
    return Repeatability(*place, means, len(repeated), parts, reason, tuple(flaky))
