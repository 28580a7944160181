"""What no exported file of lighteval can run."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.gaps import contradictions
from aigo_bridge.plan import TaskPlan


def export_gaps(plan: TaskPlan) -> Sequence[Gap]:
    """Tasks that cannot run under lighteval's command line in any form."""
    if plan.entity == "system":
        reason = "has no rows, and lighteval runs no task without documents"
        return [Gap("definition (system_task)", reason, Fidelity.UNSUPPORTED, "aigo-bridge run runs it")]
    found = list(contradictions(plan))
    if not plan.samples:
        found.append(
            Gap("dataset", "has no rows, and lighteval runs no task without documents", Fidelity.UNSUPPORTED)
        )
    found += [
        Gap(
            f"scorers[{number}] (code_exec)",
            "runs code that a model wrote, and lighteval has no sandbox",
            Fidelity.UNSUPPORTED,
            "export it with --to inspect",
        )
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.type == "code_exec"
    ]
    return found
