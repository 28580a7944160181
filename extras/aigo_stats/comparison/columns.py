"""Scores of a result as columns. Samples are read one by one, and only their IDs and digests are kept."""

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
from aigo_bridge.results.counts import Counts, CountsTally, SampleFacts, SampleState, sample_facts, scorers_in
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart

SampleId = str | int | None
Score = tuple[str, str]
"""Key of a scorer and name of one of its scores."""

_ROW = re.compile(r"(?P<source>.+)#\d+")
"""Pattern of the ID of a row that a post-processor created from a sample."""

_NO_DATA = 0

GRADE = "grade"

METADATA = "metadata."
"""Name prefix of columns from the metadata of an Inspect sample."""

USAGE = ("total_tokens", "total_time")
"""Cost fields in a trace."""


@dataclass
class ScoreColumn:
    """One score over the samples. `positions` contains only samples with this score."""

    positions: array[int] = field(default_factory=lambda: array("q"))
    values: list[Any] = field(default_factory=list)
    """Values used by metrics. For several trials, this is the aggregated value."""
    trials: dict[int, list[Any]] = field(default_factory=dict)
    """Trial values for each sample with several trials, by sample index."""
    types: set[object] = field(default_factory=set)
    """Types of the trial values from scorers; `GRADE` for text that Inspect counts as a number."""


@dataclass
class ResultColumns:
    """Result without the texts of its samples."""

    path: Path
    frame: TaskResultLog
    """Log without its samples."""
    specification: Mapping[str, Any]
    """Raw specification of the evaluation."""
    ids: list[SampleId]
    digests: NDArray[np.int64]
    """Digest of the dataset row of each sample; 0 without a row. Digests are comparable within one
    process."""
    states: NDArray[np.int8]
    """`SampleState` of each sample (see `results.counts`)."""
    excluded: NDArray[np.bool_]
    """Whether an action rule excludes each sample from the metrics. Failed samples may be included."""
    counted: NDArray[np.bool_]
    """Whether the scores of each sample count in metrics: no action rule excludes it, and all rules were
    evaluated.
    """
    trials: NDArray[np.int64]
    """Number of trials of each sample."""
    failed_trials: NDArray[np.int64]
    """Number of failed trials of each sample."""
    unfinished_trials: NDArray[np.int64]
    """Number of trials of each sample that did not finish."""
    counts: Counts
    scores: dict[Score, ScoreColumn]
    scored_by: dict[str, array[int]]
    """Indices of the samples with scores from each scorer."""
    values: dict[str, list[Any]]
    """Requested dataset columns, with one value for each sample."""
    num_trials: int
    """Maximum number of trials of a sample."""
    runs: int = 0
    """Number of runs of a repeatability result. Their samples are not included here."""

    name: str | None = None
    """Name of the result, e.g. `export/run.yaml#quiz`; `None` for its path."""

    usage: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """`total_tokens` and `total_time` (seconds) of each sample, summed over its trials; NaN if unknown."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def label(self) -> str:
        """Display name of the result."""
        return str(self.path) if self.name is None else self.name

    @property
    def errors(self) -> list[str]:
        """Errors of the whole log, such as a metric that is not finite."""
        evidence = self.frame.evidence
        return [error.message for error in [*self.frame.errors, *(evidence.errors if evidence else ())]]

    @property
    def graded(self) -> bool:
        """Whether scores are Inspect's, so that letters count as numbers."""
        return is_graded(self.frame.specification.config)

    @property
    def definition(self) -> Mapping[str, Any]:
        """Raw definition of the task."""
        definition = (self.specification.get("task") or {}).get("definition")
        return definition if isinstance(definition, dict) else {}

    def groups(self, column: str | None) -> NDArray[np.int64] | None:
        """Return the group number of each sample; `None` for independent samples.

        A group has the same value in a column, or consists of rows created from one sample.
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


def read_columns(path: Path, names: Collection[str] = ()) -> ResultColumns:
    """Read a result, including the columns by which its metrics group samples.

    Args:
        path: path of a result log.
        names: names of additional dataset columns to read.

    Raises:
        EvidenceError: the file cannot be read, is truncated or malformed.
        UsageError: the file extension does not belong to a result log.
    """
    columns = _read(path, names)
    missing = group_columns(columns.specification) - columns.values.keys()
    return _read(path, [*names, *sorted(missing)]) if missing else columns


def group_columns(specification: Mapping[str, Any]) -> set[str]:
    """Return the dataset columns by which Inspect metrics group samples."""
    definition = (specification.get("task") or {}).get("definition") or {}
    names: set[str] = set()
    for scorer in definition.get("scorers") or ():
        for metric in (scorer.get("metrics") if isinstance(scorer, dict) else None) or ():
            parameters = metric.get("params") if isinstance(metric, dict) else None
            given = parameters if isinstance(parameters, dict) else {}
            columns = (given.get(name) for name in ("group_key", "cluster"))
            names.update(f"{METADATA}{column}" for column in columns if isinstance(column, str))
    return names


def _read(path: Path, names: Collection[str]) -> ResultColumns:
    reader = LogReader(path)
    columns = ColumnsReader(names)
    with no_collections():
        for part in reader.parts():
            if isinstance(part, FramePart):
                return columns.finished(path, reader.typed_frame(part), part.value)
            try:
                columns.add(part)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                # Samples are read without validation for speed, and this one does not fit.
                reader.typed_sample(part)
                issue = Issue(
                    f"cannot be read: {error}", file=str(path), path=part.path, code=Code.DAMAGED_RESULT
                )
                raise EvidenceError([issue]) from error
    raise AssertionError("parts() ends with the frame or raises")


class ColumnsReader:
    """Reader that fills columns sample by sample."""

    def __init__(self, names: Collection[str] = ()):
        self._ids: list[SampleId] = []
        self._digests = array("q")
        self._facts: dict[SampleFacts, int] = {}
        self._facts_of = array("q")
        self._tally_of_runs = CountsTally()
        self._scores: dict[Score, ScoreColumn] = {}
        self._scored_by: dict[str, array[int]] = {}
        self._values: dict[str, list[Any]] = {name: [] for name in names}
        self._usage = {name: array("d") for name in USAGE}
        self._num_trials = 1
        self._runs = 0

    def add(self, part: SamplePart) -> None:
        """Add a sample."""
        if part.run is not None:
            self._runs = max(self._runs, part.run + 1)
            self._tally_of_runs.add(sample_facts(part.value))
            return
        sample = part.value
        facts = sample_facts(sample)
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
                column = self._scores[key, name] = ScoreColumn()
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
                    column = self._scores.setdefault((score["scorer_key"], name), ScoreColumn())
                    values = column.trials.setdefault(position, [])
                    if not is_missing(value):
                        column.types.add(GRADE if is_grade(value) else type(value))
                        values.append(value)

    def finished(self, path: Path, frame: TaskResultLog, raw: Mapping[str, Any]) -> ResultColumns:
        """Return the columns of all samples.

        Args:
            path: path of the result.
            frame: log without its samples.
            raw: raw JSON of the frame.
        """
        runs = (frame.evidence.runs if frame.evidence is not None else None) or ()
        specification = raw.get("specification") or {}
        num_scorers = scorers_in(specification)
        number, facts = np.array(self._facts_of, dtype=np.int64), list(self._facts)

        def of_samples(kind: type, get: Callable[[SampleFacts], int]) -> NDArray[Any]:
            return np.array([get(one) for one in facts], dtype=kind)[number]

        tally = CountsTally()
        for one, count in zip(facts, np.bincount(number, minlength=len(facts)), strict=True):
            tally.add(one, int(count))
        of_runs = self._tally_of_runs.counts(num_scorers)
        return ResultColumns(
            path=path,
            frame=frame,
            specification=specification,
            ids=self._ids,
            digests=np.array(self._digests, dtype=np.int64),
            states=of_samples(np.int8, lambda one: one.state(num_scorers)),
            excluded=of_samples(np.bool_, lambda one: one.is_excluded),
            counted=of_samples(np.bool_, lambda one: not (one.is_excluded or one.is_undecided)),
            trials=of_samples(np.int64, lambda one: one.num_trials),
            failed_trials=of_samples(np.int64, lambda one: one.trials[SampleState.FAILED]),
            unfinished_trials=of_samples(np.int64, lambda one: one.trials[SampleState.UNFINISHED]),
            counts=of_runs if of_runs.samples else tally.counts(num_scorers),
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
    """Return a value of a row. The name `metadata.NAME` also matches the metadata of an Inspect sample."""
    metadata = row.get("metadata")
    if name in row or not name.startswith(METADATA) or not isinstance(metadata, dict):
        return row.get(name)
    return metadata.get(name.removeprefix(METADATA))


def _digest(row: Any) -> int:
    return hash(orjson.dumps(row, option=orjson.OPT_SORT_KEYS)) or 1 if row else _NO_DATA
