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
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.provenance.record import Making, write_provenance


def keep_provenance(
    plan: TaskPlan,
    result: Path,
    engine: Engine,
    logs: Sequence[LogRef],
    models: Mapping[str, str],
    tape: Tape | None = None,
    *,
    repeated: Sequence[TaskPlan] = (),
) -> None:
    """Write the provenance of a result of a run beside it.

    Args:
        plan: what was run, or was to be.
        result: what was written of it.
        engine: that ran it.
        logs: its native logs.
        models: AI GO model key → the engine's name of the model that answered.
        tape: what the calls of the run went past; `None`: nothing.
        repeated: the plans of all runs of a repeated task.

    Raises:
        EvidenceError: it cannot be written; the result stays.
    """
    origin = plan.origin
    making = Making(
        "run" if origin is None or origin.stored is None else "score",
        engine.name,
        engine_version=engine_version(engine),
        models=models,
        logs=[file for log in logs for file in engine.capabilities.log_files(log.path)],
        plan=_plan_digests(plan),
        cassette=None if tape is None else {"use": tape.use, "tasks": tape.lines(repeated or [plan])},
        folder=_folder(plan),
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


def _plan_digests(plan: TaskPlan) -> dict[str, Any]:
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
        "models": dict(plan.fingerprints),
    }


def _folder(plan: TaskPlan) -> Path | None:
    if plan.origin is None:
        return None
    file = Path(plan.origin.task.partition("#")[0])
    return file.parent if file.is_file() else file if file.is_dir() else None


def engine_version(engine: Engine) -> str | None:
    """Of the engine's package that is installed here; `None`: it has none of its own."""
    distribution = engine.capabilities.distribution
    try:
        return None if distribution is None else importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
