"""Inspect engine: its capabilities and its methods `gaps`, `run` and `read`. Inspect is imported when one of
them is called.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import BenchmarkOption, BenchmarkRunner, Benchmarks, BenchmarkShards
from aigo_bridge.engine.engine import (
    Capabilities,
    Check,
    LogExporter,
    LogImporter,
    NativeTasks,
    RangeImporter,
    RunningLogs,
    TaskExporter,
)
from aigo_bridge.engine.protocol import (
    Evidence,
    Fidelity,
    Gap,
    Job,
    LogRef,
    RunSettings,
    contradictions,
    likelihood_gaps,
    sandboxed_parts,
)
from aigo_bridge.errors import EngineError, MissingEngineError
from aigo_bridge.process import core_command

if TYPE_CHECKING:
    from aigo_bridge.access.file_kinds import Head
    from aigo_bridge.models.protocol import Model
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.records import StoredNumbers
    from aigo_bridge.results.result_files import LoggedRun

PACKAGE = "inspect-ai"

OLDEST = (0, 3, 285)
"""Oldest supported Inspect release."""


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def _checks() -> list[Check]:
    """Check that a supported release of Inspect is installed."""
    try:
        installed = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return [Check(PACKAGE, "missing", "not installed", core_command(PACKAGE))]
    if _version(installed) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        reason = f"{installed} is too old, this release needs {wanted} or later"
        return [Check(PACKAGE, "missing", reason, core_command(PACKAGE))]
    return [Check(PACKAGE, "ok", installed)]


def _logs() -> LogImporter:
    from aigo_inspect.importing.importing import InspectLogs

    return InspectLogs()


def _is_log(head: Head, name: str) -> bool:
    from aigo_inspect.logs.sources import is_log

    return is_log(head, name)


def _running() -> RunningLogs:
    from aigo_inspect.importing.running import InspectRuns

    return InspectRuns()


def _traces(location: str) -> Iterator[Mapping[str, Any]]:
    from aigo_inspect.importing.api import trace_rows

    return trace_rows(location)


def _model(name: str) -> Model:
    from aigo_inspect.running.run import single_model

    return single_model(name)


def _native_tasks() -> NativeTasks:
    from aigo_inspect.running.translate import InspectTasks

    return InspectTasks()


def _task_export() -> TaskExporter:
    from aigo_inspect.exporting import export

    return export


def _log_export() -> LogExporter:
    from aigo_inspect.exporting import export

    return export


def _benchmarks() -> BenchmarkRunner:
    from aigo_inspect.benchmarks import run

    return run


def _benchmark_shards() -> BenchmarkShards:
    from aigo_inspect.benchmarks import shards

    return shards


def _benchmark_options() -> Sequence[BenchmarkOption]:
    from aigo_inspect.benchmarks.options import taken_options

    return taken_options()


def _logged_runs(out: Path) -> Iterable[LoggedRun]:
    from aigo_inspect.running.resume import earlier_runs

    return [run.logged() for run in earlier_runs(out)]


def _store_numbers(log: Path, numbers: StoredNumbers) -> None:
    from aigo_inspect.running.codec import store_numbers

    store_numbers(log, numbers)


def _run_id(log: Path) -> str | None:
    from aigo_inspect.importing.importing import run_id

    return run_id(log)


def _log_ranges() -> RangeImporter:
    from aigo_inspect.importing.ranges import InspectRanges

    return InspectRanges()


CAPABILITIES = Capabilities(
    checks=_checks,
    logs=_logs,
    is_log=_is_log,
    log_ranges=_log_ranges,
    running=_running,
    traces=_traces,
    model=_model,
    native_tasks=_native_tasks,
    task_export=_task_export,
    log_export=_log_export,
    benchmarks=Benchmarks(
        _benchmarks,
        resumes=True,
        reports_progress=True,
        options=_benchmark_options,
        shards=_benchmark_shards,
    ),
    recordings=True,
    run_id=_run_id,
    distribution=PACKAGE,
    logged_runs=_logged_runs,
    store_numbers=_store_numbers,
)


class InspectEngine:
    """Engine that runs plans with Inspect AI."""

    name = "inspect"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self) -> None:
        try:
            installed = importlib.metadata.version(PACKAGE)
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingEngineError(f"inspect-ai is not installed; run: {core_command(PACKAGE)}") from error
        if _version(installed) < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            raise MissingEngineError(
                f"inspect-ai {installed} is too old, this release needs {wanted} or later; "
                f"run: {core_command(PACKAGE)}",
                code=Code.OLD_PACKAGE,
            )

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """Return the parts of a plan that Inspect cannot run. Everything else follows AI GO's semantics."""
        from aigo_inspect.sandbox import available, needs_sandbox

        gaps = [*contradictions(plan), *likelihood_gaps(plan)]
        if needs_sandbox(plan):
            name, reason = available()
            if name is None:
                hint = "see docs/reference/sandbox.md: docker, or Linux with user namespaces"
                reason = f"runs code that a model wrote, and no sandbox is available here: {reason}"
                gaps += [Gap(part, reason, Fidelity.UNSUPPORTED, hint) for part in sandboxed_parts(plan)]
        return gaps

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run new and interrupted plans with one call of Inspect's `eval`."""
        from aigo_inspect.running.run import run

        return run(jobs, settings)

    def read(self, log: Path) -> Evidence:
        """Return the evidence in a log that `run` wrote."""
        from aigo_inspect.running.evidence import read

        return read(log)
