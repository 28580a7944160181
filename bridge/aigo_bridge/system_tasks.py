"""System tasks: metrics that the author's code computes by itself, without a model or a data set.

The snippet defines `compute_evidence()` and returns `{"metrics": {name: {"value": number, "reason": text}}}`; `reason` may be
missing. It may use the network (it often looks at a running system) and runs in the snippet worker like all others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from aigo_bridge.dtypes import MetricData
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.spec import SystemDefinition

SCORER_KEY = "compute_evidence"
"""Name under which engines log what a system task computed."""

SAMPLE_ID = "system"
"""Id of the one sample that engines see of a system task."""


async def compute_evidence(plan: TaskPlan, host: SnippetHost) -> Outcome:
    """Run a system task's snippet: metric name → number as values, reasons as metadata.

    Raises:
        SampleError: the snippet failed, or did not return metrics (stage `metric`).
    """
    assert isinstance(plan.definition, SystemDefinition)
    snippet = Snippet(
        plan.definition.compute_evidence_snippet, "compute_evidence", "compute_evidence_snippet"
    ).at(plan.snippet_place("compute_evidence_snippet"))
    try:
        output = await host.call(snippet)
    except SnippetError as error:
        raise SampleError(str(error), stage="metric", kind="SnippetError") from error
    metrics = output.get("metrics") if isinstance(output, Mapping) else None
    if not isinstance(metrics, Mapping):
        raise _wrong(snippet, f"returned {output!r:.80}, expected a mapping with 'metrics'")
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, entry in metrics.items():
        value = entry.get("value") if isinstance(entry, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _wrong(
                snippet, f"metric {name!r} is {entry!r:.80}, expected a mapping with a number as 'value'"
            )
        values[str(name)] = value
        if isinstance(entry.get("reason"), str):
            reasons[str(name)] = entry["reason"]
    metadata = output.get("metadata")
    return Outcome(values, {"reasons": reasons, **({"metadata": metadata} if metadata else {})})


def _wrong(snippet: Snippet, message: str) -> SampleError:
    return SampleError(snippet.told(message), stage="metric", kind="InvalidEvidence")


def metric_data(outcome: Outcome) -> list[MetricData]:
    """What a system task computed, as AI GO keeps it: one entry per metric, with its reason."""
    reasons = outcome.metadata.get("reasons") or {}
    found: list[MetricData] = []
    for name, value in outcome.values.items():
        fields: dict[str, Any] = {"values": {name: value}, "metric_key": name, "metric_type": "system_task"}
        if name in reasons:
            fields["reason"] = reasons[name]
        found.append(MetricData(**fields))
    return found
