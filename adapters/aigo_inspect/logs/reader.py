"""Reading Inspect's logs without Inspect: header first, then one sample at a time.

Inspect's own readers cost 20 to 70 times what unzipping and parsing cost, hold whole logs in memory and give
up at the first sample they do not like. This reader hands out plain dictionaries, as they stand in the log,
one sample at a time; what cannot be read is listed in `LogReader.damage` and the rest goes on.

Layouts: `.eval` is a zip with `header.json`, `_journal/start.json`, `summaries.json`, `reductions.json` and
one `samples/{id}_epoch_{n}.json` per sample; `.json` is one document with the same parts as keys.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds, TooLargeError
from aigo_bridge.access.mirrored import named
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage, kind_of
from aigo_bridge.importing.redaction import NO_REDACTION, Redaction
from aigo_bridge.text.json_text import DEEPEST, without_depths
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.index import (
    Identities,
    Identity,
    Order,
    SampleRef,
    check_entries,
    in_order,
    is_list_of_objects,
    is_settled,
    keeps_samples,
    listed_samples,
    missing,
    named_samples,
    planned,
    planned_count,
    summarised,
)
from aigo_inspect.logs.parsing import Parsed, parse_json
from aigo_inspect.logs.pools import chunked_samples, read_chunked
from aigo_inspect.logs.shapes import STATUS_UNKNOWN, lift_header, lift_sample, listed, set_aside
from aigo_inspect.logs.sources import Source, open_source

if TYPE_CHECKING:
    from aigo_inspect.logs.json_log import JsonLog

Made = TypeVar("Made")
_SUMMARIES = "summaries.json"
_PACKED = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zX", "7-Zip": b"7z\xbc\xaf"}


@dataclass(frozen=True, slots=True)
class RawSample:
    """One sample as it stands in the log: attachments and pools not yet resolved (see `pools.resolve`)."""

    data: dict[str, Any]
    """An `EvalSample` in Inspect's JSON; oldest shapes already renamed to today's keys."""
    key: str
    """Member it came from."""
    non_finite: bool = False
    """`data` contains NaN or infinities."""
    changes: Counter[str] = field(default_factory=Counter)
    """What reading had to change: kind → count."""
    size: int = 0
    """Bytes of its JSON; 0 when unknown."""
    bounds: Bounds = DEFAULT_BOUNDS
    """What it may ask of the machine."""

    @property
    def id(self) -> str | int:
        """The sample's id in its dataset."""
        sample_id: str | int = self.data["id"]
        return sample_id

    @property
    def epoch(self) -> int:
        """1-based epoch."""
        number: int = self.data["epoch"]
        return number


def open_log(
    location: str | os.PathLike[str],
    *,
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redaction = NO_REDACTION,
) -> LogReader:
    """Open an Inspect log, `.eval` or `.json`, local or at an fsspec URL; the content decides, not the name.

    Raises:
        EvidenceError: there is no log, or nothing of it can be read.
    """
    return LogReader(open_source(location), bounds=bounds, redaction=redaction)


class LogReader:
    """An open log. Use it in a `with` statement."""

    def __init__(
        self, source: Source, *, bounds: Bounds = DEFAULT_BOUNDS, redaction: Redaction = NO_REDACTION
    ):
        self.location = redaction.text(named(source.name))
        """The location as the user named it, without secrets; of a copy the address that it is of."""
        self.address = source.name
        """The location to open it at."""
        self.damage: list[Damage] = []
        """What could not be read, so far: grows while samples are read."""
        self.format: Literal["eval", "json"]
        self.redaction = redaction
        self.merged_ids = 0
        """How many ids fewer there are once keys are taken out of them; known when the samples are."""
        self.bounds = bounds
        self.changes: Counter[str] = Counter()
        """What reading header and samples had to change, so far."""
        self._source = source
        self._deadline = bounds.deadline()
        self._refs: list[SampleRef] | None = None
        self._identities: Identities | None = None
        self._checked_reductions = False
        self._chunked: dict[str, list[str]] | None = None
        try:
            self._open()
        except BaseException:
            source.close()
            raise

    def _open(self) -> None:
        self._archive: Archive | None = None
        self._json: JsonLog | None = None
        start = self._source.read_at(0, 4)
        text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
        if self._source.size == 0:
            raise EvidenceError(f"{self.location!r} is empty, expected an Inspect log", code=Code.NOT_A_LOG)
        for name, sign in _PACKED.items():
            if start.startswith(sign):
                raise EvidenceError(
                    f"{self.location!r} is compressed with {name}: unpack it first", code=Code.NOT_A_LOG
                )
        if text[:1] == b"{" or (not text and start):
            self.format = "json"
            # Late: most logs are archives.
            from aigo_inspect.logs.json_log import JsonLog

            self._json = JsonLog(self._source, self.bounds, self.redaction)
            self.note_damage(*self._json.damage)
            self.changes.update(self._json.changes)
        else:
            self.format = "eval"
            self._archive = Archive(self._source, self.bounds)
            self._take_damage(self._archive)
        self.header = self._read_header()
        """`EvalLog` without samples and reductions: version, status, eval, plan, results, stats, error …"""
        self._check_samples()
        self._check_reductions()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    # Header and other members

    def _read_header(self) -> dict[str, Any]:
        if self._json is not None:
            return self._lifted(self._json.header)
        # The header is written when the run ends: where it is, but broken, how it ended is not known. So is
        # what stands beside it.
        closed = {"header.json", _SUMMARIES, "reductions.json"}.intersection(self.members())
        status = STATUS_UNKNOWN if closed else "started"
        if closed and "header.json" not in closed:
            reason = f"the log was closed, as it has {min(closed)!r}, but it has no header"
            self.note_damage(Damage("header.json", None, reason))
        partial: dict[str, Any] = {}
        for name in ("header.json", "_journal/start.json"):
            if name not in self.members():
                continue
            try:
                header = self._member(name).value
            except EvidenceError as error:
                self.note(name, error)
                continue
            if isinstance(header, dict):
                partial = {**header, **partial}
                partial["status"] = partial.get("status") or status
                if isinstance(partial.get("eval"), dict):
                    return self._lifted(partial)
                partial.pop("eval", None)
            self.note(name, EvidenceError("expected an object with an object 'eval'", code=Code.DAMAGED_LOG))
        if not self.sample_refs():
            reason = f" ({self.damage[0]})" if self.damage else ""
            raise EvidenceError(
                f"{self.location!r} is a zip, but not an Inspect log: no header and no samples{reason}",
                code=Code.NOT_A_LOG,
            )
        self.note_damage(
            Damage("header.json", None, "the log has no header; what is known comes from its samples")
        )
        return self._lifted({"status": status, **partial, "eval": {}})

    def _lifted(self, header: dict[str, Any]) -> dict[str, Any]:
        if without_depths(header):
            self.note_damage(Damage("header.json", None, f"nested more than {DEEPEST} levels deep"))
        lift_header(header)
        for part in (header, *(header.get(name) for name in ("eval", "stats", "results", "plan"))):
            self.changes += set_aside(part)
        return header

    @property
    def finished(self) -> bool:
        """Whether the log was closed by the run that wrote it (whatever its status)."""
        return self.header.get("status") != "started"

    def members(self) -> list[str]:
        """Names in the archive, in the order they were written; top-level keys of a `.json` log."""
        if self._archive is not None:
            return list(self._archive.members)
        return list(self.header)

    def checksums(self) -> dict[str, int | None]:
        """CRC-32 of every member of an archive; empty for `.json` logs."""
        return (
            {}
            if self._archive is None
            else {name: member.crc for name, member in self._archive.members.items()}
        )

    def read_raw(self, name: str) -> bytes | None:
        """The bytes of a member of the archive, secrets included; `None`, and noted in `damage`, when it
        cannot be read.
        """
        try:
            return self._unpacked(name)
        except EvidenceError as error:
            self.note(name, error)
            return None

    def _unpacked(self, name: str) -> bytes:
        assert self._archive is not None
        data = self._archive.read(name)
        self._take_damage(self._archive)
        return data

    def _take_damage(self, archive: Archive) -> None:
        self.note_damage(*archive.damage)
        archive.damage.clear()

    def read_member(self, name: str) -> Any:
        """A member of the archive as JSON; raises `EvidenceError` when it cannot be read."""
        return self._member(name).value

    def _member(self, name: str) -> Parsed:
        data = self._unpacked(name)
        self.bounds.check_document(name, data)
        parsed = parse_json(data, name, self.redaction)
        self.changes.update(parsed.changes)
        return parsed

    def note(self, name: str, error: EvidenceError) -> None:
        """Note in `damage` that a member could not be used."""
        offset = None
        if self._archive is not None and name in self._archive.members:
            offset = self._archive.members[name].offset
        self.note_damage(Damage(name, offset, str(error), kind_of(error)))

    def note_damage(self, *found: Damage) -> None:
        """Note damage, without the secrets that a name or a reason may have."""
        text = self.redaction.text
        self.damage += [replace(item, member=text(item.member), reason=text(item.reason)) for item in found]

    def _optional(self, name: str) -> Any:
        if self._archive is None or name not in self._archive.members:
            return None
        try:
            return self._member(name).value
        except EvidenceError as error:
            self.note(name, error)
            return None

    def read_list(self, name: str) -> list[Any]:
        """A member of the archive that is a list; empty, and noted in `damage`, when it is none."""
        entries = self._optional(name)
        if entries is not None and not isinstance(entries, list):
            self.note(
                name, EvidenceError(f"expected a list, found {type(entries).__name__}", code=Code.DAMAGED_LOG)
            )
        return entries if isinstance(entries, list) else []

    @property
    def has_epochs(self) -> bool:
        """Whether samples were run more than once, so that reduced scores say something the scores do not."""
        epochs = self.header["eval"]["config"].get("epochs")
        return (isinstance(epochs, int) and epochs > 1) or any(ref.epoch > 1 for ref in self.written_refs())

    def reductions(self) -> list[Any]:
        """`EvalSampleReductions` of the log: scores of samples over their epochs; empty when there are none.

        What is none of them is there as well, and noted in `damage`; scores of samples that are not in the
        log have no `sample_id` any more.
        """
        name = "reductions.json" if self._json is None else "reductions"
        entries: Any = self.read_list(name) if self._json is None else self._json.reductions
        reasons = check_entries(entries, self.written_refs(), whole=keeps_samples(self.header))
        if not self._checked_reductions:
            self._checked_reductions = True
            for reason in reasons:
                self.note(name, EvidenceError(reason, code=Code.DAMAGED_LOG))
        return entries if isinstance(entries, list) else []

    def summaries(self) -> list[dict[str, Any]]:
        """`EvalSampleSummary` entries (thinned), also of unfinished logs; empty for `.json` logs."""
        return [
            entry
            for name in self.summary_members()
            for entry in self.read_list(name)
            if isinstance(entry, dict)
        ]

    def summary_members(self) -> list[str]:
        """The members that list samples: one of a log that ended, one of every few samples otherwise."""
        if self._archive is None:
            return []
        if _SUMMARIES in self._archive.members:
            return [_SUMMARIES]
        return [name for name in self._archive.members if name.startswith("_journal/summaries/")]

    # Samples

    def sample_refs(self, order: Order = "epoch") -> list[SampleRef]:
        """The samples in the order of the dataset, epoch by epoch or (`"sample"`) sample by sample.

        Samples that the header does not list come last, in the order in which they were written.
        """
        header = getattr(self, "header", {})
        dataset = (header.get("eval") or {}).get("dataset") or {}
        return in_order(self.written_refs(), dataset.get("sample_ids"), order)

    def written_refs(self) -> list[SampleRef]:
        """The samples in the order in which they were written."""
        if self._refs is not None:
            return self._refs
        if self._json is not None:
            refs = [SampleRef(f"samples[{i}]", *self._json.identity(i), i) for i in range(len(self._json))]
        else:
            refs = named_samples(self.members())
        ids = [ref.id_text for ref in refs]
        if (clean := self.redaction.texts(ids)) is not ids:
            self.merged_ids = len(set(ids)) - len(set(clean))
            refs = [replace(ref, id_text=text) for ref, text in zip(refs, clean, strict=True)]
        self._refs = refs
        return refs

    def recover(self) -> None:
        """Look for samples, and other members, that the zip directory has lost; those that are found are
        noted in `damage`.
        """
        if self._archive is None:
            return
        if self._archive.recover():
            self._refs = self._chunked = None
        self._take_damage(self._archive)

    def __len__(self) -> int:
        return len(self.written_refs())

    # Single samples

    def read_sample(self, ref: SampleRef) -> RawSample:
        """One sample.

        Raises:
            EvidenceError: it cannot be read; the other samples can.
        """
        return self.parse_sample(ref, self.read_bytes(ref))

    def read_bytes(self, ref: SampleRef) -> bytes | None:
        """The JSON text of one sample, secrets included; `None` where it is no member of its own.

        Raises:
            EvidenceError: as `read_sample`.
        """
        if time.monotonic() > self._deadline:
            raise TooLargeError(f"reading took longer than the bound 'seconds', {self.bounds.seconds:g}")
        if self._archive is None:
            return None
        data = self._unpacked(ref.key)
        self.bounds.check_document(ref.key, data)
        return data

    def parse_sample(self, ref: SampleRef, data: bytes | None) -> RawSample:
        """The sample whose text `read_bytes` has given; raises as `read_sample`."""
        if data is None:
            assert self._json is not None
            parsed = self._json.sample(ref.index)
        else:
            parsed = parse_json(data, ref.key, self.redaction)
            if ref.key.endswith("/sample.json"):
                parsed = read_chunked(self._member, self._parts_of(ref), parsed)
        sample = parsed.value
        if not isinstance(sample, dict):
            raise EvidenceError(
                f"expected a sample (an object), found {type(sample).__name__}", code=Code.DAMAGED_LOG
            )
        if not sample.keys() - {"id", "epoch"}:
            raise EvidenceError("the sample is empty", code=Code.DAMAGED_LOG)
        lift_sample(sample, self.header)
        doubtful = self._archive is not None and ref.key in self._archive.doubtful
        if doubtful and not is_settled(ref, sample.get("id"), sample.get("epoch")):
            raise EvidenceError(
                "its id and epoch are not those that the zip directory gives it", code=Code.DAMAGED_LOG
            )
        changes = self._settle(sample, ref)
        changes += set_aside(sample)
        pools = sample.get("events_data")
        pools = pools if isinstance(pools, dict) else {}
        more = (sample.get("scores"), sample.get("attachments"), pools.get("messages"), pools.get("calls"))
        events = sample.get("events")
        # Transcripts of tools and subtasks, in old logs.
        nested = [event.get("events") for event in listed(events) if type(event) is dict]
        self.check_counts(ref, events, sample.get("messages"), *more, *nested)
        size = self.sample_size(ref)
        return RawSample(sample, ref.key, parsed.non_finite, parsed.changes + changes, size, self.bounds)

    def _settle(self, sample: dict[str, Any], ref: SampleRef) -> Counter[str]:
        named = self._json is None
        if named and is_settled(ref, sample.get("id"), sample.get("epoch")):
            return Counter()
        if self._identities is None:
            self._identities = Identities(self.written_refs())
        return self._identities.settle(sample, ref, named=named)

    def check_counts(self, ref: SampleRef, events: object, messages: object, *more: object) -> None:
        """Refuse a sample with more events or messages than the bounds allow; raises `TooLargeError`.

        Args:
            ref: the sample.
            events: its events.
            messages: its messages.
            more: whatever else it has one by one: its scores, its attachments, its pools.
        """
        size = self.sample_size(ref)
        for what, items in (("events", events), ("messages", messages)):
            if isinstance(items, list):
                self.bounds.check_count(what, len(items), size)
        all_of_them = (len(items) for items in (events, messages, *more) if isinstance(items, (list, dict)))
        self.bounds.check_count("events, messages, scores and attachments", sum(all_of_them), size)

    def _parts_of(self, ref: SampleRef) -> list[str]:
        """The members of a chunked sample other than its shell."""
        if self._chunked is None:
            self._chunked = chunked_samples(self.members())
        return self._chunked[ref.key]

    def samples(self, order: Order = "epoch") -> Iterator[RawSample]:
        """All samples that can be read, one at a time; the others are noted in `damage`."""
        return self.each(self.sample_refs(order), self.read_sample)

    def each(self, refs: Iterable[SampleRef], make: Callable[[SampleRef], Made]) -> Iterator[Made]:
        """What `make` makes of these samples, one at a time; those it cannot read are noted in `damage`."""
        for ref in refs:
            try:
                result = make(ref)
            except EvidenceError as error:
                self.note(ref.key, error)
                if len(self.damage) > self.bounds.damaged:
                    reason = f"more than {self.bounds.damaged:,} parts are unreadable: the rest was not read"
                    self.note_damage(Damage("", None, f"{reason} (the bound is 'damaged')"))
                    return
            else:
                yield result
                # Freed before the next one is made, not after.
                del result

    def sample_size(self, ref: SampleRef) -> int:
        """Bytes of a sample's JSON; 0 when unknown."""
        if self._json is not None:
            return self._json.size(ref.index)
        assert self._archive is not None
        members = self._archive.members
        parts = self._parts_of(ref) if ref.key.endswith("/sample.json") else []
        return sum(max(0, members[name].size) for name in (ref.key, *parts))

    def sample(self, sample_id: str | int, epoch: int = 1) -> RawSample:
        """The sample with this id and epoch; raises `EvidenceError` when there is none."""
        for ref in self.sample_refs():
            if ref.epoch in (epoch, 0) and ref.id_text in (str(sample_id), ""):
                sample = self.read_sample(ref)
                if str(sample.id) == str(sample_id) and sample.epoch == epoch:
                    return sample
        raise EvidenceError(f"the log has no sample {sample_id!r} in epoch {epoch}", code=Code.DAMAGED_LOG)

    # What is missing

    def _check_samples(self) -> None:
        """Note as damage what an open log says it has, and has not; what only the directory has lost is found
        again.
        """
        if not keeps_samples(self.header):
            return
        expected, count = [*planned(self.header), *self._summarised()], planned_count(self.header)
        if missing(expected, count, self._found()):
            self.recover()
        self.note_damage(*(Damage("", None, reason) for reason in missing(expected, count, self._found())))
        if self.merged_ids:
            reason = (
                f"{self.merged_ids + 1} or more samples have the same id after redaction and are "
                "imported as trials of one sample (use --no-redact to keep them separate)"
            )
            self.note_damage(Damage("", None, reason))

    def _found(self) -> list[Identity]:
        return [(ref.id_text, ref.epoch) for ref in self.written_refs()]

    def _summarised(self) -> list[Identity]:
        """Samples that have a summary."""
        identities: list[Identity] = []
        for name in self.summary_members():
            if (data := self.read_raw(name)) is not None:
                ids = summarised(data)
                identities += listed_samples(self.read_list(name)) if ids is None else ids
        texts = self.redaction.texts([name for name, _ in identities])
        return [(name, epoch) for name, (_, epoch) in zip(texts, identities, strict=True)]

    def _check_reductions(self) -> None:
        """Note as damage what cannot be read of the reductions, where nobody is going to read them."""
        name = "reductions.json"
        if self.format == "json":
            self.reductions()
        elif name in self.members() and not self.has_epochs:
            data = self.read_raw(name)
            if data is not None and not is_list_of_objects(data):
                self.reductions()
