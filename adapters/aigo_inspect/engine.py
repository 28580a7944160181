"""The Inspect engine: three verbs over a plan."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from aigo_bridge.errors import EngineError, MissingEngineError
from aigo_bridge.extras import core_command
from aigo_bridge.gaps import contradictions, likelihood_gaps
from aigo_bridge.importing.report import ImportReport
from aigo_bridge.models import Model
from aigo_bridge.plan import TaskPlan
from aigo_bridge.results.result_files import LoggedRun

if TYPE_CHECKING:
    from aigo_bridge.doctor import Check

PACKAGE = "inspect-ai"

OLDEST = (0, 3, 285)
"""First Inspect release with everything that is used here."""


class InspectEngine:
    """Runs plans on Inspect AI."""

    name = "inspect"

    def __init__(self) -> None:
        try:
            installed = importlib.metadata.version(PACKAGE)
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingEngineError(f"inspect-ai is not installed; run: {core_command(PACKAGE)}") from error
        if _version(installed) < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            raise MissingEngineError(
                f"inspect-ai {installed} is too old, this release needs {wanted} or later; run: {core_command(PACKAGE)}"
            )

    @staticmethod
    def diagnose() -> list[Check]:
        """Which release of Inspect is installed, and whether it suits; for `aigo-bridge doctor`."""
        from aigo_bridge.doctor import Check

        try:
            installed = importlib.metadata.version(PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            return [Check(PACKAGE, "missing", "not installed", core_command(PACKAGE))]
        if _version(installed) < OLDEST:
            wanted = ".".join(map(str, OLDEST))
            reason = f"{installed} is too old, this release needs {wanted} or later"
            return [Check(PACKAGE, "missing", reason, core_command(PACKAGE))]
        return [Check(PACKAGE, "ok", installed)]

    @staticmethod
    def logs() -> EngineLogs:
        """Inspect's logs; read without Inspect."""
        from aigo_inspect.import_verb import InspectLogs

        return InspectLogs()

    def gaps(self, plan: TaskPlan) -> Sequence[Gap]:
        """What Inspect cannot run; nothing it runs departs from AI GO's semantics."""
        from aigo_inspect.sandbox import available, needs_sandbox

        found = [*contradictions(plan), *likelihood_gaps(plan)]
        if needs_sandbox(plan):
            name, reason = available()
            if name is None:
                hint = "see docs/sandbox.md: docker, or Linux with user namespaces"
                reason = f"runs code that a model wrote, and there is no sandbox here: {reason}"
                found.append(Gap("scorers (code_exec)", reason, Fidelity.UNSUPPORTED, hint))
        return found

    def run(self, plan: TaskPlan, settings: RunSettings) -> LogRef:
        """Run the plan with Inspect's `eval`, or finish an interrupted run of it."""
        from aigo_inspect.running import run

        return run(plan, settings)

    def run_all(self, jobs: Sequence[Job], settings: RunSettings) -> list[LogRef | EngineError]:
        """Run several plans with one call of Inspect's `eval`."""
        from aigo_inspect.running import run_all

        return run_all(jobs, settings)

    def trace_rows(self, location: str) -> Iterator[Mapping[str, Any]]:
        """The samples of Inspect logs as rows of a data set."""
        from aigo_inspect.trace_rows import trace_rows

        return trace_rows(location)

    def model(self, name: str) -> Model:
        """A model of Inspect."""
        from aigo_inspect.running import single_model

        return single_model(name)

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Turn Inspect logs into result logs."""
        return self.logs().import_logs(locations, out, options, tell)

    def logged_runs(self, out: Path) -> Iterable[LoggedRun]:
        """The runs whose logs stand in a folder."""
        from aigo_inspect.earlier import earlier_runs

        return [
            LoggedRun(
                run.path,
                str((run.plan.get("task") or {}).get("key")),
                run.times,
                {key: name for key, name in run.roles.items() if name is not None},
                run.datasets,
            )
            for run in earlier_runs(out)
        ]

    def read(self, log: Path) -> Evidence:
        """Read back a log that `run` has written."""
        from aigo_inspect.evidence import read

        return read(log)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())
