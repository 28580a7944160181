"""The scores of a result as columns, read sample by sample: of the samples themselves nothing stays but their
ids and digests.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.dtypes.task_result import one_trial
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.metrics.grades import is_grade, is_graded, is_missing
from aigo_bridge.process import no_collections
from aigo_bridge.results.counts import Counts, CountsTally, SampleFacts, State, sample_facts, scorers_in
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart

SampleId = str | int | None
Score = tuple[str, str]
"""Key of a scorer, and name of one of its scores."""

_ROW = re.compile(r"(?P<source>.+)#\d+")
"""Id of a row that a post-processor made of a sample."""

_NO_DATA = 0

GRADE = "grade"

METADATA = "metadata."
"""Prefix of the name of a column in the metadata of a sample of Inspect."""

USAGE = ("total_tokens", "total_time")
"""What a trace says of its cost."""


@dataclass
class Column:
    """One score over the samples; a sample without it is not in `positions`."""

    positions: array[int] = field(default_factory=lambda: array("q"))
    values: list[Any] = field(default_factory=list)
    """What metrics see: with several trials what they come to."""
    trials: dict[int, list[Any]] = field(default_factory=dict)
    """Position of a sample with several trials → the values that they gave."""
    types: set[object] = field(default_factory=set)
    """Types of the values that scorers gave in single trials; `GRADE` for a text that Inspect counts."""


@dataclass
class Columns:
    """A result without its samples' texts."""

    path: Path
    frame: TaskResultLog
    """The log without its samples."""
    specification: Mapping[str, Any]
    """What was evaluated, as it is written."""
    ids: list[SampleId]
    digests: NDArray[np.int64]
    """Of the values in the dataset; equal for equal rows within one process, 0 for a sample without any."""
    states: NDArray[np.int8]
    """A `State` each (see `results.counts`)."""
    excluded: NDArray[np.bool_]
    """Whether an action rule keeps each sample out of the metrics; failed samples can be among them."""
    counted: NDArray[np.bool_]
    """Whether each sample is in the metrics, if it has scores: no action rule excludes it, and all could
    be evaluated."""
    trials: NDArray[np.int64]
    """Number of trials of each sample."""
    failed_trials: NDArray[np.int64]
    """Number of failed trials of each sample."""
    unfinished_trials: NDArray[np.int64]
    """Number of trials of each sample that did not finish."""
    counts: Counts
    scores: dict[Score, Column]
    scored_by: dict[str, array[int]]
    """Key of a scorer → positions of the samples that it gave scores to."""
    values: dict[str, list[Any]]
    """Column of the dataset that was asked for → its value in each sample."""
    num_trials: int
    """The most trials that a sample has."""
    runs: int = 0
    """Runs of a repeatability result; their samples are not here."""

    name: str | None = None
    """Name of the result, e.g. `export/run.yaml#quiz`; `None`: its path."""

    usage: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """`total_tokens` and `total_time` (seconds) of each sample over its trials; NaN where unknown."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def label(self) -> str:
        """Name of the result as it is shown."""
        return str(self.path) if self.name is None else self.name

    @property
    def graded(self) -> bool:
        """Whether scores are Inspect's, whose letters count as numbers."""
        return is_graded(self.frame.specification.config)

    @property
    def definition(self) -> Mapping[str, Any]:
        """The task's definition as it is written."""
        definition = (self.specification.get("task") or {}).get("definition")
        return definition if isinstance(definition, dict) else {}

    def groups(self, column: str | None) -> NDArray[np.int64] | None:
        """Number of each sample's group: those with one value in a column, or rows made of one sample;
        `None`: each stands for itself.
        """
        if column is not None:
            return _numbered(_hashable(value) for value in self.values[column])
        solver = self.definition.get("solver")
        if not (isinstance(solver, dict) and solver.get("postprocessor")):
            return None
        sources = [_ROW.fullmatch(text) if isinstance(text, str) else None for text in self.ids]
        if not any(sources):
            return None
        return _numbered(
            sample if match is None else match["source"]
            for sample, match in zip(self.ids, sources, strict=True)
        )


def _numbered(values: Any) -> NDArray[np.int64]:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _hashable(value: Any) -> Any:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if isinstance(value, dict | list) else value


def read_columns(path: Path, names: Collection[str] = ()) -> Columns:
    """Read a result; columns that its metrics group samples by are read with it.

    Args:
        path: a result log.
        names: of columns of the dataset whose values are needed.

    Raises:
        EvidenceError: the file cannot be read, is cut off or malformed.
        UsageError: the suffix is not that of a result log.
    """
    columns = _read(path, names)
    missing = group_columns(columns.specification) - columns.values.keys()
    return _read(path, [*names, *sorted(missing)]) if missing else columns


def group_columns(specification: Mapping[str, Any]) -> set[str]:
    """Return the columns of the dataset that metrics of Inspect group samples by."""
    definition = (specification.get("task") or {}).get("definition") or {}
    names: set[str] = set()
    for scorer in definition.get("scorers") or ():
        for metric in (scorer.get("metrics") if isinstance(scorer, dict) else None) or ():
            parameters = metric.get("params") if isinstance(metric, dict) else None
            given = parameters if isinstance(parameters, dict) else {}
            columns = (given.get(name) for name in ("group_key", "cluster"))
            names.update(f"{METADATA}{column}" for column in columns if isinstance(column, str))
    return names


def _read(path: Path, names: Collection[str]) -> Columns:
    reader = LogReader(path)
    columns = ColumnsReader(names)
    with no_collections():
        for part in reader.parts():
            if isinstance(part, FramePart):
                return columns.finished(path, reader.typed_frame(part), part.value)
            try:
                columns.add(part)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                # Samples are read unchecked, for speed: this one does not fit.
                reader.typed_sample(part)
                issue = Issue(
                    f"cannot be read: {error}", file=str(path), path=part.path, code=Code.DAMAGED_RESULT
                )
                raise EvidenceError([issue]) from error
    raise AssertionError("parts() ends with the frame or raises")


class ColumnsReader:
    """Columns while they are filled, sample by sample."""

    def __init__(self, names: Collection[str] = ()):
        self._ids: list[SampleId] = []
        self._digests = array("q")
        self._facts: dict[SampleFacts, int] = {}
        self._facts_of = array("q")
        self._tally = CountsTally()
        self._tally_of_runs = CountsTally()
        self._scores: dict[Score, Column] = {}
        self._scored_by: dict[str, array[int]] = {}
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._usage = {name: array("d") for name in USAGE}
        self._num_trials = 1
        self._runs = 0

    def add(self, part: SamplePart) -> None:
        """Take in a sample."""
        if part.run is not None:
            self._runs = max(self._runs, part.run + 1)
            self._tally_of_runs.add(sample_facts(part.value))
            return
        sample = part.value
        facts = sample_facts(sample)
        self._tally.add(facts)
        self._facts_of.append(self._facts.setdefault(facts, len(self._facts)))
        trials = sample.get("trials")
        if not trials:
            sample = one_trial(sample)
            trials = sample["trials"]
        position = len(self._ids)
        self._ids.append(sample.get("sample_id"))
        row = ((trials[0].get("sample") or sample.get("sample")) or {}).get("data")
        self._digests.append(_digest(row))
        for name, values in self._values.items():
            values.append(_cell(row or {}, name))
        single = len(trials) == 1
        scores = (trials[0] if single else sample).get("scores") or ()
        self._add_usage(trials)
        for score in scores:
            self._add_scores(position, score, single=single)
        if not single:
            self._num_trials = max(self._num_trials, len(trials))
            self._add_trials(position, trials)

    def _add_scores(self, position: int, score: Mapping[str, Any], *, single: bool) -> None:
        key = score["scorer_key"]
        scored = self._scored_by.get(key)
        if scored is None:
            scored = self._scored_by[key] = array("q")
        scored.append(position)
        metadata = score.get("metadata")
        infinite = (metadata.get("not_finite") if metadata else None) or {}
        for name, value in (score.get("values") or {}).items():
            column = self._scores.get((key, name))
            if column is None:
                column = self._scores[key, name] = Column()
            if single and value is not None:
                column.types.add(GRADE if is_grade(value) else type(value))
            column.positions.append(position)
            column.values.append(float(infinite[name]) if name in infinite else value)

    def _add_usage(self, trials: list[dict[str, Any]]) -> None:
        parts = [_trace_metadata(trial) for trial in trials]
        for name, values in self._usage.items():
            total = 0.0
            for part in parts:
                value = part.get(name)
                total += value if isinstance(value, int | float) else math.nan
            values.append(total)

    def _add_trials(self, position: int, trials: list[dict[str, Any]]) -> None:
        for trial in trials:
            for score in trial.get("scores") or ():
                for name, value in (score.get("values") or {}).items():
                    column = self._scores.setdefault((score["scorer_key"], name), Column())
                    values = column.trials.setdefault(position, [])
                    if not is_missing(value):
                        column.types.add(GRADE if is_grade(value) else type(value))
                        values.append(value)

    def finished(self, path: Path, frame: TaskResultLog, raw: Mapping[str, Any]) -> Columns:
        """The columns of all samples.

        Args:
            path: of the result.
            frame: the log without its samples.
            raw: the same as it is written.
        """
        runs = (frame.evidence.runs if frame.evidence is not None else None) or ()
        specification = raw.get("specification") or {}
        num_scorers = scorers_in(specification)
        number, facts = np.array(self._facts_of, dtype=np.int64), list(self._facts)

        def of_samples(kind: type, get: Callable[[SampleFacts], int]) -> NDArray[Any]:
            return np.array([get(one) for one in facts], dtype=kind)[number]

        of_runs = self._tally_of_runs.counts(num_scorers)
        return Columns(
            path=path,
            frame=frame,
            specification=specification,
            ids=self._ids,
            digests=np.array(self._digests, dtype=np.int64),
            states=of_samples(np.int8, lambda one: one.state(num_scorers)),
            excluded=of_samples(np.bool_, lambda one: one.is_excluded),
            counted=of_samples(np.bool_, lambda one: not (one.is_excluded or one.is_undecided)),
            trials=of_samples(np.int64, lambda one: one.num_trials),
            failed_trials=of_samples(np.int64, lambda one: one.trials[State.FAILED]),
            unfinished_trials=of_samples(np.int64, lambda one: one.trials[State.UNFINISHED]),
            counts=of_runs if of_runs.samples else self._tally.counts(num_scorers),
            scores=self._scores,
            scored_by=self._scored_by,
            values=self._values,
            num_trials=self._num_trials,
            runs=max(self._runs, len(runs)),
            usage={name: np.array(values) for name, values in self._usage.items()},
        )


def _trace_metadata(trial: Mapping[str, Any]) -> Mapping[str, Any]:
    solver = trial.get("solver") or {}
    output = solver.get("output") or {}
    trace = output.get("trace") or {}
    metadata: Mapping[str, Any] = trace.get("metadata") or {}
    return metadata


def _cell(row: Mapping[str, Any], name: str) -> Any:
    """Return a value of a row; `metadata.NAME` also finds a name in the metadata of a sample of Inspect."""
    metadata = row.get("metadata")
    if name in row or not name.startswith(METADATA) or not isinstance(metadata, dict):
        return row.get(name)
    return metadata.get(name.removeprefix(METADATA))


def _digest(row: Any) -> int:
    return hash(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)) or 1 if row else _NO_DATA
