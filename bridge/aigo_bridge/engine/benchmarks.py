"""Existing benchmarks of an engine: listing, running, and converting them to tasks."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Gap, RunSettings
from aigo_bridge.errors import UsageError

if TYPE_CHECKING:
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.plan.shards import Shard
    from aigo_bridge.results.internal_errors import FirstError


@dataclass(frozen=True)
class Benchmark:
    """Installed benchmark."""

    name: str
    """Name of the benchmark without the prefix of the engine, for example `inspect_evals/gsm8k`."""
    package: str
    """Installed distribution of the benchmark, with its version."""
    parameters: tuple[str, ...] = ()
    """Names of the benchmark parameters."""
    summary: str = ""
    """First line of the documentation."""


@dataclass(frozen=True)
class BenchmarkListing:
    """Installed benchmarks."""

    benchmarks: tuple[Benchmark, ...]
    problems: tuple[str, ...] = ()
    """Packages that could not be loaded, with the reason."""
    hint: str = ""
    """Hint for installing benchmarks."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun(RunSettings):
    """Benchmark to run with its settings. Limits that are `None` are set by the benchmark."""

    task: str
    """Registry name, file, `file@task` or folder, or another name that the engine accepts."""
    arguments: Sequence[str] = ()
    """`NAME=VALUE` texts for the benchmark parameters, parsed by the rules of the engine."""
    model: str | None = None
    """Model name for the engine; `None` for benchmarks that do not call a model or choose their own."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role of the benchmark, for example `grader` → model name for the engine."""
    num_samples: int | None = None
    """Number of samples to run, from the first one; `None` for all."""
    num_trials: int | None = None
    """Number of trials per sample; `None` for the number of the benchmark."""
    data_dir: Path | None = None
    """Folder with the benchmark rows, for benchmarks that run without a hub; `None` for their source."""
    custom_tasks: Path | None = None
    """File that defines additional benchmarks, for engines that support such files."""
    more_tasks: Sequence[str] = ()
    """Additional benchmarks of the same run, in the form of `task`."""
    options: Sequence[str] = ()
    """Options of the engine's own command, as typed (`Benchmarks.options`)."""
    sample_id: str | None = None
    """Ids of the only samples to run, separated by commas; `None` for all."""
    resume: bool = False
    """Whether to reuse finished trials of an earlier run in `out`, if the engine supports it."""
    fail_on_error: str | None = None
    """Number (`N`) or proportion of samples that may fail. After one more failure, the run does not start
    further samples. `None` for any number (see `tolerance`).
    """
    on_note: Callable[[str], None] | None = None
    """Called before the run with settings that it does not follow, and the reason."""


@dataclass(frozen=True)
class BenchmarkOption:
    """Option of an engine's own command for its benchmarks."""

    names: tuple[str, ...]
    """Names of the option as typed: `--temperature`, `-M`."""
    value: Literal["required", "optional", "none"] = "required"
    """Whether a value follows the option."""


@dataclass(frozen=True)
class ConvertedBenchmark:
    """Benchmark converted to an AI GO task."""

    task: Mapping[str, Any]
    """Task document."""
    rows: tuple[dict[str, Any], ...]
    """Dataset rows of the task."""
    gaps: tuple[Gap, ...]
    """Differences from the benchmark, without unsupported parts."""


def unknown(engine: str, task: str, known: Sequence[str]) -> UsageError:
    """Return an error for an unknown benchmark of an engine, with similar names."""
    full_names = {name.rpartition("/")[2]: name for name in reversed(known)}
    near = [
        full_names[name]
        for name in difflib.get_close_matches(task.rpartition("/")[2], full_names, n=3, cutoff=0.6)
    ]
    near += [name for name in difflib.get_close_matches(task, known, n=3, cutoff=0.75) if name not in near]
    hint = (
        f"did you mean {' or '.join(map(repr, near[:3]))}?"
        if near
        else f"`aigo-bridge list {engine}` names them"
    )
    return UsageError(f"no benchmark {task!r} found ({hint})", code=Code.UNKNOWN_BENCHMARK)


class BenchmarkRunner(Protocol):
    """Functions that list, run and convert the existing benchmarks of an engine."""

    def listing(self) -> BenchmarkListing:
        """Return the installed benchmarks without running them."""
        ...

    def run(self, request: BenchmarkRun) -> list[Outcome]:
        """Run one benchmark, or all benchmarks of a file or folder, and write the evidence.

        Raises:
            UsageError: the benchmark, parameter or model does not exist.
            EngineError: the engine failed before it created a log.
        """
        ...

    def converted(
        self,
        task: str,
        arguments: Sequence[str],
        key: str | None,
        *,
        data_dir: Path | None = None,
        custom_tasks: Path | None = None,
    ) -> ConvertedBenchmark:
        """Convert one benchmark to an AI GO task with the same prompts and sample scores.

        `data_dir` and `custom_tasks` are described in `BenchmarkRun`. They are only passed if the engine's
        benchmarks support them.

        Raises:
            UsageError: the benchmark or parameter does not exist, or the name matches several benchmarks.
            UnsupportedPlanError: the benchmark cannot be converted; the message lists every gap.
        """
        ...


@dataclass(frozen=True)
class BenchmarkPart:
    """One benchmark of a run in shards, before any model call.

    It does not have an aigo-bridge plan. Instead, a digest covers everything that determines its samples.
    A merge loads the benchmark again and compares the digests.
    """

    name: str
    """Name of the result."""
    digest: str
    """SHA-256 checksum of the requests: name, arguments and selected samples, without the model."""
    total: int
    """Number of samples in the whole run."""
    num_trials: int
    models: Mapping[str, str] = field(default_factory=dict)
    """Role (`""` for the evaluated model) → model name for the engine. Empty if models are not named, as in a
    merge.
    """


@dataclass(frozen=True)
class PartRun:
    """Outcome of one benchmark in a shard."""

    log: Path | None = None
    """File for the merge, in the top level of the shard's folder; `None` if it does not exist, for example
    for a shard without samples.
    """
    num_samples: int = 0
    """Number of samples in the file."""
    num_failed: int = 0
    status: str = "success"
    """`success`, or the term of the engine for another status."""
    error: str | None = None
    num_reused: int = 0
    """Number of trials that were reused from the shard's interrupted run."""
    first_errors: tuple[FirstError, ...] = ()


@dataclass(frozen=True)
class PartLog:
    """Log of a benchmark that was found in a shard."""

    shard: Shard
    path: Path
    rows: tuple[int, int]
    """First sample of the whole run, and the position after the last one."""


@dataclass(frozen=True)
class PartLogs:
    """Logs of one benchmark in all shards."""

    logs: tuple[PartLog, ...]
    """Logs in the order of the samples."""
    missing: str | None = None
    """Description of missing logs; `None` if they are complete."""


class BenchmarkShards(Protocol):
    """Functions that run an engine's benchmarks in shards and merge the results."""

    def run(
        self, request: BenchmarkRun, shard: Shard, begin: Callable[[Sequence[BenchmarkPart]], bool]
    ) -> list[PartRun]:
        """Run a shard of each benchmark in the folder `request.out`.

        Args:
            request: the whole run.
            shard: part of the samples to run.
            begin: called with the benchmarks before any model call; returns `False` if there is nothing to
                do.

        Returns:
            One item for each benchmark that was passed to `begin`.

        Raises:
            UsageError: the benchmark or model does not exist, or it cannot run in shards; or an error of
                `begin`.
            EngineError: the engine failed before anything ran.
        """
        ...

    def merge(
        self, request: BenchmarkRun, logs: Callable[[Sequence[BenchmarkPart]], Sequence[PartLogs]]
    ) -> list[Outcome]:
        """Write the evidence of one run from its shards.

        Args:
            request: the whole run, with the same arguments as for its shards; a model is not required.
            logs: returns the logs of the benchmarks that it receives.

        Raises:
            UsageError: the benchmark does not exist; or an error of `logs`.
            EvidenceError: a log of a shard cannot be read, or does not match its shard.
        """
        ...


@dataclass(frozen=True)
class Benchmarks:
    """An engine's own benchmarks, and the features of `aigo-bridge run` that they support."""

    load: Callable[[], BenchmarkRunner]
    resumes: bool = False
    """Whether finished trials of an earlier run can be reused."""
    reports_progress: bool = False
    """Whether the engine reports finished trials."""
    takes_local_rows: bool = False
    """Whether rows and tasks can be local files (`data_dir`, `custom_tasks`)."""
    options: Callable[[], Sequence[BenchmarkOption]] | None = None
    """Returns additional options of the engine's own command for a run; called when a benchmark runs. `None`
    if there are none.
    """
    shards: Callable[[], BenchmarkShards] | None = None
    """Runs benchmarks in shards; `None` if unsupported."""
