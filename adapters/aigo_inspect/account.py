"""What a log says of its own samples: which of them it has.

A sample whose member is gone leaves no trace in the archive. But the log lists its samples in up to three other
places, and what is listed there and not to be found is a loss that somebody has to be told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from aigo_bridge.importing.damage import Damage

from .sample_refs import SampleRef, names_of

if TYPE_CHECKING:
    from .reading import LogReader

Identity = tuple[str, int]
"""Id, as text, and epoch of a sample."""
_MOST_NAMED = 100


def check_samples(log: LogReader) -> None:
    """Note as damage what an open log says it has, and has not; what only the directory has lost is found again."""
    if not keeps_samples(log.header):
        return
    expected, count = [*planned(log.header), *_summarised(log)], planned_count(log.header)
    if missing(expected, count, _found(log)):
        log.recover()
    log.note_damage(*(Damage("", None, reason) for reason in missing(expected, count, _found(log))))


def _found(log: LogReader) -> list[Identity]:
    return [(ref.id_text, ref.epoch) for ref in log.written_refs()]


def _summarised(log: LogReader) -> list[Identity]:
    """Samples that have a summary."""
    found: list[Identity] = []
    for name in log.summary_members():
        if (data := log.read_raw(name)) is not None:
            ids = summarised(data)
            found += listed(log.read_list(name)) if ids is None else ids
    texts = log.redaction.texts([name for name, _ in found])
    return [(name, epoch) for name, (_, epoch) in zip(texts, found, strict=True)]


def check_reductions(log: LogReader) -> None:
    """Note as damage what cannot be read of the reductions, where nobody is going to read them."""
    name = "reductions.json"
    if log.format == "json":
        log.reductions()
    elif name in log.members() and not log.has_epochs:
        data = log.read_raw(name)
        if data is not None and not is_list_of_objects(data):
            log.reductions()


def check_entries(reductions: object, refs: Iterable[SampleRef], *, whole: bool) -> list[str]:
    """What is wrong with the reductions of a log.

    Scores of samples that the log does not have lose their `sample_id`, in place: they are of no sample.

    Args:
        reductions: as they stand in the log.
        refs: its samples.
        whole: a sample that has a score must be there.
    """
    if not isinstance(reductions, list):
        return [] if reductions is None else [f"expected a list, found {type(reductions).__name__}"]
    refs = list(refs)
    # Which sample some are shows when they are read.
    there = None if any(not (ref.id_text or ref.epoch) for ref in refs) else {ref.id_text for ref in refs}
    reasons: list[str] = []
    for place, entry in enumerate(reductions):
        samples = entry.get("samples") if isinstance(entry, dict) else None
        if not isinstance(entry, dict):
            reasons.append(f"entry {place}: expected an object, found {type(entry).__name__}")
        elif not isinstance(samples, (list, type(None))):
            reasons.append(f"entry {place}: expected a list of scores, found {type(samples).__name__}")
        for number, score in enumerate(samples if isinstance(samples, list) else ()):
            if not isinstance(score, dict) or (sample_id := score.get("sample_id")) is None:
                reasons.append(f"entry {place}: score {number} is of no sample")
            elif there is not None and str(sample_id) not in there and there.isdisjoint(names_of(sample_id)):
                score["sample_id"] = None
                if whole:
                    reasons.append(f"entry {place}: score {number} is of a sample that is not in the log")
    if len(reasons) > _MOST_NAMED:
        more = len(reasons) - _MOST_NAMED
        reasons[_MOST_NAMED:] = [f"{more:,} more entries or scores that cannot be used"]
    return reasons


class _Summary(msgspec.Struct):
    id: str | int
    epoch: int


def summarised(data: bytes) -> list[Identity] | None:
    """The samples that a member of summaries lists; `None` when it is not as Inspect writes it."""
    try:
        found = msgspec.json.decode(data, type=list[_Summary])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return [(str(summary.id), summary.epoch) for summary in found]


def listed(summaries: object) -> list[Identity]:
    """As `summarised`, for whatever the member holds."""
    return [
        (str(summary.get("id")), summary["epoch"])
        for summary in (summaries if isinstance(summaries, list) else ())
        if isinstance(summary, dict) and isinstance(summary.get("epoch"), int)
    ]


class _Anything(msgspec.Struct):
    """Any object: its fields are passed over."""


def is_list_of_objects(data: bytes) -> bool:
    """Whether a member is a list of objects in plain JSON, found out without making objects of it."""
    try:
        msgspec.json.decode(data, type=list[_Anything])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def planned(header: dict[str, Any]) -> list[Identity]:
    """The samples that a log must have, as it ended with success, in its order; none when it does not say which."""
    spec, results = header["eval"], header.get("results")
    ids, epochs = spec["dataset"].get("sample_ids"), _count(spec["config"].get("epochs")) or 1
    if not _must_be_whole(header) or not isinstance(ids, list) or epochs > 100_000:
        return []
    results = results if isinstance(results, dict) else {}
    stopped = results.get("early_stopping")
    stops = stopped.get("early_stops") if isinstance(stopped, dict) else None
    total = _count(results.get("total_samples"))
    if results.get("logged_samples") is not None or total not in (None, 0, len(ids) * epochs):
        # It was ended before its time, or its samples did not all run equally often.
        return []
    found = dict.fromkeys((str(name), epoch) for name in ids for epoch in range(1, epochs + 1))
    for stop in stops if isinstance(stops, list) else ():
        if isinstance(stop, dict):
            found.pop((str(stop.get("id")), _count(stop.get("epoch")) or 0), None)
    return list(found)


def planned_count(header: dict[str, Any]) -> int:
    """How many samples, every epoch for itself, a log must have at least; 0 when it does not say."""
    results = header.get("results")
    if not _must_be_whole(header) or not isinstance(results, dict):
        return 0
    if (logged := _count(results.get("logged_samples"))) is not None:
        return logged
    name = "completed_samples" if results.get("early_stopping") else "total_samples"
    return _count(results.get(name)) or 0


def keeps_samples(header: dict[str, Any]) -> bool:
    """Whether samples were written into the log at all."""
    return header["eval"]["config"].get("log_samples") is not False


def missing(expected: Iterable[Identity], count: int, found: Collection[Identity]) -> list[str]:
    """What to say of samples that a log should have and has not.

    Args:
        expected: samples that are listed somewhere.
        count: how many there are at least.
        found: those that are there; one whose id cannot be seen has the id `""`.
    """
    expected = dict.fromkeys(expected)
    there = set(found)
    # Some samples have the id "".
    unknown = sum(not name and (name, epoch) not in expected for name, epoch in found)
    lost = [identity for identity in expected if identity not in there]
    if lost:
        # Names of members are not always ids.
        lost = [(name, epoch) for name, epoch in lost if not _is_named(name, epoch, there)]
    if lost and not unknown:
        said = [
            f"sample {name!r}, epoch {epoch}: the log says that it was finished, but it is not in it"
            for name, epoch in lost[:_MOST_NAMED]
        ]
        if len(lost) > _MOST_NAMED:
            more = len(lost) - _MOST_NAMED
            said.append(f"{more:,} more samples that were finished, as the log says, are not in it")
        return said
    least = max(count, len(found) - unknown + len(lost))
    if least > len(found):
        return [f"the log says that {least:,} samples were finished, but {len(found):,} are in it"]
    return []


def _is_named(name: str, epoch: int, there: set[Identity]) -> bool:
    return not there.isdisjoint((other, epoch) for other in names_of(name))


def _must_be_whole(header: dict[str, Any]) -> bool:
    return header.get("status") == "success" and keeps_samples(header)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
