"""What workers are told and what they tell: plain data, that goes from one process to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.access.grants import Grants
from aigo_bridge.evaluation.models import ModelChoice
from aigo_bridge.plan.plan import CachePolicy, PlanOrigin

FOLDER = "pieces"
"""Below `--out`: the shards of the run."""

PIECE_ROWS = 100
"""Rows of a piece, unless it is said: a minute or so of work, and little to lose."""


@dataclass(frozen=True)
class Work:
    """A run, as each worker plans it for itself."""

    origin: PlanOrigin
    """With the paths of the driver; a worker stands in the same folder."""
    engine: str
    models: ModelChoice
    pieces: int
    """Number of parts of the rows."""
    folder: Path
    """That has the pieces."""
    settings: Mapping[str, Any]
    """Those of `RunSettings` that are data."""
    digests: tuple[str, ...]
    """Of the driver's plans."""
    cwd: str
    cache: CachePolicy | None = None
    snippets: str | None = None
    """How far the author's code is confined."""
    allow: tuple[str, ...] = ()
    grants: Grants = field(default_factory=Grants)
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, that say where the model is; no secrets."""
    mirrors: tuple[str, ...] = ()
    """Folders of copies of what lies in object storage: paths in them are told as addresses."""


@dataclass(frozen=True)
class Count:
    """Samples of one plan in a piece."""

    identity: tuple[str | None, str, int]
    samples: int = 0
    failed: int = 0
    reused: int = 0


@dataclass(frozen=True)
class Piece:
    """What became of a piece."""

    number: int
    counts: tuple[Count, ...] = ()
    error: str | None = None
    """Why it is not complete."""
    is_hopeless: bool = False
    """Whether every other worker would say the same."""


@dataclass(frozen=True)
class Told:
    """How far a worker is with its piece."""

    piece: int
    done: int = 0
    failed: int = 0
    retries: int = 0
    tokens: int | None = None
    cost: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
