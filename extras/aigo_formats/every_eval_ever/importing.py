"""`aigo-bridge import` for files of Every Eval Ever. Each evaluation of a record becomes a result log.

The result log is `<evaluation>_<uuid>.tasklog.json`, with its loss report. Instances are expected next to
their record, under the same name. The path in the record is ignored because it belongs to another collection.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.file_kinds import eee_kind, remote_errors
from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import write_import_provenance
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.importing.log_import import (
    Damage,
    ImportOptions,
    ImportReport,
    LossReport,
    not_recomputed,
)
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.importing.results import (
    MALFORMED,
    import_each,
    nothing_imported,
    refuse_parquet,
    shortened,
    write_result_log,
)
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.text.json_text import dumps
from aigo_formats.every_eval_ever.conversations import InstanceMapper
from aigo_formats.every_eval_ever.records import ENGINE, AggregateRecord, frame_of, read_record
from aigo_formats.lines import line_at, numbered_lines, object_of

_INSTANCES = "_samples.jsonl"
_Index = dict[str, dict[str, list[tuple[int, int]]]]
"""Line offsets and line numbers of instances, by evaluation and sample."""


@dataclass(frozen=True)
class RecordWithInstances:
    """Record with its instances. One of them can be missing."""

    aggregate: str | None
    instances: str | None

    @property
    def location(self) -> str:
        """Return the file that identifies the pair."""
        return self.aggregate or self.instances or ""


class EveryEvalEver:
    """Importer of Every Eval Ever files."""

    expected = "records of Every Eval Ever (<uuid>.json, <uuid>_samples.jsonl)"

    def files(self, location: str) -> Sequence[str]:
        """Return the files at a location."""
        try:
            place = FileLocation.of(location)
            named = place.exists(place.path)
            return [path for path in place.files() if _kind(place, path, named=named)]
        except UsageError:
            return []
        except remote_errors():
            return []

    def parts(self, location: str) -> Sequence[str]:
        """Return a file and its companion."""
        files = {location: None}
        for pair in find_pairs([location]):
            files |= {name: None for name in (pair.aggregate, pair.instances) if name is not None}
        return list(files)

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Import records with one report per finished evaluation. Return the worst exit code.

        Raises:
            UsageError: a location does not contain such files, or an option is wrong.
        """
        refuse_parquet("records of Every Eval Ever", locations, options)
        options.redaction()
        return import_each(
            find_pairs(locations),
            out,
            tell,
            imported=lambda pair, taken: _import_pair(pair, out, options, taken),
            subject="the record",
        )


def find_pairs(locations: Sequence[str]) -> list[RecordWithInstances]:
    """Return the records at the locations, with their instances.

    Raises:
        UsageError: a location does not contain such files.
    """
    pairs: dict[str, RecordWithInstances] = {}
    for location in locations:
        place = FileLocation.of(location)
        try:
            named = place.exists(place.path)
            paths = place.files()
            all_kinds = {path: _kind(place, path, named=named) for path in paths}
            kinds = {path: kind for path, kind in all_kinds.items() if kind is not None}
        except remote_errors() as error:
            if place.fs is None:
                raise
            raise UsageError(
                f"cannot search for records at {location!r}: {error}", code=Code.UNREADABLE_LOG
            ) from error
        if not kinds:
            raise UsageError(
                f"no records of Every Eval Ever at {location!r} (expected <uuid>.json, <uuid>{_INSTANCES}, or"
                " a folder with them)",
                code=Code.NO_LOGS,
            )
        for path, kind in kinds.items():
            stem = path.removesuffix(_INSTANCES) if kind == "instances" else path.removesuffix(".json")
            aggregate = path if kind == "aggregate" else f"{stem}.json"
            instances = path if kind == "instances" else f"{stem}{_INSTANCES}"
            pairs.setdefault(
                place.absolute(stem),
                RecordWithInstances(
                    place.name(aggregate) if _kind(place, aggregate, named=True) == "aggregate" else None,
                    place.name(instances) if _kind(place, instances, named=True) == "instances" else None,
                ),
            )
    return list(pairs.values())


def _kind(place: FileLocation, path: str, *, named: bool) -> str | None:
    if not (named or path.endswith((".json", ".jsonl"))) or not place.exists(path):
        return None
    return eee_kind(place.head(path))


def _import_pair(
    pair: RecordWithInstances, out: Path, options: ImportOptions, taken: set[str]
) -> Iterator[ImportReport]:
    if options.recompute is not None:
        yield not_recomputed(pair.location, None)
        return
    record, damage, secrets = AggregateRecord(), list[Damage](), options.redaction()
    if pair.aggregate is None:
        damage.append(Damage(pair.location, None, "no record next to the instances: metrics are unknown"))
    else:
        try:
            record = read_record(pair.aggregate, options.bounds, secrets, redact=options.redact)
        except EvidenceError as error:
            damage.append(Damage(pair.aggregate, None, str(error)))
    index = _index(pair, record, options, damage)
    names = list(dict.fromkeys([*(number.evaluation for number in record.numbers), *index]))
    if not names:
        yield nothing_imported(
            pair.location, damage[:1] or [Damage(pair.location, None, "the record contains no evaluation")]
        )
    stem = re.sub(r".*[/\\]", "", pair.location).removesuffix(_INSTANCES).removesuffix(".json")
    for name in names:
        redaction = options.redaction()
        redaction.found.update(secrets.found)
        target = out / options.stem(shortened(f"{name}_{stem}", keep_end=True), taken, "record")
        try:
            report = _write(pair, record, name, index.get(name, {}), target, options, redaction, damage)
        except OSError as error:
            raise UsageError(f"cannot write to {str(out)!r}: {error}", code=Code.UNUSABLE_OUTPUT) from error
        yield report


def _index(
    pair: RecordWithInstances, record: AggregateRecord, options: ImportOptions, damage: list[Damage]
) -> _Index:
    """Return the positions of the instances by evaluation and sample, after checks against the record."""
    index: _Index = {}
    if pair.instances is None:
        if record.companion:
            damage.append(Damage(pair.location, None, "the file of instances is not next to the record"))
        return index
    evaluations = {number.id: number.evaluation for number in record.numbers if number.id is not None}
    digest, count = hashlib.new(_algorithm(record)), 0
    place = FileLocation.of(pair.instances)
    try:
        place.check_size(options.bounds.member_bytes)
        with place.open() as file:
            for start, number, line in numbered_lines(file, options.bounds):
                digest.update(line)
                count += 1
                where = f"{pair.instances}: line {number}"
                try:
                    instance = object_of(line, where, options.bounds)
                except EvidenceError as error:
                    damage.append(Damage(where, start, str(error)))
                    continue
                if "sample_id" not in instance:
                    damage.append(Damage(where, start, "not an instance: lacks 'sample_id'"))
                    continue
                identifier = instance.get("evaluation_result_id")
                linked = evaluations.get(identifier) if isinstance(identifier, str) else None
                name = linked or str(instance.get("evaluation_name"))
                index.setdefault(name, {}).setdefault(str(instance["sample_id"]), []).append((start, number))
    except (OSError, EvidenceError) as error:
        damage.append(Damage(pair.instances, None, str(error)))
        return index
    rows, checksum = record.companion.get("total_rows"), record.companion.get("checksum")
    if isinstance(rows, int) and rows != count:
        damage.append(
            Damage(pair.instances, None, f"the record lists {rows} instances, the file has {count}")
        )
    if isinstance(checksum, str) and checksum.lower() != digest.hexdigest():
        damage.append(
            Damage(pair.instances, None, "the instances do not match the record: their checksum differs")
        )
    return index


def _algorithm(record: AggregateRecord) -> str:
    return "md5" if record.companion.get("hash_algorithm") == "md5" else "sha256"


def _samples(
    location: str | None,
    samples: dict[str, list[tuple[int, int]]],
    mapper: InstanceMapper,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
) -> Iterator[bytes]:
    """Yield the samples as JSON. A sample that cannot be converted is damage."""
    if location is None or not samples:
        return
    with FileLocation.of(location).open() as file:
        for sample_id, lines in samples.items():
            try:
                instances = [
                    object_of(line_at(file, start, options.bounds), location, options.bounds)
                    for start, _ in lines
                ]
                yield dumps(mapper.sample(sample_id, instances))
            except MALFORMED as error:
                reason = redaction.text(f"malformed: {error}")
                damage.append(Damage(f"{location}: sample {sample_id}", lines[0][0], reason))


def _write(
    pair: RecordWithInstances,
    record: AggregateRecord,
    name: str,
    samples: dict[str, list[tuple[int, int]]],
    target: Path,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
) -> ImportReport:
    """Write `<target>.tasklog.<format>` and `<target>.loss.json`."""
    loss, damage = LossReport(), list(damage)
    model: Any = record.model.get("id")
    mapper = InstanceMapper(
        name, pair.instances or "", str(model) if model else None, record.numbers, options, loss
    )
    report = write_result_log(
        f"{pair.location} ({name})",
        target,
        _samples(pair.instances, samples, mapper, options, redaction, damage),
        lambda: frame_of(record, name, (mapper.samples, mapper.failed), damage, loss),
        totals=mapper,
        damage=damage,
        loss=loss,
        options=options,
        redaction=redaction,
    ).with_exit_code(options.max_loss)
    report.write_loss()
    return write_import_provenance(report, ENGINE, [pair.aggregate, pair.instances], options)
