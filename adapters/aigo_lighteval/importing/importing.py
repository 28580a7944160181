"""lighteval's part of `aigo-bridge import`. It imports results from any source, and restores aigo-bridge's
own runs unchanged.

Each task of a run becomes a separate result log, `<task>_<date>.tasklog.json`, with its loss report.
lighteval is not required.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import write_import_provenance
from aigo_bridge.errors import BridgeError, EvidenceError, UsageError
from aigo_bridge.evaluation.bridge_logs import own_report
from aigo_bridge.evaluation.writing import write_result
from aigo_bridge.importing.log_import import (
    UNMAPPED,
    Damage,
    ImportOptions,
    ImportReport,
    LossReport,
    not_recomputed,
    unmapped,
)
from aigo_bridge.importing.results import (
    MALFORMED,
    import_each,
    nothing_imported,
    refuse_parquet,
    shortened,
    write_result_log,
)
from aigo_bridge.process.pool import Worker
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.text.json_text import dumps
from aigo_lighteval.importing.frame import frame_of, functions_of
from aigo_lighteval.importing.header import Header, own_part, plain_name, read_header
from aigo_lighteval.importing.locate import RunFiles, find_runs, log_files, result_files, run_files
from aigo_lighteval.importing.rows import PromptSettings
from aigo_lighteval.importing.samples import DocumentMapper
from aigo_lighteval.running.evidence import BLOCK, read
from aigo_lighteval.versions import require_parquet


def run_import(
    locations: Sequence[str], out: Path, options: ImportOptions, tell: Callable[[ImportReport], None]
) -> int:
    """Import results with one report per finished task. Return the worst exit code (see `ImportReport`).

    Raises:
        UsageError: a location does not contain results, or an option is wrong or not supported here.
        MissingEngineError: details cannot be read here. Runs without details are imported.
    """
    refuse_parquet("lighteval results", locations, options)
    options.redaction()
    with Worker() as worker:
        return import_each(
            find_runs(locations),
            out,
            tell,
            imported=lambda run, taken: import_run(run, out, options, taken, worker),
            subject="the results",
        )


class LightevalLogs:
    """Importer of lighteval's output files."""

    expected = "lighteval results (results_<date>.json, details_<task>_<date>.parquet)"

    files = staticmethod(result_files)
    parts = staticmethod(run_files)
    import_logs = staticmethod(run_import)


def import_run(
    run: RunFiles, out: Path, options: ImportOptions, taken: set[str], worker: Worker
) -> Iterator[ImportReport]:
    """Import one run, task by task.

    Args:
        run: files of the run.
        out: folder for the result logs.
        options: import options.
        taken: names of files written so far. The run's files are added.
        worker: process that reads the footers of details.

    Raises:
        MissingEngineError: the details cannot be read here.
    """
    if run.details:
        require_parquet(run.location)
    header, damage, secrets = Header(), list[Damage](), options.redaction()
    if run.results is None:
        damage.append(Damage(run.location, None, "no results file: metrics and configuration are unknown"))
    else:
        try:
            content, header = read_header(run.results, options.bounds, secrets, redact=options.redact)
        except (EvidenceError, UsageError) as error:
            damage.append(Damage(run.results, None, str(error)))
        else:
            report, reason = _own_report(run.results, content, out, options, taken)
            if report is not None:
                yield report
                return
            if reason is not None:
                damage.append(Damage(run.results, None, reason))
        if options.recompute is not None:
            yield not_recomputed(run.location, str(damage[0]) if damage else None)
            return
    tasks = _tasks(run, header)
    full_header, header = header, header.within(options.bounds, len(tasks))
    if header is not full_header:
        reason = "the configuration is too large to copy into the result of every task (bound 'growth')"
        damage.append(Damage(run.location, None, reason))
    if not tasks:
        yield nothing_imported(
            run.location, damage or [Damage(run.location, None, "the results do not contain a task")]
        )
    for task, details in tasks:
        # Secrets in the results file count as found in every task's part of it.
        own_secrets = options.redaction()
        own_secrets.found.update(secrets.found)
        stem = options.stem(shortened(f"{task}_{run.date}" if run.date else task), taken, "task")
        try:
            yield _write_task(run, header, task, details, out / stem, options, own_secrets, damage, worker)
        except OSError as error:
            raise UsageError(f"cannot write to {str(out)!r}: {error}", code=Code.UNUSABLE_OUTPUT) from error


def _tasks(run: RunFiles, header: Header) -> list[tuple[str, str | None]]:
    """Return every task of the run with its details, in the order of the results file. Tasks without metrics
    come last.
    """
    unmatched = dict(run.details)
    plain: dict[str, list[str]] = {}
    for name in unmatched:
        plain.setdefault(plain_name(name), []).append(name)
    tasks: list[tuple[str, str | None]] = []
    for task in header.task_names():
        same = plain.get(plain_name(task), [])
        name = task if task in unmatched else same[0] if len(same) == 1 else ""
        if run.only is None or name in run.only:
            tasks.append((task, unmatched.pop(name, None)))
    return tasks + [(task, path) for task, path in unmatched.items() if run.only is None or task in run.only]


def _own_report(
    location: str, content: dict[str, Any], out: Path, options: ImportOptions, taken: set[str]
) -> tuple[ImportReport | None, str | None]:
    """Restore a run of aigo-bridge unchanged and return its report. For any other run, return no report. If
    the restored run must be salvaged, also return the reason.
    """
    if BLOCK not in content or "://" in location:
        return None, None
    seen = set(taken)
    try:
        return _import_own(location, out, options, taken), None
    except Exception as error:  # noqa: BLE001  # a damaged run, or one of another release, is imported like any other run
        taken.intersection_update(seen)
        is_told = isinstance(error, BridgeError)
        return None, str(error) if is_told else unmapped("the results file", error)


def _import_own(location: str, out: Path, options: ImportOptions, taken: set[str]) -> ImportReport:
    path = Path(location)
    evidence = read(path)
    own_plan = None
    if options.recompute is not None:
        try:
            own_plan = options.recompute(evidence.plan)
        except EvidenceError as error:
            return not_recomputed(location, str(error))
    stem = options.stem(shortened(path.name.removesuffix(".json")), taken, "run")
    target = out / f"{stem}.tasklog.{options.output_format}"
    written = write_result(evidence, target, engine="lighteval", own=own_plan)
    report = own_report(location, target, evidence, written)
    return write_import_provenance(report, "lighteval", list(map(str, log_files(path))), options)


# Import of one task

Samples = Callable[[DocumentMapper, list[Damage]], Iterator[bytes]]
"""Callable that yields a task's mapped documents as JSON, and adds unreadable ones to the damage."""


def _write_task(
    run: RunFiles,
    header: Header,
    task: str,
    details: str | None,
    target: Path,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
    worker: Worker,
) -> ImportReport:
    """Write `<target>.tasklog.<format>` and `<target>.loss.json` (see `write_documents`). `details` can be
    missing.
    """
    where = f"{run.location}: {task}"

    def samples(mapper: DocumentMapper, damage: list[Damage]) -> Iterator[bytes]:
        """Yield the documents as JSON. Damage skips a document or ends the iteration."""
        if details is None:
            damage.append(Damage(where, None, "no details: lighteval only writes them with --save-details"))
            return
        num_damage = len(damage)
        try:
            require_parquet(details)
            from aigo_lighteval.importing.details import Details

            rows = Details(details, options.bounds, damage.append, worker)
            for document in rows.documents():
                try:
                    yield dumps(mapper.sample(document))
                except MALFORMED as error:
                    place = f"{details}: document {document.sample_id}"
                    damage.append(Damage(place, None, unmapped("the document", error), UNMAPPED))
            if rows.renamed:
                mapper.loss.changed["document with a duplicate id: numbered"] += rows.renamed
        except EvidenceError as error:
            damage.append(Damage(details, None, str(error)))
        if len(damage) == num_damage:
            results, declared = own_part(header.results, task), own_part(header.tasks, task)
            reasons = mapper.scores.disagreements(results, functions_of(declared))
            damage += [Damage(where, None, reason) for reason in reasons]

    report = write_documents(
        run, header, task, details or run.location, samples, target, options, redaction, damage
    )
    report = report.with_exit_code(options.max_loss)
    report.write_loss()
    return write_import_provenance(report, "lighteval", [run.results, details], options)


def write_documents(
    run: RunFiles,
    header: Header,
    task: str,
    source: str,
    samples: Samples,
    target: Path,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
    *,
    amend: Callable[[dict[str, Any]], None] = lambda frame: None,
    clean: bool = False,
) -> ImportReport:
    """Write `<target>.tasklog.<format>`.

    Args:
        run: files of the run.
        header: content of the results file.
        task: task name.
        source: location of the documents.
        samples: callable that yields the documents.
        target: path of the written files without suffixes.
        options: import options.
        redaction: secrets to remove.
        damage: unreadable parts of the run as a whole.
        amend: callable that adds content to the frame that the files cannot store.
        clean: whether to remove secrets known to this process, even if other redaction is off.
    """
    loss = LossReport()
    damage = list(damage)
    mapper = DocumentMapper(
        run=f"{run.date}/{task}",
        source=source,
        model=header.model or run.model,
        prompts=prompting(header),
        options=options,
        loss=loss,
    )
    num_damage = len(damage)

    def frame() -> dict[str, Any]:
        frame = frame_of(run, header, task, mapper.totals, mapper.scores.names, damage, loss)
        amend(frame)
        if not mapper.totals.samples and len(damage) == num_damage:
            frame["evidence"]["samples"] = []
        return frame

    return write_result_log(
        f"{run.location} ({task})",
        target,
        samples(mapper, damage),
        frame,
        totals=mapper.totals,
        damage=damage,
        loss=loss,
        options=options,
        redaction=redaction,
        clean=clean,
    )


def prompting(header: Header) -> PromptSettings:
    """Return the prompt settings of the model from its configuration."""
    prompt = header.model_config.get("system_prompt")
    chat = header.model_config.get("override_chat_template") is not False
    return PromptSettings(prompt if isinstance(prompt, str) else None, chat)
