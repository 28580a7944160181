"""Reader for Inspect logs that does not need Inspect: first the header, then one sample at a time.

Inspect's own readers take 20 to 70 times as long as unzipping and parsing. They load whole logs into memory
and fail at the first invalid sample. This reader returns plain dictionaries as in the log. Unreadable parts
are listed in `InspectLogReader.damage`, and reading continues.

Layouts: an `.eval` log is a zip archive with `header.json`, `_journal/start.json`, `summaries.json`,
`reductions.json` and one `samples/{id}_epoch_{n}.json` for each sample. A `.json` log is one document with
the same parts as keys.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds, LogTooLargeError
from aigo_bridge.access.display_paths import display_path
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import Damage, kind_of
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION
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
from aigo_inspect.logs.parsing import ParsedDocument, parse_json
from aigo_inspect.logs.pools import chunked_samples, read_chunked
from aigo_inspect.logs.shapes import STATUS_UNKNOWN, lift_header, lift_sample, listed, set_aside
from aigo_inspect.logs.sources import ByteSource, open_source

if TYPE_CHECKING:
    from aigo_inspect.logs.json_log import JsonLog

Made = TypeVar("Made")
_SUMMARIES = "summaries.json"
_PACKED = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zX", "7-Zip": b"7z\xbc\xaf"}


@dataclass(frozen=True, slots=True)
class RawSample:
    """A sample as in the log, with unresolved attachments and pools (see `pools.resolve`)."""

    data: dict[str, Any]
    """`EvalSample` in Inspect's JSON. Old layouts are already converted to current keys."""
    key: str
    """Member with the sample."""
    non_finite: bool = False
    """Whether `data` contains NaN or infinities."""
    changes: Counter[str] = field(default_factory=Counter)
    """Kind of change made while reading → number of changes."""
    size: int = 0
    """Size of the sample's JSON in bytes; 0 if unknown."""
    bounds: Bounds = DEFAULT_BOUNDS
    """Limits on the resources that the sample may use."""

    @property
    def id(self) -> str | int:
        """Id of the sample in its dataset."""
        sample_id: str | int = self.data["id"]
        return sample_id

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 1."""
        number: int = self.data["epoch"]
        return number


def open_log(
    location: str | os.PathLike[str],
    *,
    bounds: Bounds = DEFAULT_BOUNDS,
    redaction: Redactor = NO_REDACTION,
    header_only: bool = False,
) -> InspectLogReader:
    """Open an Inspect log, `.eval` or `.json`, at a local path or fsspec URL. The format is detected from the
    content. With `header_only`, missing samples and unreadable reductions are not noted as damage.

    Raises:
        EvidenceError: the log does not exist, or cannot be read at all.
    """
    source = open_source(location)
    return InspectLogReader(source, bounds=bounds, redaction=redaction, header_only=header_only)


class InspectLogReader:
    """An open log. Use it in a `with` statement."""

    def __init__(
        self,
        source: ByteSource,
        *,
        bounds: Bounds = DEFAULT_BOUNDS,
        redaction: Redactor = NO_REDACTION,
        header_only: bool = False,
    ):
        self.location = redaction.text(display_path(source.name))
        """Location as given by the user, without secrets. For a downloaded copy, this is the original URL."""
        self.address = source.name
        """Location of the opened file."""
        self.damage: list[Damage] = []
        """Damage found so far. Reading samples may add more."""
        self.format: Literal["eval", "json"]
        self.redaction = redaction
        self.merged_ids = 0
        """Number of ids that became duplicates by redaction, known after the samples are listed."""
        self.bounds = bounds
        self.changes: Counter[str] = Counter()
        """Changes made while reading the header and samples so far."""
        self._source = source
        self._deadline = bounds.deadline()
        self._refs: list[SampleRef] | None = None
        self._identities: Identities | None = None
        self._checked_reductions = False
        self._chunked: dict[str, list[str]] | None = None
        try:
            self._open()
            if not header_only:
                self._check_samples()
                self._check_reductions()
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
            # Imported late, because most logs are archives.
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
        # The header is written at the end of the run, together with other members. If it is broken, the final
        # status is unknown.
        closed = {"header.json", _SUMMARIES, "reductions.json"}.intersection(self.members())
        status = STATUS_UNKNOWN if closed else "started"
        if closed and "header.json" not in closed:
            reason = f"the log was closed (it contains {min(closed)!r}), but its header is missing"
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
            Damage("header.json", None, "the log lacks a header; only data from its samples is available")
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
        """Whether the run closed the log, with any status."""
        return self.header.get("status") != "started"

    def members(self) -> list[str]:
        """Return the member names of an archive in the order of writing, or the keys of a `.json` log."""
        if self._archive is not None:
            return list(self._archive.members)
        return list(self.header)

    def checksums(self) -> dict[str, int | None]:
        """Return the CRC-32 of every member of an archive; empty for `.json` logs."""
        return (
            {}
            if self._archive is None
            else {name: member.crc for name, member in self._archive.members.items()}
        )

    def read_raw(self, name: str) -> bytes | None:
        """Return the bytes of an archive member, not redacted; `None` and a note in `damage` on failure."""
        try:
            return self._unpacked(name)
        except EvidenceError as error:
            self.note(name, error)
            return None

    def _unpacked(self, name: str) -> bytes:
        assert self._archive is not None
        data = self._archive.read(name)
        if self._archive.damage:
            self._take_damage(self._archive)
        return data

    def _take_damage(self, archive: Archive) -> None:
        self.note_damage(*archive.damage)
        archive.damage.clear()

    def read_member(self, name: str) -> Any:
        """Return an archive member as JSON. Raise `EvidenceError` if it cannot be read."""
        return self._member(name).value

    def _member(self, name: str) -> ParsedDocument:
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
        """Note damage, with secrets removed from names and reasons."""
        text = self.redaction.text
        self.damage += [replace(item, member=text(item.member), reason=text(item.reason)) for item in found]

    def read_list(self, name: str) -> list[Any]:
        """Return an archive member that is a list; empty if it is not a list, which is noted in `damage`."""
        if self._archive is None or name not in self._archive.members:
            return []
        try:
            entries = self._member(name).value
        except EvidenceError as error:
            self.note(name, error)
            return []
        if isinstance(entries, list | None):
            return entries or []
        problem = f"expected a list, found {type(entries).__name__}"
        self.note(name, EvidenceError(problem, code=Code.DAMAGED_LOG))
        return []

    @property
    def has_epochs(self) -> bool:
        """Whether samples ran more than once, so that reduced scores contain additional information."""
        epochs = self.header["eval"]["config"].get("epochs")
        return (isinstance(epochs, int) and epochs > 1) or any(ref.epoch > 1 for ref in self.written_refs())

    def reductions(self) -> list[Any]:
        """Return the `EvalSampleReductions` of the log: scores of samples over their epochs; empty if
        missing.

        Invalid entries are included and noted in `damage`. Scores of samples that are not in the log are
        without a `sample_id`.
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
        """Return the `EvalSampleSummary` entries, which have shortened texts; none for `.json` logs."""
        return [
            entry
            for name in self.summary_members()
            for entry in self.read_list(name)
            if isinstance(entry, dict)
        ]

    def summary_members(self) -> list[str]:
        """Return the members that list samples: one in a finished log, otherwise several."""
        if self._archive is None:
            return []
        if _SUMMARIES in self._archive.members:
            return [_SUMMARIES]
        return [name for name in self._archive.members if name.startswith("_journal/summaries/")]

    # Samples

    def sample_refs(self, order: Order = "epoch") -> list[SampleRef]:
        """Return the samples in the order of `in_order`."""
        header = getattr(self, "header", {})
        dataset = (header.get("eval") or {}).get("dataset") or {}
        return in_order(self.written_refs(), dataset.get("sample_ids"), order)

    def written_refs(self) -> list[SampleRef]:
        """Return the samples in the order of writing."""
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
        """Find samples and other members that are missing in the zip directory, and note them in `damage`."""
        if self._archive is None:
            return
        if self._archive.recover():
            self._refs = self._chunked = None
        self._take_damage(self._archive)

    # Single samples

    def read_sample(self, ref: SampleRef) -> RawSample:
        """Return one sample.

        Raises:
            EvidenceError: the sample cannot be read. Other samples may be readable.
        """
        return self.parse_sample(ref, self.read_bytes(ref))

    def read_bytes(self, ref: SampleRef) -> bytes | None:
        """Return the JSON text of one sample, not redacted; `None` if the sample is not a separate member.

        Raises:
            EvidenceError: the sample cannot be read.
        """
        if time.monotonic() > self._deadline:
            raise LogTooLargeError(f"reading took longer than the bound 'seconds', {self.bounds.seconds:g}")
        if self._archive is None:
            return None
        data = self._unpacked(ref.key)
        self.bounds.check_document(ref.key, data)
        return data

    def parse_sample(self, ref: SampleRef, data: bytes | None) -> RawSample:
        """Parse the sample whose text `read_bytes` returned. Raise the same errors as `read_sample`."""
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
            raise EvidenceError("its id and epoch differ from the zip directory", code=Code.DAMAGED_LOG)
        changes = self._settle(sample, ref)
        changes += set_aside(sample)
        pools = sample.get("events_data")
        pools = pools if isinstance(pools, dict) else {}
        more = (sample.get("scores"), sample.get("attachments"), pools.get("messages"), pools.get("calls"))
        events = sample.get("events")
        # Transcripts of tools and subtasks in old logs.
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
        """Raise `LogTooLargeError` if a sample has more events or messages than the bounds allow.

        Args:
            ref: the sample.
            events: events of the sample.
            messages: messages of the sample.
            more: other collections in the sample: scores, attachments and pools.
        """
        size = self.sample_size(ref)
        for what, items in (("events", events), ("messages", messages)):
            if isinstance(items, list):
                self.bounds.check_count(what, len(items), size)
        counts = [len(items) for items in (events, messages, *more) if isinstance(items, (list, dict))]
        self.bounds.check_count("events, messages, scores and attachments", sum(counts), size)

    def _parts_of(self, ref: SampleRef) -> list[str]:
        """Return the members of a chunked sample except its shell."""
        if self._chunked is None:
            self._chunked = chunked_samples(self.members())
        return self._chunked[ref.key]

    def samples(self, order: Order = "epoch") -> Iterator[RawSample]:
        """Yield all readable samples one at a time. Unreadable samples are noted in `damage`."""
        return self.each(self.sample_refs(order), self.read_sample)

    def each(self, refs: Iterable[SampleRef], make: Callable[[SampleRef], Made]) -> Iterator[Made]:
        """Yield the result of `make` for each sample, one at a time. Unreadable samples are noted in
        `damage`.
        """
        for ref in refs:
            try:
                result = make(ref)
            except EvidenceError as error:
                self.note(ref.key, error)
                if len(self.damage) > self.bounds.damaged:
                    reason = (
                        f"more than {self.bounds.damaged:,} parts are unreadable, so the other parts"
                        " were not read"
                    )
                    self.note_damage(Damage("", None, f"{reason} (the bound is 'damaged')"))
                    return
            else:
                yield result
                # Free this result before the next one is created.
                del result

    def sample_size(self, ref: SampleRef) -> int:
        """Return the size of a sample's JSON in bytes; 0 if unknown."""
        if self._json is not None:
            return self._json.size(ref.index)
        assert self._archive is not None
        members = self._archive.members
        if not ref.key.endswith("/sample.json"):
            return max(0, members[ref.key].size)
        return sum(max(0, members[name].size) for name in (ref.key, *self._parts_of(ref)))

    # Missing samples

    def _check_samples(self) -> None:
        """Note missing samples as damage, after searching for samples that are only missing in the
        directory.
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
        """Return the samples with a summary."""
        identities: list[Identity] = []
        for name in self.summary_members():
            if (data := self.read_raw(name)) is not None:
                ids = summarised(data)
                identities += listed_samples(self.read_list(name)) if ids is None else ids
        texts = self.redaction.texts([name for name, _ in identities])
        return [(name, epoch) for name, (_, epoch) in zip(texts, identities, strict=True)]

    def _check_reductions(self) -> None:
        """Note unreadable reductions as damage. Logs with epochs are excluded, because their reductions are
        read later.
        """
        name = "reductions.json"
        if self.format == "json":
            self.reductions()
        elif name in self.members() and not self.has_epochs:
            data = self.read_raw(name)
            if data is not None and not is_list_of_objects(data):
                self.reductions()
