"""Digests of the probed task and result, and the check that they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.errors import BridgeError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.reading import LogReader
from aigo_trust.probing.evidence import ProbeSubject
from aigo_trust.provenance.definitions import digest_or_none
from aigo_trust.provenance.record import provenance_of
from aigo_trust.provenance.texts import ResultTexts, read_texts
from aigo_trust.verification.contents import compare_task
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.user_plan import own_task

_MOST_DIFFERENCES = 10


def source_of(plan: TaskPlan, result: Path, num_unsolved: int) -> ProbeSubject:
    """Return the digests of the probed task and result.

    Args:
        plan: plan of the user's own task with the result's outputs.
        result: path of the result log.
        num_unsolved: number of trials skipped without an output.

    Raises:
        EvidenceError: the result cannot be read.
    """
    texts = read_texts(result)
    specification = texts.frame.get("specification")
    task = specification.get("task") if isinstance(specification, Mapping) else None
    key = task.get("key") if isinstance(task, Mapping) else None
    return ProbeSubject(
        task=plan.task.key,
        task_sha256=digest_or_none(plan.document),
        plan=plan.digest,
        result=result.name,
        result_sha256=texts.digest(),
        result_task=key if isinstance(key, str) else None,
        result_task_sha256=digest_or_none(task),
        differences=tuple(_differences(plan, result, texts, key)),
        num_samples=len(texts.samples),
        num_failed=num_unsolved,
    )


def _differences(plan: TaskPlan, result: Path, texts: ResultTexts, key: Any) -> list[str]:
    if key != plan.task.key:
        return [f"it belongs to task {key!r}, not to {plan.task.key!r}"]
    assert plan.origin is not None
    frame = LogReader(result).frame()
    materials = Materials(task=plan.origin.task, root=plan.origin.root)
    try:
        own = own_task(plan.origin.task, result, frame, provenance_of(result), materials)
        engine = getattr(frame.specification.evaluated_entity, "adapter_id", None)
        findings = [str(finding) for finding in compare_task(texts, own, engine, None)[0]]
    except BridgeError as error:
        return [f"the task cannot be planned with its values: {error}"]
    more = len(findings) - _MOST_DIFFERENCES
    return [*findings[:_MOST_DIFFERENCES], *([f"and {more} more"] if more > 0 else [])]
