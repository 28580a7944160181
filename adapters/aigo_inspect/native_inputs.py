"""A row of a plan as Inspect's sample: what is asked, what is right, and the row itself in the metadata.

Evidence is read from the metadata alone; input and target are for Inspect's views and tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from inspect_ai.dataset import Sample as NativeSample
from inspect_ai.model import ChatMessage

from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.scoring.right_answers import right_answers
from aigo_bridge.solving.opening import compile_opening
from aigo_inspect.native_requests import native_messages

NOTHING_ASKED = "(nothing is asked: the task's own code computes its metrics)"


def native_samples(plan: TaskPlan) -> list[NativeSample]:
    """All samples of a plan."""
    if plan.entity == "system":
        return [
            NativeSample(id=sample.id, input=NOTHING_ASKED, metadata=dict(sample.data))
            for sample in plan.samples
        ]
    asked, answers = _asked(plan), right_answers(plan.benchmark.scorers)
    samples: list[NativeSample] = []
    for sample in plan.samples:
        right = answers(sample.data)
        target = right[0] if len(right) == 1 else list(right) or ""
        samples.append(
            NativeSample(id=sample.id, input=asked(sample), target=target, metadata=dict(sample.data))
        )
    return samples


def _asked(plan: TaskPlan) -> Callable[[Sample], str | list[ChatMessage]]:
    """What the evaluated model is asked first; where only the run makes that, the row in JSON."""
    solver = plan.benchmark.solver
    opening = None if solver is None else compile_opening(solver)
    if opening is None:
        return _row

    def asked(sample: Sample) -> str | list[ChatMessage]:
        try:
            messages = native_messages(opening(sample.data), "solver")
        except (SampleError, UnsupportedPlanError):
            return _row(sample)  # an error of the sample, or an input that is no chat
        if len(messages) == 1 and messages[0].role == "user" and isinstance(messages[0].content, str):
            return messages[0].content
        return messages or _row(sample)

    return asked


def _row(sample: Sample) -> str:
    return json.dumps(dict(sample.data), ensure_ascii=False, default=str)
