"""Why documents failed, as far as details tell.

lighteval has no place for failures. Runs of aigo-bridge leave them where it takes them along: those of lighteval's own tasks in a column of
their own, those of tasks exported to it in the texts that carry what solver and scorers came to. Of other documents it is only seen that they
have no score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import TaskResultErrorStage

Json = dict[str, Any]

COLUMN = "aigo_failure"
"""Column of details with a document's failure as JSON; null for the others."""
CARRIER = "aigo"
"""Field of a response, and name of a metric, under which a hosted task's own results stand, one for each trial."""

_STAGES = frozenset(stage.value for stage in TaskResultErrorStage)


@dataclass(frozen=True)
class Failures:
    """What is known to have gone wrong with one document."""

    errors: tuple[tuple[int, Json], ...] = ()
    """Trial, from 0, and its error."""
    failed: bool = False
    """Whether the document as a whole has failed: some scorer has nothing to say of it in any trial."""


NONE = Failures()


def stored_failure(text: str | None) -> Failures:
    """The failure in the column of its own."""
    error = None if text is None else _error(_parsed(text))
    return NONE if error is None else Failures(((0, error),), failed=True)


def carried_failures(response: Json, metric: Json) -> Failures:
    """The failures in what a hosted task has left of a document; texts that are none of ours tell nothing."""
    texts = [part.get(CARRIER) for part in (response, metric)]
    if not any(isinstance(text, str) and '"failure"' in text for text in texts):
        return NONE
    solved, scored = (_trials(text) for text in texts)
    errors: list[tuple[int, Json]] = []
    heard: dict[tuple[str, str], bool] = {}
    """Scorer and row → whether there is a result of any trial."""
    for index in range(max(len(solved), len(scored))):
        # A solver's stands with the scores where a backend gave the answers.
        of_solver = [
            _error(trials[index].get("failure")) for trials in (solved, scored) if index < len(trials)
        ]
        errors += [(index, error) for error in of_solver if error is not None]
        for scorer, row_id, result in _results(scored[index] if index < len(scored) else {}):
            where = f"scorer {scorer!r}" + ("" if row_id is None else f", row {row_id!r}")
            error = _error(result.get("failure"), where)
            key = (scorer, str(row_id))
            heard[key] = heard.get(key, False) or error is None
            if error is not None:
                errors.append((index, error))
    return Failures(tuple(errors), bool(errors) and not (heard and all(heard.values())))


def unscored(*, answered: bool) -> Failures:
    """The failure of a document of which there is no score, and nobody says why."""
    what = "an answer and no score" if answered else "neither an answer nor a score"
    error = {"error_type": "UnscoredDocument", "message": f"lighteval kept {what} of the document"}
    return Failures(((0, error),), failed=True)


def _trials(text: Any) -> Sequence[Json]:
    found = _parsed(text) if isinstance(text, str) else None
    return [trial if isinstance(trial, dict) else {} for trial in found] if isinstance(found, list) else []


def _results(scored: Json) -> Iterator[tuple[str, Any, Json]]:
    """Scorer, id of the row (`None`: the sample itself), result."""
    for scorer, rows in scored.items():
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, list) and len(row) >= 2 and isinstance(row[1], dict):
                yield scorer, row[0], row[1]


def _error(raw: Any, where: str | None = None) -> Json | None:
    """A failure as evidence; `None` for what is no failure."""
    if not isinstance(raw, dict) or not all(isinstance(raw.get(name), str) for name in ("kind", "message")):
        return None
    error = {
        "error_type": raw["kind"],
        "message": f"{where}: {raw['message']}" if where else raw["message"],
    }
    if isinstance(raw.get("stage"), str) and raw["stage"] in _STAGES:
        error["stage"] = raw["stage"]
    if isinstance(raw.get("hint"), str):
        error["hint"] = raw["hint"]
    return error


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
