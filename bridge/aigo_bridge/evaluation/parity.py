"""Results of the same task from several engines, side by side: do they say the same?

Compared is what the result logs say: the metrics, and for every sample its scores, the stage of its failures
and the rules that exclude it, trial by trial. Texts of answers and messages may differ, and so may times: a
model that says the same thing twice in other words has the same scores. Numbers must be equal to the last
digit, as the same code computes them on every engine.
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
"""Samples that are named."""

SampleId = str | int
_Key = tuple[int | None, str, SampleId]
"""Position of the run (repeatability), type of the id, id."""


@dataclass(frozen=True)
class MetricParity:
    """One metric on all engines."""

    scorer_key: str
    name: str
    values: Mapping[str, float | int | None]
    """Engine → value; `None` where it has none."""
    num_scored: Mapping[str, int | None] = field(default_factory=dict)
    """Engine → samples that are in its value."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Engine → why it has no value, or what is wrong with it; without those of which nothing is to be
    said."""

    @property
    def is_equal(self) -> bool:
        """Whether all engines have the same value, or none has one."""
        reference, *values = self.values.values()
        return all(_same(reference, value) for value in values)


@dataclass(frozen=True)
class Parity:
    """How far the engines agree on one task."""

    statuses: Mapping[str, str]
    """Engine → status."""
    metrics: tuple[MetricParity, ...]
    """All metrics of all engines, in the order of the first that has them."""
    num_samples: int
    """Samples that any engine has in its result."""
    num_differing: int
    """Those of them whose scores, failures or exclusions differ, or that not every engine has."""
    first_differing: tuple[SampleId, ...]
    """Ids of the first few of them."""

    @property
    def is_equal(self) -> bool:
        """Whether the engines agree in everything."""
        one_status = len(set(self.statuses.values())) == 1
        return one_status and not self.num_differing and all(metric.is_equal for metric in self.metrics)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
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
    """Compare what engines have made of one task.

    Args:
        outcomes: engine → what it has made; at least two, the first sets the order.

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
    """Rows by scorer, name and number: a scorer may have two metrics of one name."""
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        seen[row.scorer_key, row.name] += 1
        yield (row.scorer_key, row.name, seen[row.scorer_key, row.name]), row


def _same(left: float | None, right: float | None) -> bool:
    both_nan = left is not None and right is not None and left != left and right != right
    return both_nan or left == right


def _samples(results: Sequence[Path | None]) -> tuple[int, list[SampleId]]:
    """How many samples there are, and those that differ, in the order in which the results have them.

    Of a sample only a digest is kept: results may be larger than memory.
    """
    digests = [{} if result is None else dict(_digests(result)) for result in results]
    keys = list(dict.fromkeys(key for of_one in digests for key in of_one))
    # Of a task that was run several times, the runs' samples stand for what is said of all runs together.
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
        text = json.dumps(judged(sample), sort_keys=True)
        yield (
            (part.run, type(sample_id).__name__, sample_id),
            hashlib.blake2b(text.encode(), digest_size=16).digest(),
        )


def judged(sample: Mapping[str, Any]) -> Any:
    """What a sample came to: scores, stages of failures, rules that exclude it, trial by trial."""
    trials = sample.get("trials") or [sample]
    rules = [record.get("rule_key") for record in sample.get("action_records") or []]
    return [rules, *([*_scored(holder)] for holder in (sample, *trials))]


def _scored(holder: Mapping[str, Any]) -> Iterable[Any]:
    for score in holder.get("scores") or []:
        yield [score.get("scorer_key"), score.get("values")]
    for error in holder.get("errors") or []:
        yield error.get("stage")
