"""Benchmarks that already exist for an engine: what there is, how one is run, what it becomes as a task."""

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
    from aigo_bridge.results.faults import FirstError


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


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun(RunSettings):
    """What is to be run, and how; limits that are `None` are as the benchmark says."""

    task: str
    """Registry name, file, `file@task` or folder; whatever the engine itself runs by name."""
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
    data_dir: Path | None = None
    """Folder with the benchmark's rows, where the engine's benchmarks can do without a hub; `None`: as the
    benchmark says."""
    custom_tasks: Path | None = None
    """File whose benchmarks are known beside the installed ones, where the engine has such files."""
    more_tasks: Sequence[str] = ()
    """Further benchmarks of the same run, each as `task`."""
    options: Sequence[str] = ()
    """Options of the engine's own command, as they were typed (`Benchmarks.options`)."""
    sample_id: str | None = None
    """Ids of the only samples to run, with commas between them; `None`: all."""
    resume: bool = False
    """Whether finished trials of an earlier run of the same benchmark in `out` are taken over, where the
    engine can."""
    fail_on_error: str | None = None
    """Failed samples that are tolerated, `N` or a share: with one more no further sample is begun; `None`:
    any number (see `tolerance`)."""
    on_note: Callable[[str], None] | None = None
    """Told of settings that the run does not follow, and why, before it begins."""


@dataclass(frozen=True)
class BenchmarkOption:
    """An option of an engine's own command that its benchmarks take."""

    names: tuple[str, ...]
    """As it is typed: `--temperature`, `-M`."""
    value: Literal["required", "optional", "none"] = "required"
    """Whether a value follows it."""


@dataclass(frozen=True)
class ConvertedBenchmark:
    """A benchmark as an AI GO task."""

    task: Mapping[str, Any]
    """The task document."""
    rows: tuple[dict[str, Any], ...]
    """Its dataset."""
    gaps: tuple[Gap, ...]
    """What is different; nothing that is unsupported."""


def unknown(engine: str, task: str, known: Sequence[str]) -> UsageError:
    """There is no such benchmark of an engine: what it might have been."""
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
    """Lists, runs and converts the benchmarks that already exist for an engine."""

    def listing(self) -> Listing:
        """What is installed; nothing of it is run."""
        ...

    def run(self, request: BenchmarkRun) -> list[Outcome]:
        """Run one benchmark, or all of a file or folder, and write the evidence.

        Raises:
            UsageError: there is no such benchmark, parameter or model.
            EngineError: the engine failed before it had a log.
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
        """One benchmark as an AI GO task with the same prompts and sample scores.

        `data_dir` and `custom_tasks` are as in `BenchmarkRun`; given only where the engine's benchmarks take
        them.

        Raises:
            UsageError: there is no such benchmark or parameter, or it is several.
            UnsupportedPlanError: it cannot be converted; the message lists every gap.
        """
        ...


@dataclass(frozen=True)
class BenchmarkPart:
    """One benchmark of a run in shards, before anything of it is asked.

    It has no plan of ours. What stands for one is a digest over all that makes its samples what they are; who
    merges shards loads the benchmark again, and holds it against that.
    """

    name: str
    """As its result is named."""
    digest: str
    """SHA-256 over what it asks: its name, arguments and chosen samples; the model is not in it."""
    total: int
    """Samples of the whole run."""
    num_trials: int
    models: Mapping[str, str] = field(default_factory=dict)
    """Role (`""`: the evaluated model) → the engine's name; empty where none is named, as at a merge."""


@dataclass(frozen=True)
class PartRun:
    """What a shard left of one benchmark."""

    log: Path | None = None
    """The file that a merge reads, at the top of the shard's folder; `None`: there is none, as where the
    shard has no samples."""
    num_samples: int = 0
    """Samples in it."""
    num_failed: int = 0
    status: str = "success"
    """`success`, or the engine's own word."""
    error: str | None = None
    num_reused: int = 0
    """Trials taken over from the shard's interrupted run."""
    first_errors: tuple[FirstError, ...] = ()


@dataclass(frozen=True)
class PartLog:
    """What one shard left of a benchmark, found again."""

    shard: Shard
    path: Path
    rows: tuple[int, int]
    """First sample of the whole run, and the one behind the last."""


@dataclass(frozen=True)
class PartLogs:
    """What there is of one benchmark."""

    logs: tuple[PartLog, ...]
    """In the order of the samples."""
    missing: str | None = None
    """What is not there; `None`: it is whole."""


class BenchmarkShards(Protocol):
    """Runs the benchmarks of an engine in shards, and makes one run of what those left."""

    def run(
        self, request: BenchmarkRun, shard: Shard, begin: Callable[[Sequence[BenchmarkPart]], bool]
    ) -> list[PartRun]:
        """Run a shard of each benchmark in the folder `request.out`.

        Args:
            request: the whole run.
            shard: the part of its samples.
            begin: told of the benchmarks before anything is asked; `False`: there is nothing to do.

        Returns:
            One for each benchmark that `begin` was told of.

        Raises:
            UsageError: there is no such benchmark or model, or it cannot be run in shards; or as `begin`
                does.
            EngineError: the engine failed before anything was run.
        """
        ...

    def merge(
        self, request: BenchmarkRun, logs: Callable[[Sequence[BenchmarkPart]], Sequence[PartLogs]]
    ) -> list[Outcome]:
        """Write the evidence of one run from what shards left.

        Args:
            request: the whole run, as its shards were asked for; a model need not be named.
            logs: gives what there is of each of the benchmarks that it is told of.

        Raises:
            UsageError: there is no such benchmark; or as `logs` does.
            EvidenceError: what a shard left cannot be read, or is not what its shard should have left.
        """
        ...


@dataclass(frozen=True)
class Benchmarks:
    """An engine's own benchmarks, and what `aigo-bridge run` may ask of them."""

    load: Callable[[], BenchmarkRunner]
    resumes: bool = False
    """Whether finished trials of an earlier run can be taken over."""
    reports_progress: bool = False
    """Whether it is told as trials end."""
    takes_local_rows: bool = False
    """Whether rows and tasks can be given as local files (`data_dir`, `custom_tasks`)."""
    options: Callable[[], Sequence[BenchmarkOption]] | None = None
    """The options of its own command that a run takes besides; asked when a benchmark is run. `None`: there
    are none."""
    shards: Callable[[], BenchmarkShards] | None = None
    """Runs them in shards; `None`: it cannot."""
