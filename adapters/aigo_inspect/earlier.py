"""Earlier runs in a folder: which of them a run can go on from, or whose solver outputs it can score again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, EvalSample, RecoveryNotAvailable, read_eval_log, recover_eval_log

from aigo_bridge.engine import RunSettings
from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan import TaskPlan
from aigo_inspect.evidence import TRUSTED, execution_of
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.reading import open_log
from aigo_inspect.stored import has_failed, load_stored

Identity = tuple[Any, ...]
"""What tells the plans of one run apart: digest, evaluation, specification, number of the run."""


@dataclass(frozen=True)
class EarlierRun:
    """What the head of one of our logs says."""

    path: Path
    plan: Mapping[str, Any]
    """The header of its plan."""
    status: str
    model: str | None
    roles: Mapping[str, str | None]
    """AI GO model key → Inspect's name of the model."""
    limits: tuple[Any, ...]
    """Limits on each sample, see `limits_of`."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Data set key → file, for those that were named."""
    times: tuple[float, float] = (0.0, 0.0)
    """When it began and ended, as its evidence says."""


def identity_of(header: Mapping[str, Any]) -> Identity:
    """What the header of a plan says about which plan it is."""
    own = header.get("specification") or {}
    return (header.get("digest"), own.get("evaluation"), own.get("key"), own.get("run"))


def limits_of(settings: RunSettings) -> tuple[Any, ...]:
    """The limits on each sample: with others, the same sample may end otherwise."""
    return (settings.time_limit, settings.token_limit, settings.cost_limit)


def earlier_runs(out: Path) -> list[EarlierRun]:
    """Our logs in a folder, the newest first; what cannot be read is left out, an older one may do."""
    found: list[EarlierRun] = []
    for path in sorted(out.glob("*.eval"), key=os.path.getmtime, reverse=True):
        try:
            with open_log(path, bounds=TRUSTED) as log:
                header, summaries = log.header, log.summaries()
        except EvidenceError:
            continue
        spec = header.get("eval") or {}
        carried = (spec.get("metadata") or {}).get(HEADER_KEY)
        if not isinstance(carried, dict):
            continue
        config = spec.get("config") or {}
        execution = execution_of(header, summaries)
        roles = spec.get("model_roles") or {}
        found.append(
            EarlierRun(
                path=path,
                plan=carried,
                status=str(header.get("status") or "started"),
                model=spec.get("model"),
                roles={key: (role or {}).get("model") for key, role in roles.items()},
                limits=tuple(config.get(name) for name in ("time_limit", "token_limit", "cost_limit")),
                datasets=_named_datasets(spec),
                times=(execution.started_at, execution.ended_at),
            )
        )
    return found


def _named_datasets(spec: Mapping[str, Any]) -> dict[str, str]:
    named = (spec.get("task_args") or {}).get("dataset")
    return {str(key): str(file) for key, file in named.items()} if isinstance(named, dict) else {}


def same_run(
    runs: Sequence[EarlierRun], plan: TaskPlan, model: str | None, roles: Mapping[str, str]
) -> EarlierRun | None:
    """The newest run of the same plan with the same models, whatever became of it."""
    wanted = identity_of(plan.header())
    for run in runs:
        same_models = model is None or run.model == model
        if identity_of(run.plan) == wanted and same_models and dict(run.roles) == dict(roles):
            return run
    return None


def may_stand_in(run: EarlierRun, plan: TaskPlan, settings: RunSettings) -> bool:
    """Whether a run of the same plan may be taken in place of a new one."""
    own = plan.header()
    same = all(run.plan.get(key) == own[key] for key in ("specification", "fingerprints"))
    return same and _is_cached(run, settings)


def same_solver(
    runs: Sequence[EarlierRun],
    plan: TaskPlan,
    model: str | None,
    roles: Mapping[str, str],
    settings: RunSettings,
) -> EarlierRun | None:
    """The newest finished run that asked the same models the same questions; `None` for plans without a solver."""
    digest = plan.solver_digest
    if digest is None:
        return None
    asked = ("", *plan.solver_model_keys)
    for run in runs:
        same_models = (model is None or run.model == model) and all(
            run.roles.get(key) == roles.get(key) for key in plan.solver_model_keys
        )
        if (
            run.plan.get("solver_digest") == digest
            and same_models
            and _is_cached(run, settings)
            and _fingerprints(run.plan, asked) == _fingerprints(plan.header(), asked)
            and _number(run.plan) == _number(plan.header())
        ):
            return run
    return None


def _is_cached(run: EarlierRun, settings: RunSettings) -> bool:
    kept = run.plan.get("cache") != "no-cache"
    return kept and run.status == "success" and run.limits == limits_of(settings)


def _fingerprints(header: Mapping[str, Any], keys: Sequence[str]) -> list[str | None]:
    known = header.get("fingerprints") or {}
    return [known.get(key) for key in keys]


def _number(header: Mapping[str, Any]) -> int:
    """Number of the run: repeated runs are there to differ, so none of them stands in for another."""
    return int((header.get("specification") or {}).get("run") or 0)


def count_finished(path: Path) -> int:
    """How many trials of a log are finished: solved, and scored by every scorer."""
    with open_log(path, bounds=TRUSTED) as log:
        return sum(
            not sample.data.get("error")
            and bool(sample.data.get("completed_at"))
            and not any(has_failed(score) for score in (sample.data.get("scores") or {}).values())
            for sample in log.samples()
        )


def finished_part(path: Path) -> EvalLog:
    """A log with its finished trials only, those that Inspect will take over.

    Of a killed run also those that Inspect had not yet written to the file. For Inspect a sample whose scorer failed is finished, for us
    it is not.
    """
    log = recovered(path)
    solved = "solver" in ((log.eval.metadata or {})[HEADER_KEY]["task"].get("definition") or {})
    log.samples = [
        sample
        for sample in log.samples or []
        if sample.error is None
        and sample.completed_at
        and not any(has_failed(score.model_dump()) for score in (sample.scores or {}).values())
        and (not solved or load_stored(_native_json(sample)))
    ]
    return log


def _native_json(sample: EvalSample) -> dict[str, Any]:
    """Where a sample may hold what our solver came to; a recovered sample has its events only."""
    kept = sample.model_dump(mode="json", include={"output": {"metadata"}, "store": True})
    return kept if load_stored(kept) else sample.model_dump(mode="json", include={"events", "attachments"})


def recovered(path: Path) -> EvalLog:
    """A log with what Inspect had not yet written to the file when its run was killed."""
    log = read_eval_log(str(path))
    if log.status != "started":
        return log
    try:
        found = recover_eval_log(str(path), cleanup=False)
    except RecoveryNotAvailable:
        return log
    recovered_path = Path((found.location or "").removeprefix("file://"))
    if recovered_path != path and recovered_path.is_file():
        found = read_eval_log(str(recovered_path))
        # Its samples are in memory now; a second file of the same run would only confuse.
        recovered_path.unlink()
    found.location = str(path)
    return found
