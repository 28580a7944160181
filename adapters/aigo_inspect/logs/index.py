"""The samples of a log: where they stand, whose id each has, and which of them are missing.

A sample whose member is gone leaves no trace in the archive. But the log lists its samples in up to three
other places, and what is listed there and not to be found is a loss that somebody has to be told.

In an archive the name of the member decides which sample it is, as it does when Inspect looks for one: names
are there once. In a document samples have no names; there the first sample with an id and an epoch keeps
them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.text.json_text import json_text
from aigo_bridge.text.plurals import plural

Identity = tuple[str, int]
"""Id, as text, and epoch of a sample."""
Order = Literal["epoch", "sample"]
_SAMPLE_NAME = re.compile(r"samples/(.*)_epoch_(\d+)(?:\.json|/sample\.json)", re.DOTALL)
_LONGEST_EPOCH = 18
"""Digits; more are no count of anything."""
_LONGEST_ID = 10_000
"""Characters; a name in a zip has 65,535 bytes at most."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """Where one sample stands in the log, known without reading it."""

    key: str
    """Member name in an archive, `samples[3]` in a `.json` log."""
    id_text: str
    """The sample's id as text, as far as the name tells; `""` when unknown."""
    epoch: int
    """1-based epoch as far as the name tells; 0 when unknown."""
    index: int
    """Position in the file."""


def named_samples(names: Iterable[str]) -> list[SampleRef]:
    """The samples among the members of an archive."""
    return [
        SampleRef(name, match[1], epoch_of(match[2]), index)
        for index, name in enumerate(names)
        if name.startswith("samples/") and (match := _SAMPLE_NAME.fullmatch(name))
    ]


def name_of(sample_id: object) -> str:
    """An id as members that we write have it: as Inspect names them, and ids that no zip can name with a
    digest.
    """
    text = str(sample_id)
    if len(text) <= _LONGEST_ID and "\0" not in text and _encodable(text):
        return text
    # Late: hardly any log needs it.
    import hashlib

    digest = hashlib.blake2b(
        json_text(["sample", text]).encode("utf-8", "backslashreplace"), digest_size=11
    ).hexdigest()
    return f"{text[:40].replace(chr(0), '').encode('utf-8', 'replace').decode()}-{digest}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def names_of(sample_id: object) -> tuple[str, str, str]:
    """How members may name an id: as it is, as a zip on Windows does (other slashes, nothing behind a NUL),
    as ours do.
    """
    text = str(sample_id)
    return text, text.replace("\\", "/").partition("\0")[0], name_of(text)


def epoch_of(value: object) -> int:
    """An epoch, from a number or digits; 0 when it is none."""
    if isinstance(value, str):
        return int(value) if 0 < len(value) <= _LONGEST_EPOCH else 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**_LONGEST_EPOCH:
        return value
    return 0


def in_order(refs: list[SampleRef], ids: object, order: Order) -> list[SampleRef]:
    """The samples in the order of the dataset, epoch by epoch or (`"sample"`) sample by sample.

    Args:
        refs: the samples in the order in which they were written.
        ids: the dataset's list of ids, if there is one; other samples come last.
        order: which of the two orders.
    """
    listed = ids if isinstance(ids, list) else []
    rank = {str(sample_id): position for position, sample_id in enumerate(listed)}
    end = len(rank)
    if not rank:
        # Without a list, keep the epochs of one sample together in order of first appearance.
        for ref in refs:
            rank.setdefault(ref.id_text, len(rank))
    if order == "epoch":
        return sorted(refs, key=lambda ref: (ref.epoch, rank.get(ref.id_text, end), ref.index))
    first_index: dict[str, int] = {}
    for ref in refs:
        first_index.setdefault(ref.id_text, ref.index)
    return sorted(
        refs, key=lambda ref: (rank.get(ref.id_text, end), first_index[ref.id_text], ref.epoch, ref.index)
    )


# Whose id a sample has

RENAMED = "id of a sample that is not that of its member: the name of the member counts"
RENUMBERED = (
    "epoch of a sample that is none, or that another sample has: a free one, or that of its member's name"
)
NO_TEXT = "id of a sample that is neither a text nor an integer: written as text"


def is_settled(ref: SampleRef, sample_id: object, epoch: object) -> bool:
    """Whether a sample says of itself what the name of its member says, so that nothing has to be decided."""
    return epoch == ref.epoch > 0 and (ref.id_text == str(sample_id) or ref.id_text in names_of(sample_id))


class Identities:
    """Decides, sample by sample, and remembers what is taken."""

    def __init__(self, refs: Iterable[SampleRef]):
        self._owners: dict[tuple[str, int], int] = {}
        self._given: dict[int, int] = {}
        self._next: dict[str, int] = {}
        for ref in refs:
            if ref.id_text and epoch_of(ref.epoch):
                self._owners.setdefault((ref.id_text, ref.epoch), ref.index)

    def settle(self, sample: dict[str, Any], ref: SampleRef, *, named: bool) -> Counter[str]:
        """Give a sample an id and an epoch that no other has, in place; returns what that changed.

        Args:
            sample: as it stands in the log.
            ref: where it stands.
            named: `ref` has the name of its member, which counts for more than what the sample says.

        Raises:
            EvidenceError: nothing tells which sample it is.
        """
        changes: Counter[str] = Counter()
        sample_id = sample.get("id")
        usable = isinstance(sample_id, (str, int)) and not isinstance(sample_id, bool)
        if named and ref.id_text:
            if not usable or ref.id_text not in names_of(sample_id):
                sample["id"] = ref.id_text
                changes[RENAMED] += 1
        elif not usable:
            if not isinstance(sample_id, float) or not math.isfinite(sample_id):
                raise EvidenceError(
                    f"found {_short(sample_id)} for the sample's id, expected a text or an integer",
                    code=Code.DAMAGED_LOG,
                )
            sample["id"] = str(sample_id)
            changes[NO_TEXT] += 1
        epoch = ref.epoch if named and ref.epoch else epoch_of(sample.get("epoch"))
        epoch = self._free(str(sample["id"]), epoch, ref)
        if sample.get("epoch") != epoch or isinstance(sample.get("epoch"), (bool, float)):
            sample["epoch"] = epoch
            changes[RENUMBERED] += 1
        return changes

    def _free(self, sample_id: str, epoch: int, ref: SampleRef) -> int:
        if epoch and self._owners.setdefault((sample_id, epoch), ref.index) == ref.index:
            return epoch
        # A log may be read twice.
        if ref.index in self._given:
            return self._given[ref.index]
        free = self._next.get(sample_id, 1)
        while self._owners.setdefault((sample_id, free), ref.index) != ref.index:
            free += 1
        self._next[sample_id] = free + 1
        self._given[ref.index] = free
        return free


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# What a log says of its own samples

_MOST_NAMED = 100


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
    names = None if any(not (ref.id_text or ref.epoch) for ref in refs) else {ref.id_text for ref in refs}
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
            elif names is not None and str(sample_id) not in names and names.isdisjoint(names_of(sample_id)):
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
        summaries = msgspec.json.decode(data, type=list[_Summary])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return [(str(summary.id), summary.epoch) for summary in summaries]


def listed_samples(summaries: object) -> list[Identity]:
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
    """The samples that a log must have, as it ended with success, in its order; none when it does not say
    which.
    """
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
    identities = dict.fromkeys((str(name), epoch) for name in ids for epoch in range(1, epochs + 1))
    for stop in stops if isinstance(stops, list) else ():
        if isinstance(stop, dict):
            identities.pop((str(stop.get("id")), _count(stop.get("epoch")) or 0), None)
    return list(identities)


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


def missing(expected: Iterable[Identity], count: int, present: Collection[Identity]) -> list[str]:
    """What to say of samples that a log should have and has not.

    Args:
        expected: samples that are listed somewhere.
        count: how many there are at least.
        present: those that are there; one whose id cannot be seen has the id `""`.
    """
    expected = dict.fromkeys(expected)
    present_names = set(present)
    # Some samples have the id "".
    unknown = sum(not name and (name, epoch) not in expected for name, epoch in present)
    lost = [identity for identity in expected if identity not in present_names]
    if lost:
        # Names of members are not always ids.
        lost = [(name, epoch) for name, epoch in lost if not _is_named(name, epoch, present_names)]
    if lost and not unknown:
        lines = [
            f"sample {name!r}, epoch {epoch}: the log says that it was finished, but it is not in it"
            for name, epoch in lost[:_MOST_NAMED]
        ]
        if len(lost) > _MOST_NAMED:
            more = len(lost) - _MOST_NAMED
            lines.append(f"{more:,} more samples that were finished, as the log says, are not in it")
        return lines
    least = max(count, len(present) - unknown + len(lost))
    if least > len(present):
        return [
            f"the log has {len(present):,} of {plural(least, 'sample', form=',')} that it says were finished"
        ]
    return []


def _is_named(name: str, epoch: int, present: set[Identity]) -> bool:
    return not present.isdisjoint((alias, epoch) for alias in names_of(name))


def _must_be_whole(header: dict[str, Any]) -> bool:
    return header.get("status") == "success" and keeps_samples(header)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
