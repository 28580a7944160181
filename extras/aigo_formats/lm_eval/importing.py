"""`aigo-bridge import` for results of lm-evaluation-harness.

Each task of a run becomes a separate result log, `<task>_<date>.tasklog.json`, with its loss report. Groups
are averages over tasks. They are stored in the results of their tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from aigo_bridge.text.plurals import plural
from aigo_formats.lm_eval.frame import ENGINE, filters_of, frame_of
from aigo_formats.lm_eval.header import HarnessHeader, read_header
from aigo_formats.lm_eval.locate import HarnessFiles, eval_files, find_runs, run_files
from aigo_formats.lm_eval.rows import SamplesFile
from aigo_formats.lm_eval.samples import HarnessMapper

NO_SAMPLES = "metrics only: releases of the harness before 0.4 do not write samples"


class LmEvalResults:
    """Importer of lm-evaluation-harness results."""

    expected = "lm-evaluation-harness results (results_<date>.json, samples_<task>_<date>.jsonl)"

    def files(self, location: str) -> Sequence[str]:
        """Return the harness files at a location."""
        return eval_files(location)

    def parts(self, location: str) -> Sequence[str]:
        """Return all files of a file's run, starting with that file."""
        return run_files(location)

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Import results with one report per finished task. Return the worst exit code.

        Raises:
            UsageError: a location does not contain such files, or an option is wrong.
        """
        refuse_parquet("results of lm-evaluation-harness", locations, options)
        options.redaction()
        return import_each(
            find_runs(locations),
            out,
            tell,
            imported=lambda run, taken: import_run(run, out, options, taken),
            subject="the results",
        )


def import_run(
    run: HarnessFiles, out: Path, options: ImportOptions, taken: set[str]
) -> Iterator[ImportReport]:
    """Import one run, task by task.

    Args:
        run: files of the run.
        out: folder for the result logs.
        options: import options.
        taken: names of files written so far. The run's files are added.
    """
    if options.recompute is not None:
        yield not_recomputed(run.location, None)
        return
    header, damage, secrets = HarnessHeader(), list[Damage](), options.redaction()
    if run.results is None:
        damage.append(Damage(run.location, None, "no results file: metrics and configuration are unknown"))
    else:
        try:
            header = read_header(run.results, options.bounds, secrets, redact=options.redact)
        except EvidenceError as error:
            damage.append(Damage(run.results, None, str(error)))
    tasks = _tasks(run, header)
    if not tasks:
        yield nothing_imported(
            run.location, damage or [Damage(run.location, None, "the results do not contain a task")]
        )
    for task, samples in tasks:
        # Secrets in the results file count as found in every task's part of it.
        own_secrets = options.redaction()
        own_secrets.found.update(secrets.found)
        stem = options.stem(shortened(f"{task}_{run.date}" if run.date else task), taken, "task")
        try:
            yield _write_task(run, header, task, samples, out / stem, options, own_secrets, damage)
        except OSError as error:
            raise UsageError(f"cannot write to {str(out)!r}: {error}", code=Code.UNUSABLE_OUTPUT) from error


def _tasks(run: HarnessFiles, header: HarnessHeader) -> list[tuple[str, str | None]]:
    """Return every task of the run with its samples, in the order of the results. Tasks without metrics come
    last.
    """
    names = header.tasks
    tasks = [(task, run.samples_of(task, names)) for task in names]
    matched = {path for _, path in tasks if path is not None}
    tasks += [(task, path) for task, path in run.samples.items() if path not in matched]
    if run.only is None:
        return tasks
    named = {run.samples[name] for name in run.only if name in run.samples}
    return [(task, path) for task, path in tasks if path in named]


def _write_task(
    run: HarnessFiles,
    header: HarnessHeader,
    task: str,
    location: str | None,
    target: Path,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
) -> ImportReport:
    """Write `<target>.tasklog.<format>` and `<target>.loss.json`. `location` is the samples file, if any."""
    loss, damage = LossReport(), list(damage)
    mapper = HarnessMapper(
        run=f"{run.date}/{task}",
        source=location or run.location,
        model=header.model,
        options=options,
        loss=loss,
    )
    report = write_result_log(
        f"{run.location} ({task})",
        target,
        _samples(run, header, task, location, mapper, options, redaction, damage),
        lambda: frame_of(run, header, task, mapper.totals, mapper.scores.names, damage, loss, options.bounds),
        totals=mapper.totals,
        damage=damage,
        loss=loss,
        options=options,
        redaction=redaction,
    )
    if location is None and header.is_old:
        report = replace(report, notes=(NO_SAMPLES,))
    report = report.with_exit_code(options.max_loss)
    report.write_loss()
    return write_import_provenance(report, ENGINE, [run.results, location], options)


def _samples(
    run: HarnessFiles,
    header: HarnessHeader,
    task: str,
    location: str | None,
    mapper: HarnessMapper,
    options: ImportOptions,
    redaction: Redactor,
    damage: list[Damage],
) -> Iterator[bytes]:
    """Yield the documents as JSON. Damage skips a document or ends the iteration."""
    where = f"{run.location}: {task}"
    if location is None and header.is_old:
        return
    if location is None:
        damage.append(Damage(where, None, "no samples: the harness only writes them with --log_samples"))
        return
    num_damage = len(damage)
    file = SamplesFile(location, filters_of(header.config(task)), options.bounds, damage.append)
    try:
        for document in file.documents():
            if len(damage) - num_damage > options.bounds.damaged:
                damage.append(Damage(location, None, "the rest is not read (bound 'damaged')"))
                break
            try:
                yield dumps(mapper.sample(document))
            except MALFORMED as error:
                place = f"{location}: document {document.sample_id}"
                damage.append(Damage(place, None, redaction.text(f"malformed: {error}")))
    except EvidenceError as error:
        damage.append(Damage(location, None, str(error)))
    if file.renamed:
        mapper.loss.changed["document with a duplicate id: numbered"] += file.renamed
    if len(damage) == num_damage and run.results is not None:
        damage += [Damage(where, None, reason) for reason in _contradictions(header, task, file, mapper)]


def _contradictions(
    header: HarnessHeader, task: str, file: SamplesFile, mapper: HarnessMapper
) -> Iterator[str]:
    """Yield the contradictions between the results and the samples."""
    digest: Any = header.part("task_hashes", task)
    is_proved = isinstance(digest, str) and digest == file.digest
    if isinstance(digest, str) and file.digest is not None and not is_proved:
        yield "the samples do not match the results: their digest differs (task_hashes)"
    counts: Any = header.part("n-samples", task)
    count = counts.get("effective") if isinstance(counts, dict) else None
    # For runs with --samples, some releases store the number of all documents.
    if isinstance(count, int) and count != mapper.totals.samples and not is_proved:
        yield (
            f"the results cover {plural(count, 'document')}, but the samples file has {mapper.totals.samples}"
        )
    yield from mapper.scores.disagreements(header.metrics(task), header.aggregations(task))
