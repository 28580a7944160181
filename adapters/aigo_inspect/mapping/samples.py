"""Conversion of the samples in an Inspect log to AI GO sample evidence, as JSON-ready dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import LossReport, UnmappedError, unmapped
from aigo_bridge.results.counts import RUNNING
from aigo_inspect.logs.index import SampleRef, is_settled
from aigo_inspect.logs.reader import InspectLogReader
from aigo_inspect.logs.shapes import MALFORMED
from aigo_inspect.mapping.events import EventChoice
from aigo_inspect.mapping.model_calls import chat_output
from aigo_inspect.mapping.records import Constants, SampleRecord, parse_sample
from aigo_inspect.mapping.scores import scores_of
from aigo_inspect.mapping.spans import Event
from aigo_inspect.mapping.traces import MappedSample, MappedTrace, map_raw

if TYPE_CHECKING:
    from aigo_bridge.dtypes import SampleEvidence

UNFINISHED_TEXTS = {RUNNING: "the trial had not ended when the log was read"}
"""Error type → message that replaces the text of the exception."""
DATA_FIELDS = ("input", "target", "choices", "description", "metadata", "files", "setup", "sandbox")


class MappedTrial(Struct, frozen=True):
    """One sample in one epoch."""

    sample_id: str | int
    index: int
    """Epoch, counted from 0."""
    data: dict[str, Any]
    """Content of `SampleData.data`."""
    trace: MappedTrace | None
    """Trace of the trial; `None` if the log contains neither events nor messages of the sample."""
    raw_outputs: list[dict[str, Any]]
    direct_ios: list[dict[str, Any]]
    scores: list[dict[str, Any]] | None
    errors: list[dict[str, Any]]
    failed: bool
    """Whether the sample ended with an error."""
    usage: dict[str, Any]
    """Inspect's `model_usage` of the sample."""
    models: frozenset[str]
    """Models that the sample called."""
    started_at: str | None = None
    completed_at: str | None = None
    size: int = 0
    """Size of its JSON in the log, in bytes; 0 if unknown."""


def read_trials(
    log: InspectLogReader,
    refs: Iterable[SampleRef] | None = None,
    *,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> Iterator[MappedTrial]:
    """Yield the readable trials of a log, or only the trials in `refs`, with the epochs of a sample next to
    each other.

    Unreadable trials are noted in the `damage` of the log.
    """
    loss = loss if loss is not None else LossReport()
    constants = Constants()

    def trial(ref: SampleRef) -> MappedTrial:
        data = log.read_bytes(ref)
        sample = None
        if data is not None and keep == "default":
            sample = read_record(log, ref, data, constants)
        try:
            if sample is not None:
                size = log.sample_size(ref)
                mapped = MappedSample(sample, loss, size=size, bounds=log.bounds, header=log.header)
            else:
                raw = log.parse_sample(ref, data)
                mapped = map_raw(raw, loss, header=log.header, keep=keep)
            return _trial(mapped, log, ref, loss)
        except EvidenceError:
            raise
        except MALFORMED as error:
            raise UnmappedError(unmapped("the sample", error)) from error

    yield from log.each(log.sample_refs("sample") if refs is None else refs, trial)


def read_record(
    log: InspectLogReader, ref: SampleRef, data: bytes, constants: Constants
) -> SampleRecord | None:
    """Return the sample in `data`, the text of `ref`; `None` if it needs `InspectLogReader.parse_sample`."""
    sample = parse_sample(data, log.redaction, constants)
    if sample is None or not is_settled(ref, sample.fields["id"], sample.fields["epoch"]):
        return None
    more = (sample.fields.get("scores"), sample.attachments, sample.pool, sample.calls)
    log.check_counts(ref, sample.events, sample.messages, *more)
    return sample


def _trial(mapped: MappedSample, log: InspectLogReader, ref: SampleRef, loss: LossReport) -> MappedTrial:
    fields = mapped.fields
    scores = scores_of(fields, loss)
    trace = None if mapped.is_empty else mapped.trace(log.location)
    error = _error(fields)
    if trace is not None and error and (details := _untold_error(error, trace.events)):
        trace.metadata["extra"]["inspect"]["error"] = details
    loss.kept["sample"] += 1
    main = trace.span_id if trace is not None else None
    answers = [call.answer for call in mapped.exchanges if call.span_id == main]
    return MappedTrial(
        sample_id=fields["id"],
        index=max(0, fields["epoch"] - 1),
        data={name: fields[name] for name in DATA_FIELDS if fields.get(name) is not None},
        trace=trace,
        raw_outputs=raw_outputs_of(answers, fields.get("output")),
        direct_ios=[call.direct_io for call in mapped.exchanges if call.direct_io is not None],
        scores=scores,
        errors=_errors(fields, error, mapped.events),
        failed=bool(fields.get("error")),
        usage=fields.get("model_usage") or {},
        models=_models(mapped, log.header),
        started_at=fields.get("started_at"),
        completed_at=fields.get("completed_at"),
        size=log.sample_size(ref),
    )


def _models(mapped: MappedSample, header: Mapping[str, Any]) -> frozenset[str]:
    """Return the models that a sample called, from its events and its usage.

    Samples of 2024 lack the usage, and samples without a transcript lack the events. In that case, an answer
    shows that the evaluated model was called, unless another model gave it.
    """
    evaluated = (header.get("eval") or {}).get("model")
    evaluated = evaluated if isinstance(evaluated, str) else ""
    calls = {str(event["model"]) for event in mapped.events if event["type"] == "model_call_event"}
    names = calls | (mapped.fields.get("model_usage") or {}).keys()
    output = mapped.fields.get("output")
    if evaluated and not calls and isinstance(output, dict) and chat_output(output) is not None:
        author = str(output.get("model") or "")
        if not (author and any(_is_model(name, author) for name in names)):
            names.add(evaluated)
    return frozenset(evaluated if _is_model(evaluated, name) else name for name in names)


def _is_model(name: str, written: str) -> bool:
    """Return whether a logged name, possibly without the provider, matches a model."""
    return name == written or name.endswith(f"/{written}")


# Errors


def _errors(sample: dict[str, Any], error: dict[str, Any], events: list[Event]) -> list[dict[str, Any]]:
    errors = []
    if error:
        message = str(error.get("message") or "")
        kind = error_type(message, error.get("traceback"))
        message = UNFINISHED_TEXTS.get(kind, message)
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
    """Return the details of the sample's error in addition to its message, if no event contains them."""
    error = {
        key: value for key, value in error.items() if key != "traceback_ansi" and value not in (None, "")
    }
    told_errors = [
        {key: event.get(key) for key in ("message", "traceback")}
        for event in events
        if event["type"] == "error"
    ]
    return {} if any(error.items() <= event.items() for event in told_errors) else error


def error_type(message: str, traceback: object) -> str:
    """Return the class name of an exception from its `repr` or traceback; `Error` if both are unclear."""
    match = re.match(r"([A-Za-z_][\w.]*)\(", message)
    if match is None and isinstance(traceback, str) and traceback.strip():
        match = re.match(r"([A-Za-z_][\w.]*)(?::|$)", traceback.strip().splitlines()[-1])
    return match[1].rsplit(".", 1)[-1] if match else "Error"


def _stage(events: list[Event]) -> str:
    """Return `score` if scoring had started before the (last) error, otherwise `solver`."""
    scoring = False
    stage: str | None = None
    for event in events:
        if event["type"] == "span_begin" and "scorers" in (event.get("span_type"), event["name"]):
            scoring = True
        elif event["type"] == "error":
            stage = "score" if scoring else "solver"
    return stage or ("score" if scoring else "solver")


# Model outputs


def raw_outputs_of(answers: Iterable[dict[str, Any] | None], final: Any) -> list[dict[str, Any]]:
    """Return the answers of the main agent's calls, and the final output of the sample if its text differs.

    Args:
        answers: `chat_output` of the main agent's calls.
        final: output of the sample.
    """
    answers = list(answers)
    outputs = [answer for answer in answers if answer is not None]
    final_output = chat_output(final, failed=bool(answers) and answers[-1] is None)
    if final_output is not None and (not outputs or outputs[-1]["choices"] != final_output["choices"]):
        outputs.append(final_output)
    return outputs


# Typed objects


def marked(trials: Iterable[MappedTrial]) -> Iterator[tuple[MappedTrial, bool]]:
    """Yield each trial with a flag for the first trial of a sample. Trials of a sample must be adjacent."""
    previous: tuple[type, str | int] | None = None
    for trial in trials:
        sample = type(trial.sample_id), trial.sample_id
        is_first = sample != previous
        previous = sample
        yield trial, is_first
        # Free this trial before the next one is created.
        del trial


def grouped(trials: Iterable[MappedTrial]) -> Iterator[list[MappedTrial]]:
    """Yield all trials of a sample together. They are in memory at the same time."""
    group: list[MappedTrial] = []
    for trial, is_first in marked(trials):
        if is_first and group:
            yield group
            group = []
        group.append(trial)
    if group:
        yield group


def typed_sample(group: list[MappedTrial], aggregated: list[dict[str, Any]] | None) -> SampleEvidence:
    """Return the evidence of one sample as an AI GO object."""
    # Imported late, because writing files does not create objects.
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
    solver = None
    if trial.trace is not None:
        output = {"raw_outputs": trial.raw_outputs, "direct_ios": trial.direct_ios}
        solver = {"output": {"trace": trial.trace.typed(), **output}}
    return {
        "index": trial.index,
        "sample_id": trial.sample_id,
        "sample": {"data": trial.data},
        "solver": solver,
        "scores": trial.scores,
        "errors": trial.errors,
    }
