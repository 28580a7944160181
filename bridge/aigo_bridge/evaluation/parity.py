"""Comparison of the results of the same task on several engines.

The comparison covers the metrics and, for every sample and trial, the scores, the stages of failures and
the rules that exclude the sample. Texts and times may differ: a model that gives the same answer in other
words has the same scores. Numbers must be equal to the last digit, because every engine uses the same code
to compute them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.results.assembling import MetricRow
from aigo_bridge.results.reading import LogReader, SamplePart

MAX_FIRST = 5
"""Maximum number of samples to name."""

SampleId = str | int
_Key = tuple[int | None, str, SampleId]
"""Number of the run (repeatability), type of the id, id."""


@dataclass(frozen=True)
class MetricParity:
    """Comparison of one metric on all engines."""

    scorer_key: str
    name: str
    values: Mapping[str, float | int | None]
    """Engine → value; `None` if the metric was not computed."""
    num_scored: Mapping[str, int | None] = field(default_factory=dict)
    """Engine → number of samples that the value includes."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Engine → reason for a missing value, or a problem with it. Engines without a problem are left out."""

    @property
    def is_equal(self) -> bool:
        """Whether the value is equal, or missing, on all engines."""
        reference, *values = self.values.values()
        return all(_same(reference, value) for value in values)


@dataclass(frozen=True)
class Parity:
    """Agreement of the engines on one task."""

    statuses: Mapping[str, str]
    """Engine → status."""
    metrics: tuple[MetricParity, ...]
    """Metrics of all engines, in the order of the first engine that has them."""
    num_samples: int
    """Number of samples in any engine's result."""
    num_differing: int
    """Number of samples whose scores, failures or exclusions differ, or that an engine lacks."""
    first_differing: tuple[SampleId, ...]
    """Ids of the first differing samples."""

    @property
    def is_equal(self) -> bool:
        """Whether the engines agree on everything."""
        one_status = len(set(self.statuses.values())) == 1
        return one_status and not self.num_differing and all(metric.is_equal for metric in self.metrics)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "equal": self.is_equal,
            "status": dict(self.statuses),
            "metrics": [
                {
                    "scorer": metric.scorer_key,
                    "name": metric.name,
                    "equal": metric.is_equal,
                    "values": dict(metric.values),
                    "num_scored": dict(metric.num_scored),
                    "problems": dict(metric.problems),
                }
                for metric in self.metrics
            ],
            "samples": {
                "total": self.num_samples,
                "differing": self.num_differing,
                "first_differing": list(self.first_differing),
            },
        }


def parity(outcomes: Mapping[str, Outcome]) -> Parity:
    """Compare the results of at least two engines for one task; the first engine sets the order.

    Raises:
        EvidenceError: a result log cannot be read.
    """
    total, differing = _samples([outcome.result for outcome in outcomes.values()])
    return Parity(
        statuses={engine: outcome.status for engine, outcome in outcomes.items()},
        metrics=tuple(_metrics(outcomes)),
        num_samples=total,
        num_differing=len(differing),
        first_differing=tuple(differing[:MAX_FIRST]),
    )


def _metrics(outcomes: Mapping[str, Outcome]) -> Iterable[MetricParity]:
    tables = {engine: dict(_numbered(outcome.metrics)) for engine, outcome in outcomes.items()}
    for key in dict.fromkeys(key for table in tables.values() for key in table):
        rows = {engine: table.get(key) for engine, table in tables.items()}
        yield MetricParity(
            key[0],
            key[1],
            {engine: None if row is None else row.value for engine, row in rows.items()},
            {engine: row.num_scored for engine, row in rows.items() if row is not None},
            {engine: row.problem for engine, row in rows.items() if row is not None and row.problem},
        )


def _numbered(rows: Sequence[MetricRow]) -> Iterable[tuple[tuple[str, str, int], MetricRow]]:
    """Yield rows with scorer, name and number. A scorer may have two metrics with one name."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        seen[row.scorer_key, row.name] += 1
        yield (row.scorer_key, row.name, seen[row.scorer_key, row.name]), row


def _same(left: float | None, right: float | None) -> bool:
    both_nan = left is not None and right is not None and left != left and right != right
    return both_nan or left == right


def _samples(results: Sequence[Path | None]) -> tuple[int, list[SampleId]]:
    """Return the number of samples and the ids of those that differ, in the order of the results.

    Only a digest of each sample is kept, because results may be larger than memory.
    """
    digests = [{} if result is None else dict(_digests(result)) for result in results]
    keys = list(dict.fromkeys(key for of_one in digests for key in of_one))
    # For a task that ran several times, compare the samples of the runs instead of the samples across runs.
    keys = [key for key in keys if key[0] is not None] or keys
    differing = [key[2] for key in keys if len({of_one.get(key) for of_one in digests}) > 1]
    return len(keys), differing


def _digests(result: Path) -> Iterable[tuple[_Key, bytes]]:
    for part in LogReader(result).parts():
        if not isinstance(part, SamplePart):
            continue
        sample = part.value
        sample_id = sample.get("sample_id")
        sample_id = part.position if sample_id is None else sample_id
        text = json.dumps(compared_part(sample), sort_keys=True)
        yield (
            (part.run, type(sample_id).__name__, sample_id),
            hashlib.blake2b(text.encode(), digest_size=16).digest(),
        )


def compared_part(sample: Mapping[str, Any]) -> Any:
    """Return the compared part of a sample: scores and excluding rules, trial by trial."""
    trials = sample.get("trials") or [sample]
    rules = [record.get("rule_key") for record in sample.get("action_records") or []]
    return [rules, *([*_scored(holder)] for holder in (sample, *trials))]


def _scored(holder: Mapping[str, Any]) -> Iterable[Any]:
    for score in holder.get("scores") or []:
        yield [score.get("scorer_key"), score.get("values")]
    for error in holder.get("errors") or []:
        yield error.get("stage")
