"""What our runs leave in lighteval's files, written and read back in one place; without lighteval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.plan import Sample
from aigo_bridge.program import Failure, Row, Solution
from aigo_bridge.scoring.outcome import Outcome

BLOCK = "aigo_bridge"
"""Key of our block in the results file."""

FORMAT = 1
"""Version of the block and of the texts in the details."""

Json = dict[str, Any]
_OUTPUT: TypeAdapter[SolverOutput] = TypeAdapter(SolverOutput)


def dump_solution(result: Solution | Failure, *, postprocessed: bool) -> Json:
    """What a solver came to; `load_solution` gives it back."""
    if isinstance(result, Failure):
        return {"failure": result.to_json()}
    fields: Json = {"output": _dump(result.output)}
    if result.absent:
        fields["absent"] = True
    if postprocessed:
        fields["rows"] = [
            {
                "id": row.sample.id,
                "data": dict(row.sample.data),
                "output": None if row.output is None else _dump(row.output),
            }
            for row in result.rows
        ]
    return fields


def load_solution(stored: Mapping[str, Any], sample: Sample) -> Solution | Failure | None:
    """A solved sample as it stands in the details; `None` in tasks without a solver."""
    if "failure" in stored:
        return Failure.from_json(stored["failure"])
    if "output" not in stored:
        return None
    output = _load(stored["output"])
    if "rows" not in stored:
        return Solution(output, (Row(sample, output),))
    return Solution(
        output,
        tuple(
            Row(Sample(row["id"], row["data"]), None if row["output"] is None else _load(row["output"]))
            for row in stored["rows"]
        ),
        absent=stored.get("absent", False),
    )


def dump_result(result: Outcome | Failure) -> Json:
    """What a scorer came to; `load_result` gives it back."""
    if isinstance(result, Failure):
        return {"failure": result.to_json(), "details": dict(result.details)}
    return {"values": dict(result.values), "metadata": dict(result.metadata)}


def load_result(stored: Mapping[str, Any]) -> Outcome | Failure:
    """Back from `dump_result`."""
    if "failure" in stored:
        failure = Failure.from_json(stored["failure"])
        return Failure(failure.stage, failure.kind, failure.message, failure.hint, stored["details"])
    return Outcome(stored["values"], stored["metadata"])


def _dump(output: Any) -> Json:
    # Complete: AI GO's default dump leaves out what was not set.
    dumped: Json = output.model_dump(mode="json", exclude_unset=False, exclude_none=True)
    return dumped


def _load(stored: Any) -> SolverOutput:
    return _OUTPUT.validate_python(stored)
