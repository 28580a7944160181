"""Hooks of commands: distributed runs, and views of the results of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from aigo_bridge.cli.run_options import RunOptions
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.results.assembling import MetricRow
    from aigo_bridge.text.numbers import Scale


@dataclass(frozen=True)
class MetricStatistics:
    """Interval and missing samples of one metric."""

    interval: tuple[float, float] | None
    """Ends of the 95 % interval; `None`: there is none."""
    scale: Scale
    """Declared scale of the metric."""
    missing: str | None
    """Text about samples and trials that are missing in the metric; `None` if all are present."""
    content: Mapping[str, Any]
    """JSON fields of the metric."""


class ResultComparison(Protocol):
    """Comparison of results with the first of them."""

    def show(self) -> None:
        """Print the comparison."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        ...


@dataclass(frozen=True)
class Statistics:
    """Hook `statistics`."""

    of_metrics: Callable[[Path | None, Sequence[MetricRow]], list[MetricStatistics]]
    """Function of a result and rows of its metrics; returns one entry for each row."""
    compare: Callable[[Sequence[Path]], ResultComparison]
    """Function that compares folders of results.

    Raises:
        BridgeError: a result cannot be read, or the results cannot be compared.
    """


@dataclass(frozen=True)
class RunReport:
    """Hook `report`."""

    write: Callable[[Sequence[Path], Path, bool], None]
    """Function of results, the folder of the run, and whether standard output contains JSON."""


@dataclass(frozen=True)
class DistributedRuns:
    """Hook `distributed runs`."""

    run_shard: Callable[[RunOptions], ExitCode]
    """Run one shard of a task, run file or benchmark."""
    run_on_cluster: Callable[[RunOptions], ExitCode]
    """Run a task or run file on the workers of a cluster."""
