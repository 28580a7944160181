"""The lighteval engine: three verbs over a plan. lighteval and torch are imported when a plan is run, and not earlier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.doctor import Check
from aigo_bridge.engine import (
    EngineLogs,
    Evidence,
    Fidelity,
    Gap,
    ImportOptions,
    Job,
    LogRef,
    RunSettings,
)
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.gaps import contradictions
from aigo_bridge.importing.report import ImportReport
from aigo_bridge.models import Model
from aigo_bridge.plan import TaskPlan
from aigo_bridge.results.result_files import LoggedRun
from aigo_lighteval.versions import installed_versions, prepare_imports, problems, require


class LightevalEngine:
    """Runs plans on lighteval.

    Raises:
        MissingEngineError: lighteval, or something that it needs, is missing or does not suit.
    """

    name = "lighteval"

    def __init__(self) -> None:
        require()
        prepare_imports()

    @staticmethod
    def logs() -> EngineLogs:
        """What lighteval leaves behind; read without it."""
        from aigo_lighteval.importing import LightevalLogs

        return LightevalLogs()

    @staticmethod
    def diagnose() -> list[Check]:
        """What is installed, and what of it does not work; for `aigo-bridge doctor`."""
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

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """What cannot be run here; with the models of this engine nothing that runs departs from AI GO's semantics."""
        found = list(contradictions(plan))
        if plan.entity != "system" and any(scorer.type == "code_exec" for scorer in plan.benchmark.scorers):
            reason = "runs code that a model wrote, and this engine has no sandbox"
            found.append(
                Gap("scorers (code_exec)", reason, Fidelity.UNSUPPORTED, "run it with --engine inspect")
            )
        return found

    def run(self, plan: TaskPlan, settings: RunSettings) -> LogRef:
        """Run the plan in lighteval's pipeline, or finish an interrupted run of it."""
        from aigo_lighteval.running import run

        return run(plan, settings)

    def run_all(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run several plans, each in a pipeline of its own."""
        from aigo_lighteval.running import run_all

        return run_all(jobs, settings)

    def trace_rows(self, location: str) -> Iterator[Mapping[str, Any]]:
        """Refused: lighteval keeps no traces; those of our own runs are in their result logs."""
        raise UsageError(
            f"{location!r}: lighteval's files hold no traces; use the result log (*.tasklog.json) of the run"
        )

    def model(self, name: str) -> Model:
        """A model of this engine."""
        from aigo_lighteval.models import single_model

        return single_model(name)

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Turn lighteval results into result logs."""
        return self.logs().import_logs(locations, out, options, tell)

    def logged_runs(self, out: Path) -> Iterable[LoggedRun]:
        """The runs whose results stand in a folder."""
        from aigo_lighteval.earlier import earlier_runs

        return [
            LoggedRun(
                run.path,
                str((run.plan.get("task") or {}).get("key")),
                (run.block.get("started_at") or 0.0, run.block.get("ended_at") or 0.0),
                {key: name for key, name in run.models.items() if key},
                run.block.get("datasets") or {},
            )
            for run in earlier_runs(out)
        ]

    def read(self, log: Path) -> Evidence:
        """Read back a results file that `run` has written."""
        from aigo_lighteval.evidence import read

        return read(log)
