"""The lighteval engine: its capabilities, and the functions that check, run and read plans. lighteval and
torch are imported only when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aigo_bridge.engine.benchmarks import BenchmarkRunner, Benchmarks, BenchmarkShards
from aigo_bridge.engine.engine import Capabilities, Check, LogImporter, NativeTasks, TaskExporter
from aigo_bridge.engine.protocol import (
    Evidence,
    Fidelity,
    Gap,
    Job,
    LogRef,
    RunSettings,
    contradictions,
    sandboxed_parts,
)
from aigo_lighteval.versions import installed_versions, prepare_imports, problems, require

if TYPE_CHECKING:
    from aigo_bridge.access.file_kinds import Head
    from aigo_bridge.errors import EngineError
    from aigo_bridge.models.protocol import Model
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.records import StoredNumbers
    from aigo_bridge.results.result_files import LoggedRun


def _checks() -> list[Check]:
    """Return the installed packages and the problems with them."""
    checks = [
        Check(package, "ok", version)
        for package, version in installed_versions().items()
        if version is not None
    ]
    return checks + [
        Check(
            "lighteval's packages",
            "missing" if problem.fatal else "warning",
            problem.message,
            problem.remedy,
        )
        for problem in problems()
    ]


def _logs() -> LogImporter:
    from aigo_lighteval.importing.importing import LightevalLogs

    return LightevalLogs()


def _is_log(head: Head, name: str) -> bool:
    # This is only a first look. `locate` decides.
    is_named_so = name.startswith(("results_", "details_"))
    return is_named_so or head.data[:4] == b"PAR1" or "config_general" in (head.members or ())


def _model(name: str) -> Model:
    from aigo_lighteval.models.models import single_model

    return single_model(name)


def _native_tasks() -> NativeTasks:
    from aigo_lighteval.documents.translate import Documents

    return Documents()


def _task_export() -> TaskExporter:
    from aigo_lighteval.exporting import export

    return export


def _benchmark_shards() -> BenchmarkShards:
    from aigo_lighteval.benchmarks import shards

    return shards


def _benchmarks() -> BenchmarkRunner:
    from aigo_lighteval.benchmarks import run

    return run


def _log_files(log: Path) -> Sequence[Path]:
    from aigo_lighteval.importing.locate import log_files

    return log_files(log)


def _logged_runs(out: Path) -> Iterable[LoggedRun]:
    from aigo_lighteval.running.evidence import earlier_runs

    return [run.logged() for run in earlier_runs(out)]


def _store_numbers(log: Path, numbers: StoredNumbers) -> None:
    from aigo_lighteval.running.evidence import store_numbers

    store_numbers(log, numbers)


CAPABILITIES = Capabilities(
    checks=_checks,
    logs=_logs,
    is_log=_is_log,
    model=_model,
    native_tasks=_native_tasks,
    task_export=_task_export,
    benchmarks=Benchmarks(
        _benchmarks,
        resumes=True,
        reports_progress=True,
        takes_local_rows=True,
        shards=_benchmark_shards,
    ),
    recordings=True,
    distribution="lighteval",
    log_files=_log_files,
    logged_runs=_logged_runs,
    store_numbers=_store_numbers,
)


class LightevalEngine:
    """Engine that runs plans on lighteval.

    Raises:
        MissingEngineError: lighteval or one of its dependencies is missing or has an unsupported version.
    """

    name = "lighteval"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self) -> None:
        require()
        prepare_imports()

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """Return the parts of a plan that lighteval cannot run. All other parts follow AI GO's semantics."""
        reason = "runs code that a model wrote, and this engine does not have a sandbox"
        return [
            *contradictions(plan),
            *(
                Gap(part, reason, Fidelity.UNSUPPORTED, "run it with --engine inspect")
                for part in sandboxed_parts(plan)
            ),
        ]

    def run(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Start or resume plans, each in a separate lighteval pipeline."""
        from aigo_lighteval.running.run import run

        return run(jobs, settings)

    def read(self, log: Path) -> Evidence:
        """Read a results file that `run` has written."""
        from aigo_lighteval.running.evidence import read

        return read(log)
