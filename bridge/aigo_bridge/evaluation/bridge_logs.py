"""Import of aigo-bridge's own logs: the user's plan for recomputed metrics, and the import report.

Code in a log is never executed. To recompute Python metrics, the user provides the task. It is planned
with the values recorded in the log and must match the plan in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Evidence
from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportReport
from aigo_bridge.plan.logged_plan import LoggedPlan, plan_differences
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.results.records import HINT

if TYPE_CHECKING:
    from aigo_bridge.evaluation.writing import WrittenRun

_MOST_NAMED = 5


def check_task(task: str, root: str | None) -> None:
    """Check the task before anything else is read.

    Raises:
        UsageError: the task does not exist.
        SpecError: the task is invalid.
    """
    from aigo_bridge.evaluation.run_files import names_run_file
    from aigo_bridge.jsonl_spec import is_record_file
    from aigo_bridge.reading import read
    from aigo_bridge.reading.locating import find_task
    from aigo_bridge.spec.task import TaskSpec

    if names_run_file(task):
        return
    file = find_task(task)
    if not is_record_file(file):
        read(TaskSpec, file, root=None if root is None else Path(root))


def own_plan(task: str, logged: LoggedPlan, *, datasets: Mapping[str, str], root: str | None) -> TaskPlan:
    """Return the plan of the user's own task for a log.

    Args:
        task: task, or run file with the log's specification, as for `run`.
        logged: plan in the log; only its values are used, as data.
        datasets: dataset key → file, as for `run`.
        root: folder that the task may read files from.

    Raises:
        EvidenceError: the task cannot be planned with these values, or its plan differs; the message lists
            the differences.
    """
    from aigo_bridge.evaluation.run_files import Reference, holds_evaluation, parse_reference
    from aigo_bridge.evaluation.task import plan

    several = parse_reference(task) is None and holds_evaluation(task)
    if several and logged.specification is None:
        raise EvidenceError(
            "the log belongs to a task that was run alone; pass the task file", code=Code.OTHER_PLAN
        )
    if several and logged.specification is not None:
        task = str(Reference(Path(task), logged.specification.key, logged.specification.run))
    of_run_file = parse_reference(task) is not None
    origin = PlanOrigin(
        task=task,
        config={} if of_run_file else dict(logged.config),
        datasets=dict(datasets),
        num_samples=logged.num_samples,
        subsampling="random" if logged.subsampling == "random" and logged.num_samples is not None else None,
        num_trials=logged.num_trials if logged.entity != "system" else None,
        root=root,
    )
    try:
        task_plan = plan(origin)
    except BridgeError as error:
        raise EvidenceError(
            f"{task!r} cannot be planned with the values of the log: {error}", code=Code.OTHER_PLAN
        ) from error
    differences = list(plan_differences(task_plan, logged))
    if differences:
        more = f"; and {len(differences) - _MOST_NAMED} more" if len(differences) > _MOST_NAMED else ""
        shown = "; ".join(differences[:_MOST_NAMED])
        raise EvidenceError(f"the log does not match {task!r}: {shown}{more}", code=Code.OTHER_PLAN)
    return task_plan


def own_report(
    log: str,
    target: Path,
    evidence: Evidence,
    written: WrittenRun,
    notes: Sequence[str] = (),
    summary: Mapping[str, Any] | None = None,
) -> ImportReport:
    """Return the import report of one of aigo-bridge's own logs."""
    tally = written.tally
    recomputed = isinstance(tally.plan, TaskPlan)
    origin = (
        "the metrics were recomputed with your own task" if recomputed else "the evidence comes from the run"
    )
    missing = [
        f"metric {row.metric_key or row.name!r} of scorer {row.scorer_key!r} has no value: {row.problem}"
        for row in written.metrics.rows
        if row.value is None and (row.problem or "").endswith(HINT)
    ]
    damage = evidence.plan.damage
    facts = {
        "samples": tally.counts.samples,
        "failed": tally.counts.failed,
        "recomputed": recomputed,
        "without_value": missing,
        "unreadable": list(damage),
        **(summary or {}),
    }
    return ImportReport(
        log,
        target,
        status=evidence.execution.status,
        samples=tally.counts.samples,
        failed=tally.counts.failed,
        own=True,
        exit_code=ExitCode.PARTIAL if damage else ExitCode.DONE,
        notes=(
            f"written by aigo-bridge: {origin}",
            *notes,
            *missing,
            *(f"damaged: {problem}" for problem in damage),
        ),
        facts=facts,
    )
