"""Hook that runs after each result is written. An extra writes the provenance of the result next to it."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.hooks import load_hook

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import Engine
    from aigo_bridge.engine.protocol import LogRef
    from aigo_bridge.engine.recording import Recording
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_bridge.plan.logged_plan import AnyPlan
    from aigo_bridge.plan.plan import PlanOrigin, TaskPlan


@dataclass(frozen=True)
class ResultOrigin:
    """Run or import that created a result, with facts that only its writer knows."""

    verb: str
    """`run`, `score` or `import`."""
    engine: str | None = None
    engine_version: str | None = None
    """Version of the engine, if it ran on this machine."""
    models: Mapping[str, str] = field(default_factory=dict)
    """AI GO model key (`""` for the evaluated model) → engine's name of the model that was called."""
    logs: Sequence[str | Path] = ()
    """Native logs of the result."""
    plan: Mapping[str, Any] | None = None
    """Digests of the plan that ran; `None` if unknown."""
    cassette: Mapping[str, Any] | None = None
    """Recording of the run: its `use`, and digests of its lines (`tasks`); `None` without a recording."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the import."""
    folder: Path | None = None
    """Folder of the task; `None` if unknown."""


@dataclass(frozen=True)
class Provenance:
    """Hook `provenance`."""

    write: Callable[[Path, ResultOrigin], object]
    """Called with a result that was just written. The provenance of an earlier result is deleted.

    Raises:
        EvidenceError: the result cannot be read.
        OSError: the file cannot be written.
    """
    file: Callable[[Path], Path]
    """Returns the file for the provenance of a result."""
    read: Callable[[Path], dict[str, Any] | None]
    """Returns the provenance of a result; `None` if the file is missing.

    Raises:
        EvidenceError: the provenance cannot be read, is damaged or was modified.
    """


def _hook() -> Provenance:
    return load_hook("provenance", Provenance)


def provenance_file(result: Path) -> Path:
    """Return the file for the provenance of a result."""
    return _hook().file(result)


def provenance_of(result: Path) -> dict[str, Any] | None:
    """Return the provenance of a result; `None` if the file is missing.

    Raises:
        EvidenceError: the provenance cannot be read, is damaged or was modified.
    """
    return _hook().read(result)


def write_import_provenance(
    report: ImportReport,
    engine: str,
    logs: Sequence[str | None],
    options: ImportOptions,
    *,
    verb: str = "import",
) -> ImportReport:
    """Write the provenance of an imported result next to it, if the options ask for it.

    A table is written without provenance.

    Args:
        report: report of the import, whose result is written.
        engine: engine that wrote the logs.
        logs: locations of the logs, as the user named them.
        options: options of the import.
        verb: `run` for an engine's own benchmark.

    Returns:
        The report, with the reason if the provenance could not be written.
    """
    is_asked = options.provenance or verb == "run"
    if not is_asked or report.output is None or options.output_format == "parquet":
        return report
    chosen = {
        "context": options.context,
        "events": options.events,
        "redact": options.redact,
        "patterns": len(options.patterns),
    }
    source = ResultOrigin(
        verb,
        engine,
        logs=[log for log in logs if log is not None],
        options=chosen if verb == "import" else {},
    )
    try:
        _hook().write(report.output, source)
    except (OSError, EvidenceError) as error:
        missing = f"the provenance cannot be written: {getattr(error, 'strerror', None) or error}"
        reason = f"{missing}; {report.reason}" if report.reason else missing
        return replace(report, exit_code=ExitCode.PARTIAL, reason=reason)
    return report


def write_run_provenance(
    plan: AnyPlan,
    result: Path,
    engine: Engine,
    logs: Sequence[LogRef],
    models: Mapping[str, str],
    *,
    cassette: Mapping[str, Any] | None = None,
    datasets: Mapping[str, str] | None = None,
) -> None:
    """Write the provenance of a run's result next to it.

    Args:
        plan: plan that ran.
        result: result log of the plan.
        engine: engine that ran it.
        logs: native logs of the run.
        models: AI GO model key → engine's name of the model that answered.
        cassette: output of `cassette_digests`; `None` if the run did not use a cassette.
        datasets: dataset key → file that the user named; `None` for the files in the plan.

    Raises:
        EvidenceError: it cannot be written; the result stays.
    """
    origin = _origin(plan)
    source = ResultOrigin(
        "run" if origin is None or origin.stored is None else "score",
        engine.name,
        engine_version=engine_version(engine),
        models=models,
        logs=[file for log in logs for file in engine.capabilities.log_files(log.path)],
        plan={**_plan_digests(plan), "options": _options(plan, datasets)},
        cassette=cassette,
        folder=None if origin is None else _folder(origin),
    )
    try:
        _hook().write(result, source)
    except OSError as error:
        message = f"the provenance cannot be written: {error.strerror or error}"
        raise EvidenceError(
            message, file=str(result), hint="the result itself is complete", code=Code.EVIDENCE_NOT_WRITTEN
        ) from error


def cassette_digests(recording: Recording | None, plans: Sequence[TaskPlan]) -> dict[str, Any] | None:
    """Return the digests of a recording's lines for some plans; `None` without a recording."""
    return None if recording is None else {"use": recording.use, "tasks": recording.lines(plans)}


def _plan_digests(plan: AnyPlan) -> dict[str, Any]:
    """Return the facts of a plan; its digests are also in the header of the native log."""
    from aigo_bridge.plan.plan import TaskPlan

    dataset = plan.dataset
    return {
        "sha256": plan.digest,
        "solver_sha256": plan.solver_digest,
        "dataset": None if dataset is None else {"key": dataset.key, "sha256": dataset.digest},
        "num_trials": plan.num_trials,
        "num_samples": plan.num_samples,
        "subsampling": plan.subsampling,
        "snippets": plan.snippets,
        "models": dict(plan.fingerprints) if isinstance(plan, TaskPlan) else {},
    }


def _options(plan: AnyPlan, datasets: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the options of the run that are missing in its result."""
    origin = _origin(plan)
    specification = plan.specification
    if datasets is None:
        datasets = {} if origin is None else origin.datasets
    return {
        "specification": None if specification is None else specification.key,
        "config": {} if specification is None or origin is None else dict(origin.config),
        "datasets": {key: Path(file).name for key, file in datasets.items()},
    }


def _origin(plan: AnyPlan) -> PlanOrigin | None:
    from aigo_bridge.plan.plan import TaskPlan

    return plan.origin if isinstance(plan, TaskPlan) else None


def _folder(origin: PlanOrigin) -> Path | None:
    file = Path(origin.task.partition("#")[0])
    return file.parent if file.is_file() else file if file.is_dir() else None


def engine_version(engine: Engine) -> str | None:
    """Return the version of the engine's package; `None` if the package is unknown or not installed."""
    distribution = engine.capabilities.distribution
    try:
        return None if distribution is None else importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
