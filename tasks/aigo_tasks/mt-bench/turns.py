"""One row per turn: the conversation up to and with the answer of that turn."""

from __future__ import annotations

from typing import Any

from latticeflow.core.dtypes import SolverTrace, Trace


def postprocess(sample: dict[str, Any], solver_output: Any) -> list[tuple[dict[str, Any], Any]]:
    rows = []
    so_far: list[Any] = []
    for number, turn in enumerate(solver_output.trace.turns):
        so_far = [*so_far, turn.user_message, *turn.assistant_items]
        output = SolverTrace(
            trace=Trace.from_items(so_far), raw_outputs=list(solver_output.raw_outputs[: number + 1]), direct_ios=[]
        )
        references = sample["reference"] or []
        reference = references[number] if number < len(references) else ""
        rows.append(({**sample, "turn": number + 1, "turn_reference": reference}, output))
    return rows
