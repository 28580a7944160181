"""What our solvers and scorers leave in a log, written and read back in one place; without Inspect."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from aigo_bridge.dtypes import SolverOutput, make_explicit
from aigo_bridge.metrics.numbers import as_number
from aigo_bridge.plan import Sample
from aigo_bridge.program import Failure, Row, Solution
from aigo_bridge.scoring.outcome import Outcome
from aigo_inspect.keys import SCORE_KEY, STORE_KEY
from aigo_inspect.score_views import answer_of, explanation_of

_OUTPUT: TypeAdapter[SolverOutput] = TypeAdapter(SolverOutput)

_ATTACHMENT = "attachment://"

# Solutions


def dump_stored(result: Solution | Failure, *, postprocessed: bool = False) -> str:
    """What a solver came to as the log keeps it; `load_stored` gives it back.

    A text, because Inspect walks through nested values again and again (a sixth of a run's time).
    """
    fields = (
        {"failure": result.to_json()}
        if isinstance(result, Failure)
        else _solution_fields(result, postprocessed)
    )
    return json.dumps(fields, ensure_ascii=False, default=str)


def load_stored(sample: Mapping[str, Any]) -> dict[str, Any]:
    """What a sample (its raw JSON, before anything is resolved) says of our solver; empty when nothing.

    It stands in the metadata of the output, in older logs in the store. Samples that Inspect recovers from a killed run have neither;
    what was put there stands in their events.
    """
    stored = ((sample.get("output") or {}).get("metadata") or {}).get(STORE_KEY)
    if stored is None:
        stored = (sample.get("store") or {}).get(STORE_KEY)
    if stored is None:
        stored = _from_events(sample.get("events") or [])
    if isinstance(stored, str) and stored.startswith(_ATTACHMENT):
        stored = (sample.get("attachments") or {}).get(stored.removeprefix(_ATTACHMENT))
    if isinstance(stored, str):
        stored = json.loads(stored)
    return stored or {}


def _from_events(events: Iterable[Any]) -> Any:
    found = None
    for event in events:
        if event.get("event") in ("state", "store"):
            for change in event.get("changes") or []:
                if change.get("op") in ("add", "replace"):
                    found = _CHANGED.get(change.get("path"), _nothing)(change.get("value")) or found
    return found


def _nothing(value: object) -> None:
    """Any other change."""


def _member(value: Any, name: str = STORE_KEY) -> Any:
    return value.get(name) if isinstance(value, dict) else None


_CHANGED: dict[str | None, Callable[[Any], Any]] = {
    "/output": lambda value: _member(_member(value, "metadata")),
    "/output/metadata": _member,
    f"/output/metadata/{STORE_KEY}": lambda value: value,
    f"/{STORE_KEY}": lambda value: value,
}
"""Paths of changes that put our text into a sample → where it stands in the change's value."""


def _solution_fields(solution: Solution, postprocessed: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"output": _dump(solution.output)}
    if solution.absent:
        fields["absent"] = True
    if postprocessed:
        fields["rows"] = [
            {"id": row.sample.id, "data": dict(row.sample.data), "output": row.output and _dump(row.output)}
            for row in solution.rows
        ]
    return fields


def solution_of(stored: Mapping[str, Any], sample: Sample) -> Solution | None:
    """A solved sample as it stands in a log; `None` when there is none, because the solver failed."""
    if "output" not in stored:
        return None
    output = _load(stored["output"])
    if "rows" not in stored:
        return Solution(output, (Row(sample, output),))
    return Solution(
        output,
        tuple(Row(Sample(row["id"], row["data"]), _load(row["output"])) for row in stored["rows"]),
        absent=stored.get("absent", False),
    )


def _dump(output: Any) -> dict[str, Any]:
    """Complete, though AI GO's default dump leaves out what was not set."""
    dumped: dict[str, Any] = make_explicit(output).model_dump(mode="json")
    return dumped


def _load(stored: Mapping[str, Any]) -> SolverOutput:
    return _OUTPUT.validate_python(stored)


# Scores


def score_fields(result: Outcome | Failure, answer: str | None = None) -> dict[str, Any]:
    """The fields of an Inspect score that stands for a scorer's result; `outcomes_of` gives it back.

    A failed scorer is unscored for Inspect (NaN, left out of metrics) and carries the reason. One value stands there by itself, as
    Inspect's tables have it, and its name in the metadata.

    Args:
        result: of the scorer.
        answer: the model's last answer, for views; scorers that compare another text have it in their metadata.
    """
    if isinstance(result, Failure):
        metadata = {SCORE_KEY: {"failure": result.to_json()}, **result.details}
        reason = result.message
        return {
            "value": math.nan,
            "answer": answer,
            "explanation": reason,
            "reason": reason,
            "metadata": metadata,
        }
    shown = {name: value for name, value in result.values.items() if _fits(value)}
    kept: dict[str, Any] = dict(result.metadata)
    if len(shown) < len(result.values) or SCORE_KEY in kept:
        kept = {SCORE_KEY: {"values": dict(result.values), "metadata": dict(result.metadata)}}
    elif len(shown) == 1:
        kept[SCORE_KEY] = {"name": next(iter(shown))}
    return {
        "value": _alone(shown),
        "answer": answer_of(result, answer),
        "explanation": explanation_of(result),
        "metadata": kept or None,
    }


def rows_score_fields(results: Mapping[str, Outcome | Failure], answer: str | None = None) -> dict[str, Any]:
    """As `score_fields`, for the rows that a post-processor made (by id); the value shown is the mean of each number."""
    metadata = {SCORE_KEY: {"rows": {row_id: _dump_result(result) for row_id, result in results.items()}}}
    outcomes = [result for result in results.values() if isinstance(result, Outcome)]
    if not outcomes:
        failures = [result.message for result in results.values() if isinstance(result, Failure)]
        reason = failures[0] if failures else "the post-processor made no rows"
        return {"value": math.nan, "reason": reason, "metadata": metadata}
    explanation = f"mean over {len(outcomes)} of {len(results)} rows"
    return {
        "value": _alone(_means(outcomes)),
        "answer": answer,
        "explanation": explanation,
        "metadata": metadata,
    }


def _alone(values: dict[str, Any]) -> Any:
    """The value, where there is one."""
    return next(iter(values.values())) if len(values) == 1 else values


def outcomes_of(score: Mapping[str, Any]) -> dict[str | None, Outcome | Failure]:
    """A score as it stands in a log, back as the scorer's results by id of the row; `None` for the sample itself."""
    ours = (score.get("metadata") or {}).get(SCORE_KEY) or {}
    if "rows" in ours:
        return {row_id: _load_result(result) for row_id, result in ours["rows"].items()}
    return {None: _outcome(score)}


def name_values(events: Iterable[dict[str, Any]]) -> None:
    """Put the values of score events back under their names, in place: that a lone one stands by itself is for Inspect's tables."""
    for event in events:
        score = event.get("score") if event.get("event") == "score" else None
        metadata = score.get("metadata") if isinstance(score, dict) else None
        if not isinstance(score, dict) or not isinstance(metadata, dict):
            continue
        ours = metadata.get(SCORE_KEY)
        if isinstance(ours, dict) and "name" in ours:
            rest = {name: each for name, each in metadata.items() if name != SCORE_KEY}
            event["score"] = {**score, "value": {ours["name"]: score.get("value")}, "metadata": rest or None}


def has_failed(score: Mapping[str, Any]) -> bool:
    """Whether a scorer could not score the sample, or one of its rows."""
    return any(isinstance(result, Failure) for result in outcomes_of(score).values())


def _outcome(score: Mapping[str, Any]) -> Outcome | Failure:
    metadata: dict[str, Any] = score.get("metadata") or {}
    ours = metadata.get(SCORE_KEY) or {}
    if "failure" in ours:
        failure = Failure.from_json(ours["failure"])
        rest = {name: value for name, value in metadata.items() if name != SCORE_KEY}
        return Failure(failure.stage, failure.kind, failure.message, failure.hint, rest)
    if "values" in ours:
        return Outcome(ours["values"], ours["metadata"])
    value = score.get("value")
    if "name" in ours:
        return Outcome(
            {ours["name"]: value}, {name: each for name, each in metadata.items() if name != SCORE_KEY}
        )
    return Outcome(value if isinstance(value, dict) else {"value": value}, metadata)


def _dump_result(result: Outcome | Failure) -> dict[str, Any]:
    if isinstance(result, Failure):
        return {"failure": result.to_json(), "details": dict(result.details)}
    return {"values": dict(result.values), "metadata": dict(result.metadata)}


def _load_result(stored: Mapping[str, Any]) -> Outcome | Failure:
    if "failure" in stored:
        failure = Failure.from_json(stored["failure"])
        return Failure(failure.stage, failure.kind, failure.message, failure.hint, stored["details"])
    return Outcome(stored["values"], stored["metadata"])


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    numbers: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.values.items():
            number = as_number(value)
            if number is not None and _fits(number):
                numbers.setdefault(name, []).append(number)
    return {name: math.fsum(values) / len(values) for name, values in numbers.items()}


def _fits(value: object) -> bool:
    """Whether Inspect's score can hold a value inside a dictionary without changing it."""
    return isinstance(value, str | int | float | bool) and not (
        isinstance(value, float) and math.isnan(value)
    )
