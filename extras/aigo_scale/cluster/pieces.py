"""Messages between driver and workers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.access.grants import Grants
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.plan.plan import CachePolicy, PlanOrigin
from aigo_scale.sharding.manifest import Identity

FOLDER = "pieces"
"""Folder below `--out` that contains the shards of the run."""

PIECE_ROWS = 100
"""Default number of rows per shard. It takes about a minute, so that little work is lost in a crash."""


@dataclass(frozen=True)
class PlannedRun:
    """Run that every worker plans for itself."""

    origin: PlanOrigin
    """Origin of the plans, with the driver's paths. A worker uses the same working directory."""
    engine: str
    models: ModelChoice
    pieces: int
    """Number of shards."""
    folder: Path
    """Folder that contains the shards."""
    settings: Mapping[str, Any]
    """Serializable fields of `RunSettings`."""
    digests: tuple[str, ...]
    """Checksums of the driver's plans."""
    cwd: str
    cache: CachePolicy | None = None
    snippets: str | None = None
    """Confinement level for task code."""
    allow: tuple[str, ...] = ()
    grants: Grants = field(default_factory=Grants)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables with model server addresses, without secrets."""
    mirrors: tuple[str, ...] = ()
    """Folders with copies of object storage content. Their paths are shown as addresses."""


@dataclass(frozen=True)
class Count:
    """Sample counts of one plan in a shard."""

    identity: Identity
    samples: int = 0
    failed: int = 0
    reused: int = 0


@dataclass(frozen=True)
class ShardResult:
    """Result of a shard."""

    number: int
    counts: tuple[Count, ...] = ()
    error: str | None = None
    """Reason why the shard is incomplete."""
    is_hopeless: bool = False
    """Whether every other worker would fail in the same way."""


@dataclass(frozen=True)
class ShardProgress:
    """Progress of a worker with its shard."""

    piece: int
    done: int = 0
    failed: int = 0
    retries: int = 0
    tokens: int | None = None
    cost: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
