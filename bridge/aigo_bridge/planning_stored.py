"""The data set side of planning for outputs that are scored again: the samples are those of a result log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.plan import PlannedDataset, Sample
from aigo_bridge.reading import Document
from aigo_bridge.results import LogReader
from aigo_bridge.results.specification import dataset_tags
from aigo_bridge.results.stored_runs import records_of
from aigo_bridge.spec import BenchmarkDefinition, TaskSpec


@dataclass(frozen=True)
class StoredRows:
    """What a result log gives a plan."""

    dataset: PlannedDataset
    samples: tuple[Sample, ...]
    """Each once, in the order of the log."""
    num_trials: int
    """The most trials that a sample has."""
    entity: Mapping[str, Any] | None
    """What was evaluated, as the log's specification has it."""


def stored_rows(definition: BenchmarkDefinition, document: Document[TaskSpec], log: Path) -> StoredRows:
    """The samples of a result log as the rows of a plan.

    Raises:
        EvidenceError: the file is no result log.
        DatasetError: it has no samples.
    """
    samples: dict[str, Sample] = {}
    num_trials = 0
    for record in records_of(log):
        samples.setdefault(str(record.sample_id), Sample(record.sample_id, record.data))
        num_trials = max(num_trials, record.index + 1)
    if not samples:
        raise DatasetError([Issue("the result log has no samples, expected at least one", file=str(log))])
    reference = definition.dataset
    key = (None if reference is None else reference.key) or document.spec.key
    columns = tuple(dict.fromkeys(name for sample in samples.values() for name in sample.data))
    with log.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    specification = LogReader(log).frame().specification
    tags = dataset_tags(specification)
    dataset = PlannedDataset(key, f"samples of {log.name}", columns, digest, len(samples), tags)
    entity = specification.evaluated_entity
    return StoredRows(
        dataset,
        tuple(samples.values()),
        num_trials,
        None if entity is None else entity.model_dump(mode="json", exclude_unset=True),
    )
