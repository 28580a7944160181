"""Comparison of a result with its engine log: the log is imported again and compared sample by sample."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from aigo_bridge.engine.registry import load_logs, logs_by_engine, native_files
from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.importing.log_import import ContextChoice, EventChoice, ImportOptions, ImportReport
from aigo_bridge.process.temporary import temporary_folder
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart
from aigo_trust.provenance.record import log_digests, stem_of
from aigo_trust.verification.levels import Finding, Level, level
from aigo_trust.verification.numbers import same

_COMPARED = (
    ("evidence", "metrics"),
    ("evidence", "failures"),
    ("specification", "task"),
    ("specification", "config"),
)
"""Locations outside the samples that are compared. All other locations describe the run and the import."""
_PLACE = "source_uri"
"""Location of the log at import time. The log may have been moved since."""
_MOST_PATHS = 5
"""Maximum number of differences to report for one sample."""


def check_native(reader: LogReader, log: str, record: Mapping[str, Any] | None) -> Level:
    """Return the level of the engine log.

    Args:
        reader: reader of the result.
        log: location of the engine log.
        record: provenance of the result; `None` if missing.
    """
    findings = list(_digest_findings(log, record))
    options = _options(record)
    if record is not None and _mapping(record.get("options")).get("patterns"):
        reason = "the result was imported with patterns of secrets (--redact-pattern), which are not known"
        return level("native", findings, unchecked=reason)
    with temporary_folder("aigo-verify-") as folder:
        reports: list[ImportReport] = []
        try:
            for engine, locations in logs_by_engine([log]).items():
                load_logs(engine).import_logs(locations, folder, options, reports.append)
        except BridgeError as error:
            return level("native", [*findings], unchecked=f"the log cannot be read: {error}")
        outputs = [report for report in reports if report.output is not None]
        if not outputs:
            reasons = "; ".join(report.reason for report in reports) or "it contains no evidence"
            if findings:
                return level("native", findings)
            return level("native", [], unchecked=f"the log cannot be read: {reasons}")
        if (several := _of_several(log, outputs, record)) is not None:
            return level("native", findings, unchecked=several)
        report = _report_of(outputs, reader.path)
        assert report.output is not None
        notes = ["compared sample by sample with the log, imported again"]
        if record is None and not report.own:
            notes.append(
                "the import settings of the result are unknown: events and contexts are not compared"
            )
        lenient = record is None and not report.own
        try:
            findings += _differences(reader, LogReader(report.output), lenient=lenient)
        except EvidenceError as error:
            findings.append(Finding(str(error)))
    return level("native", findings, notes=notes)


def _of_several(log: str, outputs: list[ImportReport], record: Mapping[str, Any] | None) -> str | None:
    """Return why samples are not compared: the result combines several logs. `None` for one log."""
    names = [] if record is None else [_mapping(entry).get("name") for entry in record["logs"]]
    files = [Path(file).name for file in _files(log)]
    given = [report for report in outputs if Path(report.log).name in names]
    if len(given) < 2 and (len(files) >= len(names) or not set(files) & set(names)):
        return None
    missing = [str(name) for name in names if name not in files]
    lacking = f", and not {', '.join(missing)}" if missing else ""
    return (
        f"the result comes from several native logs; the logs in {Path(log).name}{lacking} match the"
        " provenance, and each has a part of the samples"
    )


def _report_of(reports: list[ImportReport], result: Path) -> ImportReport:
    """Return the report of the matching log. If there are several, its name must match."""
    if len(reports) == 1:
        return reports[0]
    key = LogReader(result).frame().specification.task.key
    for report in reports:
        assert report.output is not None
        if stem_of(report.output) == stem_of(result):
            return report
    for report in reports:
        assert report.output is not None
        if LogReader(report.output).frame().specification.task.key == key:
            return report
    return reports[0]


def _options(record: Mapping[str, Any] | None) -> ImportOptions:
    """Return the import options of the result. A run only removed secrets known to it."""
    if record is None:
        return ImportOptions()
    stored = record.get("options")
    if not isinstance(stored, Mapping) or not stored:
        return ImportOptions(redact=False)
    context: Any = stored.get("context")
    events: Any = stored.get("events")
    return ImportOptions(
        context=context if context in get_args(ContextChoice) else "full",
        events=events if events in get_args(EventChoice) else "default",
        redact=stored.get("redact") is not False,
    )


def _files(log: str) -> list[str | Path]:
    if "://" in log:
        return [log]
    if Path(log).is_dir():
        return [file for file in Path(log).rglob("*") if file.is_file()]
    return list(
        dict.fromkeys(file for name in logs_by_engine([log]) for file in native_files(name, Path(log)))
    )


def _digest_findings(log: str, record: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Yield a finding for each log file whose digest differs from the provenance."""
    if record is None:
        return
    stored = {
        entry["name"]: entry
        for entry in record["logs"]
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str)
    }
    digests = [entry for file in _files(log) for entry in log_digests(file) if entry["name"] in stored]
    if not digests and len(stored) == 1 and "://" not in log and Path(log).is_file():
        # The file was renamed.
        digests = [{**entry, "name": next(iter(stored))} for entry in log_digests(log)]
    for entry in digests:
        expected = stored[entry["name"]].get("sha256")
        if isinstance(expected, str) and entry["sha256"] != expected:
            message = f"its digest is {entry['sha256']:.16}…, the provenance says {expected:.16}…"
            yield Finding(message, file=entry["name"])


def _differences(reader: LogReader, imported: LogReader, *, lenient: bool) -> Iterator[Finding]:
    mine, theirs = reader.parts(), imported.parts()
    frames: list[Mapping[str, Any]] = []
    for part in mine:
        if isinstance(part, FramePart):
            frames.append(part.value)
            break
        other = next(theirs, None)
        if other is None or isinstance(other, FramePart):
            yield Finding("the log does not have this sample", part.path, _shown(part))
            if other is not None:
                frames.append(other.value)
                theirs = iter(())
            continue
        yield from _sample_differences(part, other, lenient=lenient)
    for other in theirs:
        if isinstance(other, FramePart):
            frames.append(other.value)
        else:
            yield Finding("the log contains this sample, but the result does not", other.path, _shown(other))
    if len(frames) == 2:
        for place in _COMPARED:
            values = [_at(frame, place) for frame in frames]
            for path, one, two in _unequal(values[0], values[1], place):
                message = f"the result has {_short(one)}, the log {_short(two)}"
                yield Finding(message, path, field=str(path[-1]))


def _sample_differences(part: SamplePart, other: SamplePart, *, lenient: bool) -> Iterator[Finding]:
    unlike = {"events", "metadata", "input_context", _PLACE} if lenient else {_PLACE}
    told = (entry for entry in _unequal(part.value, other.value, ()) if not unlike & set(entry[0]))
    for path, one, two in islice(told, _MOST_PATHS):
        message = f"the result has {_short(one)}, the log {_short(two)}"
        names = [step for step in path if isinstance(step, str)]
        scorer = None
        if "scores" in path:
            place = path[: path.index("scores") + 2]
            score = _at(part.value, place)
            scorer = score.get("scorer_key") if isinstance(score, Mapping) else None
        yield Finding(message, (*part.path, *path), _shown(part), scorer, names[-1] if names else None)


def _shown(part: SamplePart) -> str:
    return json.dumps(part.value.get("sample_id"), ensure_ascii=False, default=str)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _unequal(
    one: Any, two: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for name in dict.fromkeys([*one, *two]):
            yield from _unequal(one.get(name), two.get(name), (*path, name))
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, (item, other) in enumerate(zip(one, two, strict=True)):
            yield from _unequal(item, other, (*path, number))
    elif not same(one, two):
        yield path, one, two


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:59]}…"
