"""Earlier runs in a folder: which of them a run can go on from, or whose solver outputs it can score again."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.engine import RunSettings
from aigo_bridge.errors import EvidenceError
from aigo_bridge.plan import TaskPlan
from aigo_lighteval.evidence import block_of, stored_trials
from aigo_lighteval.stored import Json


@dataclass(frozen=True)
class EarlierRun:
    """What the block of one of our results files says."""

    path: Path
    block: Mapping[str, Any]

    @property
    def status(self) -> str:
        return str(self.block.get("status"))

    @property
    def plan(self) -> Mapping[str, Any]:
        """The header of its plan."""
        found: Mapping[str, Any] = self.block["plan"]
        return found

    @property
    def models(self) -> Mapping[str, str]:
        """AI GO model key (`""` for the evaluated model) → what it was called."""
        return dict(self.block.get("models") or {})


def earlier_runs(out: Path) -> list[EarlierRun]:
    """Our results files in a folder, the newest first; what cannot be read is left out, an older one may do."""
    found: list[EarlierRun] = []
    for path in sorted(out.glob("results/*/results_*.json"), key=os.path.getmtime, reverse=True):
        try:
            found.append(EarlierRun(path, block_of(path)))
        except EvidenceError:
            continue
    return found


def same_run(runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str]) -> EarlierRun | None:
    """The newest run of the same plan with the same models, whatever became of it."""
    wanted = _identity(plan.header())
    return next((run for run in runs if _identity(run.plan) == wanted and run.models == dict(models)), None)


def may_stand_in(run: EarlierRun, plan: TaskPlan, settings: RunSettings) -> bool:
    """Whether a run of the same plan may be taken in place of a new one."""
    own = plan.header()
    same = all(run.plan.get(key) == own[key] for key in ("specification", "fingerprints"))
    return same and _is_cached(run, settings)


def same_solver(
    runs: Sequence[EarlierRun], plan: TaskPlan, models: Mapping[str, str], settings: RunSettings
) -> EarlierRun | None:
    """The newest finished run that asked the same models the same questions; `None` for plans without a solver."""
    if plan.solver_digest is None:
        return None
    asked = ("", *plan.solver_model_keys)
    own = plan.header()
    for run in runs:
        if (
            run.plan.get("solver_digest") == plan.solver_digest
            and all(run.models.get(key) == models.get(key) for key in asked)
            and _is_cached(run, settings)
            and _fingerprints(run.plan, asked) == _fingerprints(own, asked)
            and _specified(run.plan).get("run") == _specified(own).get("run")
        ):
            return run
    return None


def finished_trials(run: EarlierRun, plan: TaskPlan) -> dict[tuple[int, int], tuple[Json, Json]]:
    """What solver and scorers left of the trials that ended without a failure, by number of the sample and of the trial."""
    numbers = {str(sample.id): number for number, sample in enumerate(plan.samples)}
    found: dict[tuple[int, int], tuple[Json, Json]] = {}
    for sample_id, _, solved, scored in stored_trials(run.path, run.block):
        for trial, (left, results) in enumerate(zip(solved, scored, strict=True)):
            if left is None or results is None or "failure" in left or _has_failed(results):
                continue
            found[numbers[str(sample_id)], trial] = (left, results)
    return found


def _has_failed(scored: Json) -> bool:
    return any("failure" in stored for results in scored.values() for _, stored, _ in results)


def _is_cached(run: EarlierRun, settings: RunSettings) -> bool:
    limits = [settings.time_limit, settings.token_limit]
    no_cache = "no-cache" in (run.plan.get("cache"), _specified(run.plan).get("cache"))
    return run.status == "success" and run.block.get("limits") == limits and not no_cache


def _identity(header: Mapping[str, Any]) -> tuple[Any, ...]:
    own = _specified(header)
    return (header.get("digest"), own.get("evaluation"), own.get("key"), own.get("run"))


def _specified(header: Mapping[str, Any]) -> Mapping[str, Any]:
    return header.get("specification") or {}


def _fingerprints(header: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    given = header.get("fingerprints") or {}
    return [given.get(key) for key in keys]
