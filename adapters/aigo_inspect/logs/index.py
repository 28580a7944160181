"""Index of the samples in a log: position, id and epoch of each sample, and the samples that are missing.

A sample with a lost member leaves no trace in the archive. But a log lists its samples in up to three other
places, so a missing sample can be detected and reported.

In an archive, the member name decides the id and epoch, as in Inspect, because names are unique. In a `.json`
log, the first sample with an id and epoch keeps them.
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
"""Id (as text) and epoch of a sample."""
Order = Literal["epoch", "sample"]
_SAMPLE_NAME = re.compile(r"samples/(.*)_epoch_(\d+)(?:\.json|/sample\.json)", re.DOTALL)
_LONGEST_EPOCH = 18
"""Maximum number of digits. A longer number is not a count."""
_LONGEST_ID = 10_000
"""Maximum number of characters. A name in a zip archive can have 65,535 bytes."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """Position of a sample in the log, known without reading the sample."""

    key: str
    """Member name in an archive, `samples[3]` in a `.json` log."""
    id_text: str
    """Sample id as text, as far as the name contains it; `""` if unknown."""
    epoch: int
    """Epoch from 1, as far as the name contains it; 0 if unknown."""
    index: int
    """Position in the file."""


def named_samples(names: Iterable[str]) -> list[SampleRef]:
    """Return the samples among the members of an archive."""
    return [
        SampleRef(name, match[1], epoch_of(match[2]), index)
        for index, name in enumerate(names)
        if name.startswith("samples/") and (match := _SAMPLE_NAME.fullmatch(name))
    ]


def name_of(sample_id: object) -> str:
    """Return an id as used in member names: like Inspect, or shortened with a checksum if a zip archive
    cannot hold the id.
    """
    text = str(sample_id)
    if len(text) <= _LONGEST_ID and "\0" not in text and _encodable(text):
        return text
    # Imported late, because few logs need it.
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
    """Return the possible forms of an id in member names. It may be unchanged, written by zip on Windows
    (other slashes, cut at NUL), or written by aigo-bridge.
    """
    text = str(sample_id)
    return text, text.replace("\\", "/").partition("\0")[0], name_of(text)


def epoch_of(value: object) -> int:
    """Convert a number or digits to an epoch; 0 if it is not valid."""
    if isinstance(value, str):
        return int(value) if 0 < len(value) <= _LONGEST_EPOCH else 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**_LONGEST_EPOCH:
        return value
    return 0


def in_order(refs: list[SampleRef], ids: object, order: Order) -> list[SampleRef]:
    """Return the samples in dataset order, epoch by epoch or (`"sample"`) sample by sample.

    Args:
        refs: samples in the order of writing.
        ids: sample ids of the dataset, if known. Other samples come last.
        order: one of the two orders.
    """
    listed = ids if isinstance(ids, list) else []
    rank = {str(sample_id): position for position, sample_id in enumerate(listed)}
    end = len(rank)
    if not rank:
        # Without a list of ids, samples are ordered by their first appearance, with their epochs together.
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


# Id and epoch of a sample

RENAMED = "sample id that differs from its member name: the member name is used"
RENUMBERED = (
    "sample epoch that is invalid or used twice: replaced by a free one, or by the one in the member name"
)
NO_TEXT = "sample id that is neither text nor an integer: written as text"


def is_settled(ref: SampleRef, sample_id: object, epoch: object) -> bool:
    """Return whether the sample itself and its member name give the same id and epoch."""
    return epoch == ref.epoch > 0 and (ref.id_text == str(sample_id) or ref.id_text in names_of(sample_id))


class Identities:
    """Assignment of unique ids and epochs to samples. It remembers the ids and epochs that are already
    used.
    """

    def __init__(self, refs: Iterable[SampleRef]):
        self._owners: dict[tuple[str, int], int] = {}
        self._given: dict[int, int] = {}
        self._next: dict[str, int] = {}
        for ref in refs:
            if ref.id_text and epoch_of(ref.epoch):
                self._owners.setdefault((ref.id_text, ref.epoch), ref.index)

    def settle(self, sample: dict[str, Any], ref: SampleRef, *, named: bool) -> Counter[str]:
        """Give a sample a unique id and epoch, in place. Return the changes.

        Args:
            sample: the sample as in the log.
            ref: position of the sample.
            named: `ref` contains the member name, which takes precedence over the sample's own fields.

        Raises:
            EvidenceError: the id of the sample cannot be determined.
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


# Samples that a log lists

_MOST_NAMED = 100


def check_entries(reductions: object, refs: Iterable[SampleRef], *, whole: bool) -> list[str]:
    """Return the problems in the reductions of a log.

    Scores of samples that are not in the log lose their `sample_id`, in place.

    Args:
        reductions: reductions as in the log.
        refs: samples of the log.
        whole: report scores whose sample is not in the log.
    """
    if not isinstance(reductions, list):
        return [] if reductions is None else [f"expected a list, found {type(reductions).__name__}"]
    refs = list(refs)
    # Some ids are only known after reading the samples.
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
                reasons.append(f"entry {place}: score {number} does not have a sample id")
            elif names is not None and str(sample_id) not in names and names.isdisjoint(names_of(sample_id)):
                score["sample_id"] = None
                if whole:
                    reasons.append(
                        f"entry {place}: score {number} belongs to a sample that is not in the log"
                    )
    if len(reasons) > _MOST_NAMED:
        more = len(reasons) - _MOST_NAMED
        reasons[_MOST_NAMED:] = [f"{more:,} more entries or scores that cannot be used"]
    return reasons


class _Summary(msgspec.Struct):
    id: str | int
    epoch: int


def summarised(data: bytes) -> list[Identity] | None:
    """Return the samples in a summaries member; `None` if it does not have Inspect's form."""
    try:
        summaries = msgspec.json.decode(data, type=list[_Summary])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return [(str(summary.id), summary.epoch) for summary in summaries]


def listed_samples(summaries: object) -> list[Identity]:
    """Return the samples in a summaries member of any form."""
    return [
        (str(summary.get("id")), summary["epoch"])
        for summary in (summaries if isinstance(summaries, list) else ())
        if isinstance(summary, dict) and isinstance(summary.get("epoch"), int)
    ]


class _Anything(msgspec.Struct):
    """Any object. Its fields are ignored."""


def is_list_of_objects(data: bytes) -> bool:
    """Return whether a member is a list of objects in valid JSON, without creating the objects."""
    try:
        msgspec.json.decode(data, type=list[_Anything])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def planned(header: dict[str, Any]) -> list[Identity]:
    """Return the samples that a successful log must contain, in order; empty if the log does not list
    them.
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
        # The run ended early, or its samples ran different numbers of times.
        return []
    identities = dict.fromkeys((str(name), epoch) for name in ids for epoch in range(1, epochs + 1))
    for stop in stops if isinstance(stops, list) else ():
        if isinstance(stop, dict):
            identities.pop((str(stop.get("id")), _count(stop.get("epoch")) or 0), None)
    return list(identities)


def planned_count(header: dict[str, Any]) -> int:
    """Return the minimum number of trials that a log must contain; 0 if the log does not contain it."""
    results = header.get("results")
    if not _must_be_whole(header) or not isinstance(results, dict):
        return 0
    if (logged := _count(results.get("logged_samples"))) is not None:
        return logged
    name = "completed_samples" if results.get("early_stopping") else "total_samples"
    return _count(results.get(name)) or 0


def keeps_samples(header: dict[str, Any]) -> bool:
    """Return whether the run wrote samples to the log."""
    return header["eval"]["config"].get("log_samples") is not False


def missing(expected: Iterable[Identity], count: int, present: Collection[Identity]) -> list[str]:
    """Return messages about samples that are missing in a log.

    Args:
        expected: samples that the log lists.
        count: minimum number of samples.
        present: samples in the log. If an id is unknown, it is `""`.
    """
    expected = dict.fromkeys(expected)
    present_names = set(present)
    # A real id may also be "".
    unknown = sum(not name and (name, epoch) not in expected for name, epoch in present)
    lost = [identity for identity in expected if identity not in present_names]
    if lost:
        # Member names are not always identical to ids.
        lost = [(name, epoch) for name, epoch in lost if not _is_named(name, epoch, present_names)]
    if lost and not unknown:
        lines = [
            f"sample {name!r}, epoch {epoch}: listed as finished, but not in the log"
            for name, epoch in lost[:_MOST_NAMED]
        ]
        if len(lost) > _MOST_NAMED:
            more = len(lost) - _MOST_NAMED
            lines.append(f"{more:,} more samples are listed as finished, but not in the log")
        return lines
    least = max(count, len(present) - unknown + len(lost))
    if least > len(present):
        return [
            f"the log contains {len(present):,} of {plural(least, 'sample', form=',')} listed as finished"
        ]
    return []


def _is_named(name: str, epoch: int, present: set[Identity]) -> bool:
    return not present.isdisjoint((alias, epoch) for alias in names_of(name))


def _must_be_whole(header: dict[str, Any]) -> bool:
    return header.get("status") == "success" and keeps_samples(header)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
