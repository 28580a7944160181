"""The trials of a log, sample by sample: the quick way where a sample allows it, otherwise the general way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.loss import LossReport

from .content import SharedItems
from .current import REST, CurrentSample, parse_current
from .current_events import CurrentEvents, ToolLists, UnusualError
from .direct_ios import direct_io
from .events import EventChoice
from .pools import Walker, resolve_field
from .reading import LogReader, SampleRef
from .samples import DATA_FIELDS, MappedTrial, chat_answers, map_trial, raw_outputs_of
from .scores import scores_of
from .shapes import MALFORMED
from .traces import assemble, key_of_sample, tools_of


def read_trials(
    log: LogReader,
    refs: Iterable[SampleRef] | None = None,
    *,
    keep: EventChoice = "default",
    loss: LossReport | None = None,
) -> Iterator[MappedTrial]:
    """All trials of a log that can be read (or those of `refs`), the epochs of a sample next to each other.

    The others are noted in the log's `damage`.
    """
    loss = loss if loss is not None else LossReport()
    tools = ToolLists()

    def trial(ref: SampleRef) -> MappedTrial:
        data = log.read_bytes(ref)
        if data is not None and keep == "default":
            quick = _current_trial(log, ref, data, tools, loss)
            if quick is not None:
                return quick
        raw = log.parse_sample(ref, data)
        del data
        return map_trial(raw, header=log.header, location=log.location, keep=keep, loss=loss)

    yield from log.each(log.sample_refs("sample") if refs is None else refs, trial)


def _current_trial(
    log: LogReader, ref: SampleRef, data: bytes, tools: ToolLists, loss: LossReport
) -> MappedTrial | None:
    """The trial in `data`, or `None`, with nothing counted, when the sample has to be mapped the general way."""
    sample = parse_current(data, log.redaction)
    if sample is None:
        return None
    walker = Walker(sample.attachments, log.sample_size(ref), log.bounds)
    counts = LossReport()
    try:
        log.check_counts(ref, sample.events, sample.messages)
        trial = _mapped(sample, walker, tools, counts, log.header, log.location)
    except (UnusualError, EvidenceError, *MALFORMED):
        # What is wrong with it, the general way finds as well, and says it.
        return None
    if walker.missing:
        return None
    loss.add(counts)
    return trial


def _mapped(
    sample: CurrentSample,
    walker: Walker,
    tools: ToolLists,
    loss: LossReport,
    header: Mapping[str, Any],
    location: str,
) -> MappedTrial:
    if not sample.events:
        raise UnusualError
    shared = SharedItems(loss)
    events = CurrentEvents(sample, walker, shared, tools, loss)
    mapped = events.run()
    fields: dict[str, Any] = {}
    for name in REST:
        value = getattr(sample, name)
        fields[name] = resolve_field(name, value, walker) if value else value
    trace = assemble(
        fields,
        key_of_sample(fields, header),
        mapped,
        tools_of(events.offers.values()),
        shared,
        header=header,
        location=location,
        loss=loss,
    )
    main = trace.span_id
    answers = (chat_answers(messages, usage) for span, messages, usage in events.answers if span == main)
    ios = [direct_io({"call": call.call, "request_ids": call.request_ids}) for call in events.raw_calls]
    loss.kept["sample"] += 1
    return MappedTrial(
        sample_id=fields["id"],
        index=max(0, sample.epoch - 1),
        data={name: fields[name] for name in DATA_FIELDS if fields.get(name) is not None},
        trace=trace,
        raw_outputs=raw_outputs_of(answers, fields["output"]),
        direct_ios=[io for io in ios if io is not None],
        scores=scores_of(fields, loss),
        errors=[],
        failed=False,
        usage=fields["model_usage"] or {},
        started_at=fields["started_at"],
        completed_at=fields["completed_at"],
    )
