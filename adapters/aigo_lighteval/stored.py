"""What our runs leave in lighteval's files, written and read back in one place; without lighteval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.plan import Sample
from aigo_bridge.program import Failure, Row, Solution
from aigo_bridge.scoring.outcome import Outcome
from aigo_lighteval.recording import Recording

BLOCK = "aigo_bridge"
"""Key of our block in the results file."""

FORMAT = 1
"""Version of the block and of the texts in the details."""

Json = dict[str, Any]
_OUTPUT: TypeAdapter[SolverOutput] = TypeAdapter(SolverOutput)


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solver has come to in one trial; JSON is made of it when it is saved."""

    result: Solution | Failure
    record: Recording
    postprocessed: bool
    """Whether the plan has a post-processor, whose rows are kept."""

    def to_json(self) -> Json:
        """As it stands in the details."""
        try:
            kept = dump_solution(self.result, postprocessed=self.postprocessed)
        except (ValueError, RecursionError) as error:
            # Author's code can nest its output deeper than can be written: that sample fails, and no other.
            message = f"the output cannot be written as JSON: {error}"
            kept = dump_solution(Failure("solver", "InvalidSolverOutput", message), postprocessed=False)
        return {**kept, "record": self.record.to_json()}


ScoredRow = tuple[str | None, Outcome | Failure, Recording | None]
"""Id of a row that a post-processor made (`None`: the sample itself), what a scorer says of it, and its calls, where it made any."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the scorers have come to in one trial, by key of the scorer."""

    results: Mapping[str, Sequence[ScoredRow]]

    def to_json(self) -> Json:
        """As it stands in the details."""
        return {
            key: [
                [row_id, dump_result(result), None if record is None else record.to_json()]
                for row_id, result, record in rows
            ]
            for key, rows in self.results.items()
        }


def as_json(kept: Solved | Scored | Json) -> Json:
    """What is kept of a trial as it stands in the details; trials of an earlier run come from there."""
    return kept if isinstance(kept, dict) else kept.to_json()


def is_plain(solved: Solved | Json) -> bool:
    """Whether a trial was solved, and its sample itself is what is scored."""
    if isinstance(solved, Solved):
        return isinstance(solved.result, Solution) and not solved.postprocessed
    return "failure" not in solved and "rows" not in solved


def results_of(
    scored: Scored | Json, key: str
) -> Iterable[tuple[str | None, Outcome | Failure, Json | None]]:
    """What one scorer has come to in one trial: id of the row, result, calls."""
    if isinstance(scored, Scored):
        for row_id, result, record in scored.results.get(key, ()):
            yield row_id, result, None if record is None else record.to_json()
    else:
        for row_id, stored, calls in scored.get(key, ()):
            yield row_id, load_result(stored), calls


def calls_of_solver(solved: Solved | Json) -> Recording | Json | None:
    """What a solver has called in one trial; `None` where there is no solver."""
    return solved.record if isinstance(solved, Solved) else solved.get("record")


def calls_of_scorers(scored: Scored | Json) -> list[Recording | Json]:
    """What the scorers have called in one trial."""
    results = scored.results if isinstance(scored, Scored) else scored
    return [record for rows in results.values() for _, _, record in rows if record is not None]


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
