"""The trials of a log, sample by sample: the quick way where a sample allows it, otherwise the general way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.loss import LossReport

from .current import CurrentSample, UnusualError, parse_current
from .current_events import Constants, CurrentEvents
from .current_messages import Messages
from .direct_ios import direct_io
from .events import EventChoice
from .identities import is_settled
from .pools import NOT_TAKEN_OUT, Walker
from .reading import LogReader
from .sample_refs import SampleRef
from .samples import DATA_FIELDS, MappedTrial, map_trial, raw_outputs_of
from .scores import scores_of
from .shapes import MALFORMED
from .traces import LastMessages, answer_id, assemble, tools_of


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
    constants = Constants()
    counts = LossReport()

    def trial(ref: SampleRef) -> MappedTrial:
        data = log.read_bytes(ref)
        if data is not None and keep == "default":
            quick = _current_trial(log, ref, data, constants, counts)
            if quick is not None:
                loss.add(counts)
            counts.clear()
            if quick is not None:
                return quick
        raw = log.parse_sample(ref, data)
        del data
        return map_trial(raw, header=log.header, location=log.location, keep=keep, loss=loss)

    yield from log.each(log.sample_refs("sample") if refs is None else refs, trial)


def _current_trial(
    log: LogReader, ref: SampleRef, data: bytes, constants: Constants, loss: LossReport
) -> MappedTrial | None:
    """The trial in `data`, or `None` when the sample has to be mapped the general way; then the counts mean nothing."""
    sample = parse_current(data, log.redaction)
    if sample is None or not is_settled(ref, sample.id, sample.epoch):
        return None
    size = log.sample_size(ref)
    walker = Walker(sample.attachments, size, log.bounds)
    try:
        pools = sample.events_data
        more = () if pools is None else (pools.messages, pools.calls)
        log.check_counts(ref, sample.events, sample.messages, sample.scores, sample.attachments, *more)
        trial = _mapped(sample, size, walker, constants, loss, log.header, log.location)
    except (UnusualError, EvidenceError, *MALFORMED):
        # What is wrong with it, the general way finds as well, and says it.
        return None
    return None if walker.missing or walker.unknown else trial


def _mapped(
    sample: CurrentSample,
    size: int,
    walker: Walker,
    constants: Constants,
    loss: LossReport,
    header: Mapping[str, Any],
    location: str,
) -> MappedTrial:
    if not sample.events:
        raise UnusualError
    messages = Messages(walker, loss)
    events = CurrentEvents(sample, walker, messages, constants, loss)
    mapped = events.run()
    calls = events.calls
    fields = _fields(sample, walker)
    trace = assemble(
        fields,
        mapped,
        tools_of(calls.offers.values()),
        _last_messages(sample, messages),
        header=header,
        location=location,
        loss=loss,
    )
    main = trace.span_id
    ios = [direct_io({"call": call.call, "request_ids": call.request_ids}) for call in calls.natives]
    loss.kept["sample"] += 1
    return MappedTrial(
        sample_id=fields["id"],
        index=max(0, sample.epoch - 1),
        data={name: fields[name] for name in DATA_FIELDS if fields[name] is not None},
        trace=trace,
        raw_outputs=raw_outputs_of([a for span, a in calls.answers if span == main], fields["output"]),
        direct_ios=[io for io in ios if io is not None],
        scores=scores_of(fields, loss),
        errors=[],
        failed=False,
        usage=fields["model_usage"] or {},
        started_at=fields["started_at"],
        completed_at=fields["completed_at"],
        size=size,
    )


def _fields(sample: CurrentSample, walker: Walker) -> dict[str, Any]:
    """The fields that stand in the sample as they are, to be treated as in any other."""
    fields = {name: getattr(sample, name) for name in _PLAIN_FIELDS}
    # Together: starting a walk costs more than walking most fields does.
    trees = []
    for name in _WITH_TEXTS:
        value = fields[name]
        if type(value) is str:
            fields[name] = walker.text(value)
        elif value:
            trees.append(value)
    walker.walk(trees)
    return fields


_PLAIN_FIELDS = tuple(
    name
    for name in CurrentSample.__struct_fields__
    if name not in ("messages", "events", "attachments", "events_data", "error_retries")
)
_NO_TEXTS = frozenset({"total_time", "working_time", "epoch", "turn_count", "invalidation", "error"})
_WITH_TEXTS = tuple(
    name
    for name in _PLAIN_FIELDS
    if name not in NOT_TAKEN_OUT | _NO_TEXTS and not name.endswith(("_limit", "_limit_usage"))
)


def _last_messages(sample: CurrentSample, messages: Messages) -> LastMessages:
    last = sample.messages[-1] if sample.messages else None
    return LastMessages(
        len(sample.messages),
        messages.last(sample.messages),
        answer_id(last.role, last.id) if last is not None else None,
    )
