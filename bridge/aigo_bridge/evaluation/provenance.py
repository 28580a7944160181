"""The provenance of what a run writes."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.cassettes.tape import Tape
from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import Engine
from aigo_bridge.engine.protocol import LogRef
from aigo_bridge.errors import EvidenceError, Issue
from aigo_bridge.plan.logged_plan import AnyPlan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_trust.provenance.record import Making, write_provenance


def keep_provenance(
    plan: AnyPlan,
    result: Path,
    engine: Engine,
    logs: Sequence[LogRef],
    models: Mapping[str, str],
    *,
    cassette: Mapping[str, Any] | None = None,
    datasets: Mapping[str, str] | None = None,
) -> None:
    """Write the provenance of a result of a run beside it.

    Args:
        plan: what was run, or was to be.
        result: what was written of it.
        engine: that ran it.
        logs: its native logs.
        models: AI GO model key → the engine's name of the model that answered.
        cassette: from `cassette_digests`; `None`: the run had no cassette.
        datasets: dataset key → file that was given for it; `None`: as the plan says.

    Raises:
        EvidenceError: it cannot be written; the result stays.
    """
    origin = plan.origin if isinstance(plan, TaskPlan) else None
    making = Making(
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
        write_provenance(result, making)
    except OSError as error:
        message = f"the provenance cannot be written: {error.strerror or error}"
        raise EvidenceError(
            [
                Issue(
                    message,
                    file=str(result),
                    hint="the result itself is complete",
                    code=Code.EVIDENCE_NOT_WRITTEN,
                )
            ]
        ) from error


def cassette_digests(tape: Tape | None, plans: Sequence[TaskPlan]) -> dict[str, Any] | None:
    """Return the digests of the lines that a cassette has of plans; `None`: there is no cassette."""
    return None if tape is None else {"use": tape.use, "tasks": tape.lines(plans)}


def _plan_digests(plan: AnyPlan) -> dict[str, Any]:
    """What a plan says of itself; digests are those of its header in the native log."""
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
    """The options of the run that its result does not have."""
    origin = plan.origin if isinstance(plan, TaskPlan) else None
    specification = plan.specification
    if datasets is None:
        datasets = {} if origin is None else origin.datasets
    return {
        "specification": None if specification is None else specification.key,
        "config": {} if specification is None or origin is None else dict(origin.config),
        "datasets": {key: Path(file).name for key, file in datasets.items()},
    }


def _folder(origin: PlanOrigin) -> Path | None:
    file = Path(origin.task.partition("#")[0])
    return file.parent if file.is_file() else file if file.is_dir() else None


def engine_version(engine: Engine) -> str | None:
    """Of the engine's package that is installed here; `None`: it has none of its own."""
    distribution = engine.capabilities.distribution
    try:
        return None if distribution is None else importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
