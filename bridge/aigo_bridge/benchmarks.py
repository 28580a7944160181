"""Benchmarks that already exist for an engine: listed and run as they are, their logs as AI GO evidence.

Solver, scorer, agent, tools and sandbox stay the benchmark's own; so do the metrics. An adapter that offers this has a module `benchmarks`
beside its engine, with the functions of `Benchmarks`.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from aigo_bridge.engine import Gap, Progress
from aigo_bridge.engines import engine_names, load_engine
from aigo_bridge.errors import UsageError, error_kind
from aigo_bridge.importing.key_names import key_of
from aigo_bridge.results.agreement import Shown, ShownMetric, differences


@dataclass(frozen=True)
class Benchmark:
    """One benchmark that is installed."""

    name: str
    """Name to run it by, without the engine's prefix, e.g. `inspect_evals/gsm8k`."""
    package: str
    """Installed distribution that it comes from, with its version."""
    parameters: tuple[str, ...] = ()
    """Names of its parameters."""
    summary: str = ""
    """First line of its documentation."""


@dataclass(frozen=True)
class Listing:
    """What is installed."""

    benchmarks: tuple[Benchmark, ...]
    problems: tuple[str, ...] = ()
    """Packages that could not be looked at, with the reason."""
    hint: str = ""
    """Where benchmarks come from, for those who have none."""


@dataclass(frozen=True)
class BenchmarkRun:
    """What is to be run, and how."""

    task: str
    """Registry name, file, `file@task` or folder; whatever the engine itself runs by name."""
    out: Path
    """Folder for native logs and evidence."""
    arguments: Sequence[str] = ()
    """`NAME=VALUE` texts for the benchmark's parameters, read as the engine reads them."""
    model: str | None = None
    """The engine's model string; `None` for benchmarks that call none, or bring their own."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role of the benchmark, e.g. `grader` → the engine's model string."""
    num_samples: int | None = None
    """The first N samples only; `None`: all."""
    num_trials: int | None = None
    """How often each sample is solved; `None`: as the benchmark says."""
    max_connections: int | None = None
    """Concurrent model calls; `None` leaves it to the engine."""
    max_samples: int | None = None
    """Samples in flight at a time; `None` leaves it to the engine."""
    time_limit: int | None = None
    """Seconds that one sample may take; `None`: as the benchmark says."""
    token_limit: int | None = None
    """Tokens that one sample may use; `None`: as the benchmark says."""
    cost_limit: float | None = None
    """Cost that one sample may incur; `None`: as the benchmark says."""
    data_dir: Path | None = None
    """Folder with the benchmark's rows, where the engine's benchmarks can do without a hub; `None`: as the benchmark says."""
    custom_tasks: Path | None = None
    """File whose benchmarks are known beside the installed ones, where the engine has such files."""
    resume: bool = False
    """Whether finished trials of an earlier run of the same benchmark in `out` are taken over, where the engine can."""
    fail_on_error: str | None = None
    """Failed samples that are tolerated, `N` or a share: with one more no further sample is begun; `None`: any number (see `tolerance`)."""
    on_progress: Callable[[Progress], None] | None = None
    """Told as trials end, where the engine can; `None`: nobody wants to know."""


@dataclass(frozen=True)
class BenchmarkMetric:
    """One number of a benchmark, as its engine computed it."""

    scorer: str
    name: str
    value: float | None
    """`None`: it is not a finite number."""
    num_scored: int | None = None
    """Samples behind it; `None` when the engine does not say."""


@dataclass(frozen=True)
class BenchmarkOutcome:
    """What a benchmark's run came to."""

    task: str
    """The benchmark's own name."""
    status: str
    """`success`, or the engine's own word for anything else."""
    error: str | None
    """Why the run as a whole failed; `None` when it did not."""
    model: str | None
    """The engine's name of the model that was evaluated."""
    native_log: Path
    result: Path | None
    """The `TaskResultLog`; `None` when the log could not be read."""
    metrics: tuple[BenchmarkMetric, ...]
    planned: int
    """Samples that the run should have."""
    num_samples: int
    """Samples in the log."""
    num_failed: int
    """Samples of which some trial ended with an error."""
    first_errors: tuple[tuple[str | int, str], ...] = ()
    """The first few kinds of errors: id of the first sample, and message."""
    error_counts: tuple[int, ...] = ()
    """Samples with each of them."""
    reused: int = 0
    """Trials that were taken over from an earlier run."""
    num_stopped: int = 0
    """Samples that are not in the log because the benchmark itself stopped early."""
    num_unscored: int = 0
    """Samples that a scorer gave no score, although nothing failed; of several scorers, the most."""
    file: str | None = None
    """The file that the benchmark stands in; `None`: in none, or the engine does not say."""
    warnings: tuple[str, ...] = ()
    """What makes the numbers doubtful although nothing failed."""
    differences: tuple[str, ...] = ()
    """How the written evidence differs from all this, which it never should."""

    @property
    def num_missing(self) -> int:
        """Samples that are not in the log, because the run ended early."""
        return max(0, self.planned - self.num_samples - self.num_stopped)

    def is_right(self, tolerated: int) -> bool:
        """Whether the run ended by itself, every metric has a value, and no more samples failed, or were not scored, than are tolerated."""
        failed = self.num_failed + self.num_missing + self.num_unscored
        # Where every sample failed there is nothing to compute metrics from: that is told as failed samples.
        uncomputed = self.num_failed < self.num_samples and any(row.value is None for row in self.metrics)
        ended = self.status == "success" and self.result is not None and not self.differences
        return ended and failed <= tolerated and not uncomputed

    def compared(self) -> BenchmarkOutcome:
        """This outcome with how its evidence differs from it."""
        if self.result is None:
            return self
        shown = Shown(
            metrics=shown_metrics(self.metrics),
            succeeded=self.status == "success",
            num_samples=self.num_samples,
            num_failed=self.num_failed,
            num_missing=self.num_missing,
        )
        return replace(self, differences=differences(shown, self.result))


def shown_metrics(metrics: Sequence[BenchmarkMetric]) -> list[ShownMetric]:
    """Numbers of a benchmark as what is compared with the evidence."""
    return [ShownMetric(row.scorer, (row.name, key_of(row.name)), row.value) for row in metrics]


@dataclass(frozen=True)
class ConvertedBenchmark:
    """A benchmark as an AI GO task."""

    task: Mapping[str, Any]
    """The task document."""
    rows: tuple[dict[str, Any], ...]
    """Its data set."""
    gaps: tuple[Gap, ...]
    """What is different; nothing that is unsupported."""


class Benchmarks(Protocol):
    """What an adapter's module `benchmarks` offers."""

    def listing(self) -> Listing:
        """What is installed; nothing of it is run."""
        ...

    def run(self, request: BenchmarkRun) -> list[BenchmarkOutcome]:
        """Run one benchmark, or all of a file or folder, and write the evidence.

        Raises:
            UsageError: there is no such benchmark, parameter or model.
            EngineError: the engine failed before it had a log.
        """
        ...

    def converted(
        self, task: str, arguments: Sequence[str], key: str | None, **local: Path
    ) -> ConvertedBenchmark:
        """One benchmark as an AI GO task with the same prompts and sample scores.

        `local`: `data_dir` and `custom_tasks`, as in `BenchmarkRun`, where the engine's benchmarks take them.

        Raises:
            UsageError: there is no such benchmark or parameter, or it is several.
            UnsupportedPlanError: it cannot be converted; the message lists every gap.
        """
        ...


def by_kind(
    failures: Sequence[tuple[str | int, str]], most: int
) -> tuple[tuple[tuple[str | int, str], ...], tuple[int, ...]]:
    """The first failure of each kind, and how many there are of it; `most` kinds."""
    first: dict[str, tuple[str | int, str]] = {}
    counts: Counter[str] = Counter()
    for sample_id, message in failures:
        kind = error_kind(message)
        first.setdefault(kind, (sample_id, message))
        counts[kind] += 1
    kinds = list(first)[:most]
    return tuple(first[kind] for kind in kinds), tuple(counts[kind] for kind in kinds)


def split_name(task: str) -> tuple[str, str] | None:
    """`inspect:arc_easy` as engine and benchmark; `None` for anything else, such as a path with a colon."""
    engine, colon, name = task.partition(":")
    return (engine, name) if colon and engine in engine_names() else None


def load_benchmarks(engine: str) -> Benchmarks:
    """The benchmarks of an engine.

    Raises:
        UsageError: there is no such engine, or it runs no benchmarks of its own.
        MissingEngineError: its framework is not installed.
    """
    package = type(load_engine(engine)).__module__.rpartition(".")[0]
    name = f"{package}.benchmarks"
    try:
        return cast("Benchmarks", import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"engine {engine!r} runs no benchmarks of its own") from error


def unknown(engine: str, task: str, known: Sequence[str]) -> UsageError:
    """There is no such benchmark of an engine: what it might have been."""
    last = {name.rpartition("/")[2]: name for name in reversed(known)}
    near = [last[name] for name in difflib.get_close_matches(task.rpartition("/")[2], last, n=3, cutoff=0.6)]
    near += [name for name in difflib.get_close_matches(task, known, n=3, cutoff=0.75) if name not in near]
    hint = (
        f"did you mean {' or '.join(map(repr, near[:3]))}?"
        if near
        else f"`aigo-bridge list {engine}` names them"
    )
    return UsageError(f"found no benchmark {task!r} ({hint})")
