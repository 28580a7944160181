"""Verification of a result, level by level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import BridgeError, EvidenceError, Issue, UsageError, dotted
from aigo_bridge.results.reading import FramePart, LogReader
from aigo_bridge.results.validating import validate_log
from aigo_bridge.text.plurals import plural
from aigo_trust.provenance.record import provenance_file, read_provenance
from aigo_trust.provenance.texts import ResultTexts, read_texts
from aigo_trust.verification.answers import check_answers
from aigo_trust.verification.contents import compare_task, provenance_findings, unaltered_samples
from aigo_trust.verification.levels import TITLES, Finding, Level, Name, Verification, level, merged
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.numbers import check_numbers
from aigo_trust.verification.recordings import check_cassette
from aigo_trust.verification.signature import check_signature

if TYPE_CHECKING:
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_trust.recording.replay import Cassette
    from aigo_trust.verification.user_plan import OwnTask


def verify(result: Path, materials: Materials) -> Verification:
    """Verify a result.

    Code inside the result, its log or its provenance is never executed. Code and templates come from the
    user's own task, if one is given.

    Raises:
        UsageError: the file is not a result, or an option is not applicable.
        SpecError, DatasetError: the user's own task cannot be planned.
    """
    if materials.rerun_scorers and materials.task is None:
        raise UsageError(
            "--rerun-scorers runs the code of your task: name it with --task", code=Code.MISSING_ARGUMENT
        )
    if materials.replay is not None and not materials.replay.is_file():
        raise UsageError(
            f"--replay: cassette {str(materials.replay)!r} does not exist", code=Code.NOTHING_THERE
        )
    reader = LogReader(result)
    if not result.is_file():
        raise UsageError(f"result {str(result)!r} does not exist", code=Code.NOTHING_THERE)
    issues = [issue for issue in validate_log(result) if issue.severity == "error"]
    if issues:
        return Verification(result, _without_log(issues, result, materials))
    texts = read_texts(result)
    frame, raw = _frames(reader)
    record, damage = _record(result, materials)
    own = None
    if materials.task is not None:
        from aigo_trust.verification.user_plan import own_task

        own = own_task(materials.task, result, frame, record, materials)
    plan = None if own is None else own.plan
    native = level("native", [], unchecked="no native log was given (--log)")
    if materials.log is not None:
        from aigo_trust.verification.native import check_native

        native = check_native(reader, materials.log, record)
    levels = [
        level("log", [], notes=[plural(len(texts.samples), "sample")]),
        *_computed(reader, frame, raw, plan, materials),
        check_answers(reader, frame, materials.replay, record),
        _with_cassette(_digests(texts, record, damage, own, frame), materials, record),
        native,
        check_signature(texts, result, materials.attestation, materials.signer, materials.provenance),
    ]
    return Verification(result, marked_levels(levels, materials))


def marked_levels(levels: Iterable[Level], materials: Materials) -> tuple[Level, ...]:
    """Return the levels, marked if the user provided material for them."""
    asked: dict[Name, bool] = {
        "metrics": materials.rerun_scorers,
        "scores": materials.rerun_scorers,
        "answers": materials.replay is not None,
        "digests": materials.task is not None or materials.provenance is not None,
        "native": materials.log is not None,
        "signature": not materials.signer.is_anyone or materials.attestation is not None,
    }
    return tuple(replace(item, is_asked=asked.get(item.name, False)) for item in levels)


def _without_log(issues: list[Issue], result: Path, materials: Materials) -> tuple[Level, ...]:
    """Return the levels of an invalid log. Its digests may still locate the modification."""
    findings = [
        Finding(issue.message, tuple(issue.path), field=dotted(issue.path) or None) for issue in issues
    ]
    levels = {name: level(name, [], unchecked="the file is not a valid result log") for name in TITLES}
    levels["log"] = level("log", findings)
    try:
        texts = read_texts(result)
        record, damage = _record(result, materials)
        levels["digests"] = _with_cassette(_digests(texts, record, damage, None, None), materials, record)
    except BridgeError:
        pass
    return tuple(levels.values())


def _frames(reader: LogReader) -> tuple[TaskResultLog, Mapping[str, Any]]:
    for part in reader.parts():
        if isinstance(part, FramePart):
            return reader.typed_frame(part), part.value
    raise AssertionError("parts() ends with the frame or raises")


def _record(result: Path, materials: Materials) -> tuple[dict[str, Any] | None, EvidenceError | None]:
    """Return the provenance, or the error from reading it."""
    file = materials.provenance or provenance_file(result)
    if materials.provenance is None and not file.is_file():
        return None, None
    try:
        return read_provenance(file), None
    except EvidenceError as error:
        return None, error


def _computed(
    reader: LogReader,
    frame: TaskResultLog,
    raw: Mapping[str, Any],
    own: TaskPlan | None,
    materials: Materials,
) -> tuple[Level, Level]:
    """Return the levels of the metrics and of the scores."""
    if own is None or not materials.rerun_scorers:
        reason = "only with --task and --rerun-scorers: code in a result is never executed"
        of_own = None if own is None or own.entity == "system" else own
        numbers = check_numbers(reader, frame, raw, of_own, None)
        return numbers, level("scores", [], unchecked=reason)
    from aigo_bridge.execution.permissions import resolve_permissions, snippet_host
    from aigo_trust.verification.rescoring import check_scores

    own = resolve_permissions(own)
    with closing(snippet_host(own)) as host, _cassette(materials.replay) as cassette:
        numbers = check_numbers(reader, frame, raw, None if own.entity == "system" else own, host)
        return numbers, check_scores(reader, own, host, cassette)


@contextmanager
def _cassette(path: Path | None) -> Iterator[Cassette | None]:
    """Yield the readable part of a cassette. Its damaged lines are reported together with its digests."""
    from aigo_trust.recording.replay import Cassette

    with ExitStack() as stack:
        cassette = None
        with suppress(EvidenceError):
            cassette = None if path is None else stack.enter_context(closing(Cassette(path)))
        yield cassette


def _with_cassette(digests: Level, materials: Materials, record: Mapping[str, Any] | None) -> Level:
    if materials.replay is None:
        return digests
    check = check_cassette(materials.replay, record)
    failure = "the recording is not the one of the run"
    return merged(digests, check.findings, check.notes, check.unchecked, failure=failure)


def _digests(
    texts: ResultTexts,
    record: Mapping[str, Any] | None,
    damage: EvidenceError | None,
    own: OwnTask | None,
    frame: TaskResultLog | None,
) -> Level:
    findings: list[Finding] = []
    notes: list[str] = []
    intact: list[str] = []
    unchecked = failure = None
    if damage is not None:
        failure = "its provenance was altered"
        findings += [
            Finding(issue.message, tuple(issue.path), file=provenance_file(texts.path).name)
            for issue in damage.issues
        ]
    elif record is None:
        unchecked = f"the provenance is missing (expected next to it: {provenance_file(texts.path).name})"
    else:
        run = record.get("run")
        made_by = run.get("made_by") if isinstance(run, Mapping) else None
        findings += provenance_findings(texts, record)
        num_samples, num_unaltered = len(texts.samples), unaltered_samples(texts, record)
        if findings:
            intact.append(f"{num_unaltered} of {plural(num_samples, 'sample')} are as `{made_by}` wrote them")
        else:
            intact.append(f"the file is as `{made_by}` wrote it, by its provenance")
            notes.append(f"{plural(num_samples, 'sample')} and all other data are as `{made_by}` wrote them")
    is_altered = bool(findings)
    if own is not None:
        engine = getattr(getattr(frame, "specification", None), "evaluated_entity", None)
        of_task, of_rows = compare_task(texts, own, getattr(engine, "adapter_id", None), record)
        findings += of_task
        unchecked = unchecked or of_rows
        rows = "" if of_rows else " and rows"
        statement = f"task{',' if rows else ' and'} config{rows} match the given task"
        if not of_task:
            (intact if is_altered else notes).append(statement)
        elif not is_altered:
            failure = "it is not a result of the given task"
    elif record is not None and not is_altered:
        notes.append("task, config and rows come from the result (compare with your own: --task)")
    return level("digests", findings, notes=notes, unchecked=unchecked, failure=failure, intact=intact)
