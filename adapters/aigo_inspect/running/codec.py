"""Encoding and decoding of the data that aigo-bridge's solvers and scorers store in an Inspect log. It does
not need Inspect.

Evidence is read only from the value and metadata of a score. Its answer and explanation are for Inspect's log
viewer.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    RAGCompletionOutput,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    make_explicit,
)
from aigo_bridge.errors import EvidenceError
from aigo_bridge.execution.codec import Json, dump_result, dump_solution, load_result, load_solution
from aigo_bridge.execution.solutions import SampleFailure, Solution
from aigo_bridge.metrics.metric import as_number
from aigo_bridge.plan.plan import Sample
from aigo_bridge.results.records import StoredNumbers, numbers_from_json
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.text.plurals import plural
from aigo_bridge.text.summaries import short
from aigo_inspect.logs.reader import InspectLogReader
from aigo_inspect.logs.shapes import SCORE_KEY, STORE_KEY

_ATTACHMENT = "attachment://"

# Solutions


def dump_stored(result: Solution | SampleFailure, *, postprocessed: bool = False) -> str:
    """Encode the result of a solver for the log. `load_stored` decodes it.

    The result is a text, because Inspect repeatedly walks through nested values, which took a sixth of a
    run's time.
    """
    fields = dump_solution(result, _dump, postprocessed=postprocessed)
    return json.dumps(fields, ensure_ascii=False, default=str)


def load_stored(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored result of aigo-bridge's solver in a raw sample (JSON before attachments are
    resolved); empty if it is missing.

    The result is in the metadata of the output, or in the store for older logs. If Inspect recovered the
    sample from a killed run, both are missing, and the result is read from the events.
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
    stored = None
    for event in events:
        if event.get("event") in ("state", "store"):
            for change in event.get("changes") or []:
                path = change.get("path")
                if change.get("op") in ("add", "replace") and path in _CHANGED:
                    stored = _CHANGED[path](change.get("value")) or stored
    return stored


def _member(value: Any, name: str = STORE_KEY) -> Any:
    return value.get(name) if isinstance(value, dict) else None


_CHANGED: dict[str | None, Callable[[Any], Any]] = {
    "/output": lambda value: _member(_member(value, "metadata")),
    "/output/metadata": _member,
    f"/output/metadata/{STORE_KEY}": lambda value: value,
    f"/{STORE_KEY}": lambda value: value,
}
"""Path of a change to the stored text → function that returns the text from the new value."""


def solution_of(stored: Mapping[str, Any], sample: Sample) -> Solution | None:
    """Return the solution in a log; `None` if the solver failed."""
    result = load_solution(stored, sample)
    return result if isinstance(result, Solution) else None


def _dump(output: SolverOutput) -> Json:
    """Return all fields. AI GO's default dump leaves out unset fields."""
    dumped: Json = make_explicit(output).model_dump(mode="json")
    return dumped


# Scores


def score_fields(result: Score | SampleFailure, answer: str | None = None) -> dict[str, Any]:
    """Return the fields of an Inspect score for a scorer's result. `outcomes_of` converts it back.

    Inspect treats a failed scorer as unscored: its value is NaN and excluded from metrics. The metadata
    contains the reason. A single value is stored without its name, as Inspect's tables expect, and the name
    is in the metadata.

    Args:
        result: result of the scorer.
        answer: last answer of the model, for Inspect's viewer. Scorers that compare another text have it in
            their metadata.
    """
    if isinstance(result, SampleFailure):
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
    stored: dict[str, Any] = dict(result.metadata)
    if len(shown) < len(result.values) or SCORE_KEY in stored:
        stored = {SCORE_KEY: {"values": dict(result.values), "metadata": dict(result.metadata)}}
    elif len(shown) == 1:
        stored[SCORE_KEY] = {"name": next(iter(shown))}
    return {
        "value": _alone(shown),
        "answer": answer_of(result, answer),
        "explanation": explanation_of(result),
        "metadata": stored or None,
    }


def rows_score_fields(
    results: Mapping[str, Score | SampleFailure], answer: str | None = None
) -> dict[str, Any]:
    """Return the score fields for the rows of a post-processor (by id). The displayed value is the mean of
    each number.
    """
    metadata = {SCORE_KEY: {"rows": {row_id: dump_result(result) for row_id, result in results.items()}}}
    outcomes = [result for result in results.values() if isinstance(result, Score)]
    if not outcomes:
        failures = [result.message for result in results.values() if isinstance(result, SampleFailure)]
        reason = failures[0] if failures else "the post-processor returned no rows"
        return {"value": math.nan, "reason": reason, "metadata": metadata}
    explanation = f"mean over {len(outcomes)} of {plural(len(results), 'row')}"
    return {
        "value": _alone(_means(outcomes)),
        "answer": answer,
        "explanation": explanation,
        "metadata": metadata,
    }


def _alone(values: dict[str, Any]) -> Any:
    """Return the value itself if there is only one."""
    return next(iter(values.values())) if len(values) == 1 else values


def outcomes_of(score: Mapping[str, Any]) -> dict[str | None, Score | SampleFailure]:
    """Return the results in a logged score by row id. The key is `None` for the sample itself."""
    ours = (score.get("metadata") or {}).get(SCORE_KEY) or {}
    if "rows" in ours:
        return {row_id: load_result(result) for row_id, result in ours["rows"].items()}
    return {None: _outcome(score)}


def with_name(score: Any) -> Any:
    """Return the score of an event with the name of its single value, which Inspect's tables lack."""
    metadata = score.get("metadata") if isinstance(score, dict) else None
    ours = metadata.get(SCORE_KEY) if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(ours, dict) or "name" not in ours:
        return score
    without_ours = {name: part for name, part in metadata.items() if name != SCORE_KEY}
    return {**score, "value": {ours["name"]: score.get("value")}, "metadata": without_ours or None}


def has_failed(score: Mapping[str, Any]) -> bool:
    """Return whether a scorer failed on the sample or on one of its rows."""
    return any(isinstance(result, SampleFailure) for result in outcomes_of(score).values())


def _outcome(score: Mapping[str, Any]) -> Score | SampleFailure:
    metadata: dict[str, Any] = score.get("metadata") or {}
    ours = metadata.get(SCORE_KEY) or {}
    if "values" in ours:
        return Score(ours["values"], ours["metadata"])
    value = score.get("value")
    without_ours = {name: part for name, part in metadata.items() if name != SCORE_KEY}
    if "failure" in ours:
        return SampleFailure.from_json(ours["failure"], without_ours)
    if "name" in ours:
        return Score({ours["name"]: value}, without_ours)
    return Score(value if isinstance(value, dict) else {"value": value}, metadata)


def _means(outcomes: Sequence[Score]) -> dict[str, float]:
    numbers: dict[str, list[float]] = {}
    for outcome in outcomes:
        for name, value in outcome.values.items():
            number = as_number(value)
            if number is not None and _fits(number):
                numbers.setdefault(name, []).append(number)
    return {name: math.fsum(values) / len(values) for name, values in numbers.items()}


def _fits(value: object) -> bool:
    """Return whether Inspect's score can hold a value in a dictionary without changing it."""
    return isinstance(value, str | int | float | bool) and not (
        isinstance(value, float) and math.isnan(value)
    )


# Inspect's viewer: the scored answer, and the explanation of the score


_ANSWERS = ("answer_pred", "predicted_choice")
"""Metadata keys in which scorers store the compared text."""


def answer_text(output: Any) -> str | None:
    """Return the last answer in a solver's output; `None` if it is not a text."""
    if not isinstance(output, SingleSolverOutput | SolverTrace):
        return None
    answer = output.output
    if isinstance(answer, ChatCompletionModelOutput | RAGCompletionOutput) and answer.choices:
        return answer.choices[0].message.content
    return answer if isinstance(answer, str) else None


def answer_of(outcome: Score, answer: str | None) -> str | None:
    """Return the scored text, as stored by the scorer, otherwise the last answer."""
    metadata = outcome.metadata
    # The prediction of a judge is its rating, not the answer.
    keys = _ANSWERS if "judge_calls" in metadata else (*_ANSWERS, "prediction")
    compared = next((metadata[key] for key in keys if key in metadata), answer)
    return compared if isinstance(compared, str) else answer


def explanation_of(outcome: Score) -> str:
    """Return a one-sentence explanation of a score."""
    metadata = outcome.metadata
    reasoning = metadata.get("reasoning")
    if "model_key" in metadata and "judge_calls" in metadata:
        return _of_judge({**outcome.values, **metadata}, reasoning)
    if isinstance(reasoning, str):
        return reasoning
    if "answer_gt" in metadata:
        same = metadata.get("answer_gt") == metadata.get("answer_pred")
        return f"{'equals' if same else 'differs from'} the ground truth, {short(metadata['answer_gt'])}"
    if "ground_truth_correct_choice" in metadata:
        right = short(metadata["ground_truth_correct_choice"])
        return f"correct: {right} of {_listed(metadata['ground_truth_choices'])}"
    if "unmatched_calls" in metadata:
        unmatched = _listed(metadata["unmatched_calls"])
        return f"called: {_listed(metadata['called'])}; required and not called: {unmatched}"
    if isinstance(metadata.get("failure"), str):
        return str(metadata["failure"])
    values = {**outcome.values, **{name: value for name, value in metadata.items() if _is_plain(value)}}
    return ", ".join(f"{name}: {short(value)}" for name, value in values.items()) or "no score"


def _of_judge(fields: Mapping[str, Any], reasoning: Any) -> str:
    verdict = next((fields[key] for key in ("prediction", "raw_score", "label") if key in fields), None)
    parts = [] if verdict is None else [f"{fields['model_key']}: {verdict}"]
    if fields.get("unexpected_label") is True:
        parts.append("not one of the labels")
    return "; ".join([*parts, *([reasoning] if isinstance(reasoning, str) else [])]) or str(
        fields["model_key"]
    )


def _listed(values: Any) -> str:
    return ", ".join(map(str, values)) if isinstance(values, Iterable) and values else "none"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


# Stored numbers
#
# Inspect's readers ignore this archive member. The numbers are only valid for the samples from which they
# were computed. The member therefore contains the checksums of all other members, and any change to the log
# invalidates it.


NUMBERS = "_aigo/numbers.json"


def numbers_in(log: InspectLogReader) -> StoredNumbers | None:
    """Return the numbers stored in a log; `None` if they are missing or do not match its samples."""
    checksums = log.checksums()
    if NUMBERS not in checksums:
        return None
    try:
        stored = log.read_member(NUMBERS)
        if not isinstance(stored, dict) or stored.get("checksums") != _own(checksums):
            return None
        return numbers_from_json(stored.get("numbers"))
    except EvidenceError:
        return None


def store_numbers(path: Path, numbers: StoredNumbers) -> None:
    """Add numbers to a log, and replace existing ones.

    New data is only appended, so an interruption leaves the existing content intact.

    Raises:
        OSError: the log cannot be written.
    """
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        checksums = _own({entry.filename: entry.CRC for entry in archive.infolist()})
    content = orjson.dumps({"checksums": checksums, "numbers": numbers.to_json()})
    size = path.stat().st_size
    try:
        _append(path, content, size)
    except OSError:
        os.truncate(path, size)
        raise


def _append(path: Path, content: bytes, size: int) -> None:
    with path.open("r+b") as file, zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        earlier = archive.NameToInfo.pop(NUMBERS, None)
        if earlier is not None:
            archive.filelist.remove(earlier)
        # Keep the existing directory of the archive.
        archive.start_dir = size
        archive.writestr(zipfile.ZipInfo(NUMBERS, (1980, 1, 1, 0, 0, 0)), content)


def _own(checksums: dict[str, int] | dict[str, int | None]) -> dict[str, int | None]:
    return {name: crc for name, crc in checksums.items() if not name.startswith("_aigo/")}
