"""Table rows for trials: a few short texts in addition to the full sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.results.counts import SampleState, is_failure, rules_of, trial_number, trial_state, trials_of
from aigo_bridge.results.stop_reasons import stop_reason_of
from aigo_bridge.results.values import Json, mappings, member, number_text, short_text, value_text

LONGEST = 300
"""Maximum number of characters of a text in the table."""
LONGEST_VALUE = 80
"""Maximum number of characters of a column value, or of a score that is a text."""
MOST_COLUMNS = 40
"""Maximum number of columns of a row in the table."""

TRUTHS = ("answer_gt", "ground_truth_correct_choice", "ground_truth", "target", "expected")
"""Names in scorer metadata for the ground truth."""
PREDICTIONS = ("answer_pred", "prediction", "answer", "predicted_choice", "label")
"""Names in scorer metadata for the prediction."""


@dataclass(frozen=True)
class ModelCall:
    """Model call in a trial."""

    model: str
    seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    failed: bool


@dataclass(frozen=True)
class TrialRow:
    """Trial in the table."""

    cells: Json
    errors: Sequence[tuple[str, str]]
    """Stage and type of each error that makes the trial fail."""
    scored: frozenset[str]
    """Scorers that gave the trial a value."""
    calls: Sequence[ModelCall] = field(default=())


def rows_of(sample: Json, number: int, run: int | None) -> Iterator[TrialRow]:
    """Yield the rows of a sample, including the legacy form, one for each trial. `run` is `None` for a sample
    of the task.
    """
    rules = rules_of(sample)
    for position, trial in enumerate(trials_of(sample)):
        errors = list(mappings(trial.get("errors")))
        if sample.get("trials"):
            errors += mappings(sample.get("errors"))
        outputs = list(outputs_of(trial))
        scores = list(mappings(trial.get("scores")))
        calls = [call for output in outputs for call in _calls(output)]
        cells: Json = {
            "n": number,
            "t": position,
            "i": trial_number(trial, position),
            "id": value_text(sample.get("sample_id"), LONGEST),
            "q": short_text(_last(outputs, "user"), LONGEST),
            "a": short_text(_last(outputs, "assistant"), LONGEST),
            "g": _compared(scores, TRUTHS),
            # The output of a judge is a verdict, not a prediction.
            "p": _compared([score for score in scores if not _is_judged(score)], PREDICTIONS),
            "s": _scores(scores),
            "d": _columns(trial, sample),
        }
        if run is not None:
            cells["r"] = run + 1
        if rules:
            cells["x"] = rules
        if (state := trial_state(sample, trial)) is not SampleState.SCORED:
            cells["o"] = state.label
        if (reason := stop_reason_of(trial)) is not None:
            cells["z"] = reason
        if errors:
            cells["e"] = [
                [_stage(error), short_text(f"{error.get('error_type')}: {error.get('message')}", LONGEST)]
                for error in errors
            ]
        seconds = [member(output, "trace", "metadata", "total_time") for output in outputs]
        if outputs and all(_is_number(value) for value in seconds):
            cells["w"] = number_text(seconds[0] if len(seconds) == 1 else sum(seconds))
        yield TrialRow(
            {key: value for key, value in cells.items() if value not in (None, {}, "")},
            [(_stage(error), kind) for error in errors if is_failure(kind := str(error.get("error_type")))],
            frozenset(
                str(score.get("scorer_key"))
                for score in scores
                if any(value is not None for value in (score.get("values") or {}).values())
            ),
            calls,
        )


def outputs_of(trial: Json) -> Iterator[Json]:
    """Yield the conversations of a trial."""
    output = member(trial, "solver", "output")
    if not isinstance(output, dict):
        return
    several = output.get("solver_outputs")
    if several is None:
        yield output
    else:
        yield from mappings(several.values() if isinstance(several, dict) else several)


def items_of(output: Json) -> Iterator[Json]:
    """Yield the items of a conversation, or its messages in the legacy form."""
    items = member(output, "trace", "items")
    yield from mappings(items if items is not None else output.get("messages"))


def text_of(item: Json) -> str | None:
    """Return the text of a message; `None` for other items."""
    content = item.get("content")
    if item.get("type") == "custom_task_input_message" or item.get("type") == "custom_task_output_message":
        return value_text(content, LONGEST)
    if isinstance(content, str):
        return content
    texts = [str(part.get("text") or part.get("refusal") or "") for part in mappings(content)]
    return "\n".join(text for text in texts if text)


_CUSTOM = {"custom_task_input_message": "user", "custom_task_output_message": "assistant"}


def _last(outputs: Sequence[Json], role: str) -> str | None:
    for output in reversed(outputs):
        for item in reversed(list(items_of(output))):
            if (_CUSTOM.get(str(item.get("type"))) or item.get("role")) == role:
                return text_of(item)
    return None


def _compared(scores: Sequence[Json], names: Sequence[str]) -> str | None:
    for name in names:
        for score in scores:
            value = member(score, "metadata", name)
            if value is not None:
                return value_text(value, LONGEST)
    return None


def _is_judged(score: Json) -> bool:
    return member(score, "metadata", "judge_calls") is not None


def _scores(scores: Sequence[Json]) -> dict[str, Any]:
    """Return score values as texts, by scorer and name. Labels stay marked as texts."""
    values: dict[str, Any] = {}
    for score in scores:
        for name, value in (score.get("values") or {}).items():
            if value is None:
                continue
            column = f"{score.get('scorer_key')}\x1f{name}"
            is_text = isinstance(value, str)
            text = value_text(value, LONGEST_VALUE)
            values[column] = [text] if is_text else text
    return values


def _columns(trial: Json, sample: Json) -> dict[str, str]:
    data = member(trial, "sample", "data") or member(sample, "sample", "data")
    if not isinstance(data, dict):
        return {}
    columns = list(data.items())[:MOST_COLUMNS]
    return {str(name): value_text(value, LONGEST_VALUE) for name, value in columns if value is not None}


def _stage(error: Json) -> str:
    stage = error.get("stage")
    return stage if isinstance(stage, str) else "unknown"


def _calls(output: Json) -> Iterator[ModelCall]:
    for event in mappings(member(output, "trace", "events")):
        if event.get("type") == "model_call_event":
            usage: Mapping[str, Any] = event.get("usage") or {}
            seconds = event.get("total_time")
            yield ModelCall(
                str(event.get("model")),
                seconds if _is_number(seconds) else None,
                _count(usage.get("num_prompt_tokens")),
                _count(usage.get("num_completion_tokens")),
                event.get("error") is not None,
            )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
