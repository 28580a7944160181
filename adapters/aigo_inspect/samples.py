"""Samples of an Inspect log → AI GO sample evidence, as JSON-ready dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.damage import UnmappedError, unmapped
from aigo_bridge.importing.loss import LossReport

from .direct_ios import direct_io
from .events import EventChoice
from .model_calls import answer_text, model_usage, says_nothing
from .reading import RawSample
from .scores import scores_of
from .shapes import MALFORMED
from .traces import MappedTrace, map_trace, prepare

if TYPE_CHECKING:
    from aigo_bridge.dtypes import SampleEvidence

DATA_FIELDS = ("input", "target", "choices", "description", "metadata", "files", "setup", "sandbox")


class MappedTrial(Struct, frozen=True):
    """One sample in one epoch."""

    sample_id: str | int
    index: int
    """Epoch, counted from 0."""
    data: dict[str, Any]
    """`SampleData.data`."""
    trace: MappedTrace | None
    """`None` when the log has neither events nor messages of the sample."""
    raw_outputs: list[dict[str, Any]]
    direct_ios: list[dict[str, Any]]
    scores: list[dict[str, Any]] | None
    errors: list[dict[str, Any]]
    failed: bool
    """The sample ended with an error."""
    usage: dict[str, Any]
    """Inspect's `model_usage` of the sample."""
    started_at: str | None = None
    completed_at: str | None = None
    size: int = 0
    """Bytes of its JSON in the log; 0 when unknown."""


def map_trial(
    raw: RawSample,
    *,
    header: Mapping[str, Any],
    location: str | None = None,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> MappedTrial:
    """One trial from one raw sample; the raw sample is consumed.

    Raises:
        EvidenceError: the sample is so malformed that it cannot be mapped.
    """
    loss = loss if loss is not None else LossReport()
    try:
        return _mapped_trial(raw, header, location, keep, loss)
    except EvidenceError:
        raise
    except MALFORMED as error:
        raise UnmappedError(unmapped("the sample", error)) from error


def _mapped_trial(
    raw: RawSample, header: Mapping[str, Any], location: str | None, keep: EventChoice, loss: LossReport
) -> MappedTrial:
    sample = prepare(raw, loss, keep)
    native_events = sample.get("events") if isinstance(sample.get("events"), list) else []
    errors = _errors(sample, native_events or [])
    scores = scores_of(sample, loss)
    calls = [
        event for event in native_events or [] if isinstance(event, dict) and event.get("event") == "model"
    ]
    trace = None
    if native_events or sample.get("messages") or chat_output(sample.get("output")) is not None:
        trace = map_trace(sample, header=header, location=location, keep=keep, loss=loss)
    if trace is not None and (error := _untold_error(_error(sample), trace.events)):
        trace.metadata["extra"]["inspect"]["error"] = error
    loss.kept["sample"] += 1
    main = trace.span_id if trace is not None else None
    return MappedTrial(
        sample_id=sample["id"],
        index=max(0, sample["epoch"] - 1),
        data={name: sample[name] for name in DATA_FIELDS if sample.get(name) is not None},
        trace=trace,
        raw_outputs=raw_outputs_of(
            (
                chat_output(call.get("output"), failed=bool(call.get("error")))
                for call in calls
                if call.get("span_id") == main
            ),
            sample.get("output"),
        ),
        direct_ios=[io for call in calls if (io := direct_io(call)) is not None],
        scores=scores,
        errors=errors,
        failed=bool(sample.get("error")),
        usage=sample.get("model_usage") or {},
        started_at=sample.get("started_at"),
        completed_at=sample.get("completed_at"),
        size=raw.size,
    )


# Errors


def _errors(sample: dict[str, Any], events: list[Any]) -> list[dict[str, Any]]:
    errors = []
    error = _error(sample)
    if error:
        message = str(error.get("message") or "")
        kind = error_type(message, error.get("traceback"))
        errors.append({"error_type": kind, "message": message, "stage": _stage(events)})
    invalidation = sample.get("invalidation")
    if invalidation:
        reason = invalidation.get("reason") if isinstance(invalidation, dict) else None
        errors.append(
            {
                "error_type": "InvalidatedSample",
                "message": f"the sample was marked invalid: {reason or 'no reason given'}",
            }
        )
    return errors


def _error(sample: dict[str, Any]) -> dict[str, Any]:
    error = sample.get("error")
    return error if isinstance(error, dict) else {"message": error} if error else {}


def _untold_error(error: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the sample's error says besides its message, where no event says it."""
    error = {
        key: value for key, value in error.items() if key != "traceback_ansi" and value not in (None, "")
    }
    told = [
        {key: event.get(key) for key in ("message", "traceback")}
        for event in events
        if event["type"] == "error"
    ]
    return {} if any(error.items() <= event.items() for event in told) else error


def error_type(message: str, traceback: object) -> str:
    """The exception's class name, from its `repr` or its traceback; `Error` when neither tells."""
    match = re.match(r"([A-Za-z_][\w.]*)\(", message)
    if match is None and isinstance(traceback, str) and traceback.strip():
        match = re.match(r"([A-Za-z_][\w.]*)(?::|$)", traceback.strip().splitlines()[-1])
    return match[1].rsplit(".", 1)[-1] if match else "Error"


def _stage(events: list[Any]) -> str:
    """`score` when scoring had begun before the (last) error, otherwise `solver`."""
    scoring = False
    stage: str | None = None
    for event in events:
        if not isinstance(event, dict):
            continue
        kind = event.get("event")
        if kind in ("span_begin", "step") and (
            event.get("type") == "scorers" or event.get("name") == "scorers"
        ):
            scoring = True
        elif kind == "error":
            stage = "score" if scoring else "solver"
    return stage or ("score" if scoring else "solver")


# Model outputs


def raw_outputs_of(answers: Iterable[dict[str, Any] | None], final: Any) -> list[dict[str, Any]]:
    """Answers of the main agent's calls, and what the sample ended with where that is another text.

    Args:
        answers: `chat_output` of the main agent's calls.
        final: the sample's output.
    """
    answers = list(answers)
    outputs = [answer for answer in answers if answer is not None]
    last = chat_output(final, failed=bool(answers) and answers[-1] is None)
    if last is not None and (not outputs or outputs[-1]["choices"] != last["choices"]):
        outputs.append(last)
    return outputs


def chat_output(output: Any, *, failed: bool = False) -> dict[str, Any] | None:
    """A model's output as AI GO keeps it; `None` when it has no answer: none at all, or nothing from a call that failed."""
    choices = output.get("choices") if isinstance(output, dict) else None
    if not isinstance(output, dict) or not isinstance(choices, list):
        return None
    messages = [choice.get("message") if isinstance(choice, dict) else None for choice in choices]
    if (failed or output.get("error")) and all(map(says_nothing, messages)):
        return None
    texts = [answer_text(message) for message in messages if isinstance(message, dict)]
    return chat_answers(texts, model_usage(output.get("usage"))) if texts else None


def chat_answers(texts: list[str], usage: dict[str, int] | None) -> dict[str, Any]:
    """As `chat_output`, from the texts of the answers and `model_usage`."""
    found: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": text}} for text in texts]
    }
    if usage is not None:
        found["usage"] = usage
    return found


# Typed


def marked(trials: Iterable[MappedTrial]) -> Iterator[tuple[MappedTrial, bool]]:
    """Trials, each with whether it is the first of its sample; those of a sample stand next to each other."""
    before: tuple[type, str | int] | None = None
    for trial in trials:
        sample = type(trial.sample_id), trial.sample_id
        first = sample != before
        before = sample
        yield trial, first
        # Freed before the next one is made, not after.
        del trial


def grouped(trials: Iterable[MappedTrial]) -> Iterator[list[MappedTrial]]:
    """Trials of one sample together, for whoever wants whole samples: all of them are in memory."""
    group: list[MappedTrial] = []
    for trial, first in marked(trials):
        if first and group:
            yield group
            group = []
        group.append(trial)
    if group:
        yield group


def typed_sample(group: list[MappedTrial], aggregated: list[dict[str, Any]] | None) -> SampleEvidence:
    """Evidence of one sample as an AI GO object."""
    # Late: writing files builds no objects.
    from aigo_bridge.dtypes import SampleEvidence

    return SampleEvidence.model_validate(
        {
            "sample_id": group[0].sample_id,
            "sample": None,
            "solver": None,
            "scores": aggregated,
            "errors": [],
            "trials": [_typed_trial(trial) for trial in group],
        }
    )


def _typed_trial(trial: MappedTrial) -> dict[str, Any]:
    from aigo_bridge.dtypes import SolverTrace

    solver = None
    if trial.trace is not None:
        output = SolverTrace.model_validate(
            {"trace": trial.trace.typed(), "raw_outputs": trial.raw_outputs, "direct_ios": trial.direct_ios}
        )
        solver = {"output": output}
    return {
        "index": trial.index,
        "sample_id": trial.sample_id,
        "sample": {"data": trial.data},
        "solver": solver,
        "scores": trial.scores,
        "errors": trial.errors,
    }
