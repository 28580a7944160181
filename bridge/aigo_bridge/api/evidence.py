"""Evidence from Python: results checked, logs of engines imported, files validated."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from aigo_bridge.access.grants import granted, granting, real_paths
from aigo_bridge.access.mirrored import refuse_address
from aigo_bridge.api.planning import StrPath
from aigo_bridge.codes import Code
from aigo_bridge.engine.registry import load_logs, logs_by_engine
from aigo_bridge.errors import MissingEngineError, UsageError
from aigo_bridge.evaluation.validation import ValidationReport
from aigo_bridge.evaluation.validation import validate as validate_files
from aigo_bridge.importing.log_import import (
    ContextChoice,
    EventChoice,
    ImportOptions,
    ImportReport,
    OutputFormat,
)
from aigo_bridge.reading import Dialect
from aigo_report.tables.results import Results, results_at
from aigo_trust.verification.levels import Verification


def verify(
    result: StrPath,
    *,
    task: StrPath | None = None,
    datasets: Mapping[str, StrPath] | None = None,
    root: StrPath | None = None,
    log: StrPath | None = None,
    rerun_scorers: bool = False,
    replay: StrPath | None = None,
    provenance: StrPath | None = None,
    attestation: StrPath | None = None,
    key: StrPath | None = None,
    identity: str | None = None,
    issuer: str | None = None,
    trust_config: StrPath | None = None,
) -> Verification:
    """Check a result level by level: valid log, numbers, scores, answers, digests, native log, signature.

    Nothing that stands in a result is run: code and templates are those of your own task.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    checked = aigo_bridge.verify(outcome.result, task="examples/capitals", rerun_scorers=True)
    verdicts = {level.name: level.verdict for level in checked.levels}
    assert verdicts["metrics"] == verdicts["scores"] == verdicts["digests"] == "proved"
    assert checked.exit_code == 0  # no level has failed
    assert checked.summary.startswith("partly verified")  # neither a native log nor a key was given
    ```

    Args:
        result: a result log, one of a run file (`run.yaml#KEY`), a bundle of `aigo-bridge bundle`, or one
            sample of `attest --disclose`.
        task: your own task (of a run file `FILE#KEY`) that the result is of.
        datasets: data set key → file, where the task's own are not to be taken.
        root: folder that the task's files may lie in; `None`: its own.
        log: the native log that the result is of.
        rerun_scorers: with `task`, run its scorers and metrics in Python on the stored outputs.
        replay: the recording of the run (a cassette): the model's answers are compared with it, and the
            replies of judges are taken from it.
        provenance: of the result; `None`: the file beside it, if there is one.
        attestation: of the result; `None`: the file beside it, if there is one.
        key: public key (PEM) that has to have signed the attestation.
        identity: who has to have signed it without a key: an e-mail address, or the address of a workflow.
        issuer: with `identity`, the provider that vouches for it.
        trust_config: with `identity`, keys of other services than sigstore's public ones.

    Returns:
        `summary` is the verdict in one line. `levels` have each their `verdict`, `findings` and the `reason`
        why they cannot be checked; `reliable` says what still holds if one has failed. `exit_code` is 1 if a
        level has failed, 3 if an argument was given for a level that could not be checked, otherwise 0.

    Raises:
        UsageError: a file is not there, or an argument makes no sense.
        SpecError: the task cannot be planned.
        DatasetError: its rows cannot be used.
    """
    from aigo_trust.verification.materials import Materials, identity_of
    from aigo_trust.verification.opening import verify_one

    def path(file: StrPath | None) -> Path | None:
        return None if file is None else Path(file)

    return verify_one(
        Path(result),
        Materials(
            task=None if task is None else os.fspath(task),
            datasets={name: str(Path(file).resolve()) for name, file in (datasets or {}).items()},
            root=None if root is None else str(Path(root).resolve()),
            log=None if log is None else os.fspath(log),
            rerun_scorers=rerun_scorers,
            replay=path(replay),
            provenance=path(provenance),
            attestation=path(attestation),
            key=path(key),
            identity=identity_of(identity, issuer, path(trust_config)),
        ),
    )


def import_logs(
    logs: StrPath | Iterable[StrPath],
    out: StrPath = "out",
    *,
    engine: str | None = None,
    options: ImportOptions | None = None,
) -> tuple[ImportReport, ...]:
    """Turn logs of engines, whoever wrote them, into result logs; damaged and unfinished ones as far as they
    go.

    A log is data: nothing that stands in it is run.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl", out="logs")
    (report,) = aigo_bridge.import_logs("logs", "evidence")
    assert (report.samples, report.failed, report.exit_code) == (4, 0, 0)
    ```

    Args:
        logs: files, folders, patterns (`logs/*.eval`) or URLs (`s3://…`), one or several. What a pattern or a
            folder has besides logs is passed over.
        out: folder for the result logs; it is made if need be.
        engine: that wrote the logs; `None`: found out from the files.
        options: what is written and what is taken out; `None`: all that AI GO expects, secrets redacted.

    Returns:
        One report per log: `output` is the result log for `read_log`, `loss` counts what was dropped or
        changed, `exit_code` is 0, 1 where more was dropped than the options allow, or 3 where only a part
        (or nothing) could be read; `reason` says why.

    Raises:
        UsageError: a location has no logs, or an option makes no sense.
        MissingEngineError: packages that logs need are not installed; the logs of other engines are imported.
        OSError: the folder cannot be made.
    """
    refuse_address(out, "out")
    options = options or ImportOptions()
    _check(options)
    locations = [str(logs)] if isinstance(logs, str | os.PathLike) else [str(log) for log in logs]
    by_engine = logs_by_engine(locations, engine)
    importers = [(load_logs(name), of_engine) for name, of_engine in by_engine.items()]
    reports: list[ImportReport] = []
    missing: list[MissingEngineError] = []
    for importer, of_engine in importers:
        try:
            importer.import_logs(of_engine, Path(out), options, reports.append)
        except MissingEngineError as error:
            missing.append(error)
    if missing:
        raise MissingEngineError("; ".join(map(str, missing)))
    return tuple(reports)


def _check(options: ImportOptions) -> None:
    choices = {"context": ContextChoice, "output_format": OutputFormat, "events": EventChoice}
    for name, kinds in choices.items():
        value, known = getattr(options, name), get_args(kinds)
        if value not in known:
            raise UsageError(
                f"{name}: found {value!r}, expected one of {', '.join(map(repr, known))}",
                code=Code.WRONG_OPTION,
            )
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"jobs: found {options.jobs}, expected at least 1", code=Code.WRONG_OPTION)
    options.redaction()


def open_results(*locations: StrPath) -> Results:
    """Results as tables, for data frames. Nothing is read yet; each table reads the results as it is asked
    for, sample by sample.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
    results = aigo_bridge.open_results(outcome.result)
    (metric,) = results.metrics()
    assert (metric["name"], metric["text"], metric["scored"]) == ("Accuracy", "0.75", 4)
    assert [trial["answer"] for trial in results.trials()] == ["Oslo", "Lima", "Sydney", "Tokyo"]
    assert results.to_pandas("scores").query("counted")["value"].mean() == 0.75
    ```

    Args:
        locations: result logs (also `.gz`, `.zst`), folders of them, patterns (`out/*.tasklog.json`),
            summaries of evaluations (`evaluation.json`), run files with task result logs (`run.yaml`, or
            `run.yaml#KEY` for one task specification).

    Returns:
        The results: `results()`, `metrics()`, `samples()`, `trials()`, `scores()` and `events()` are tables.
        Iterating over a table gives its rows as mappings; `to_pandas()`, `to_polars()` and `to_arrow()` give
        all of it at once, `batches()` in batches of Arrow. These raise `EvidenceError` where a result cannot
        be read, and `UsageError` where a package is missing.

    Raises:
        UsageError: there is nothing at one of the locations.
        EvidenceError: the summary of an evaluation cannot be read.
        SpecError: a run file is invalid, or its task result logs are missing or outside its folder.
    """
    for location in locations:
        refuse_address(location, "locations")
    return results_at(locations)


def validate(
    *paths: StrPath,
    root: StrPath | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | Collection[str] = (),
    files: Collection[StrPath] = (),
) -> tuple[ValidationReport, ...]:
    """What is wrong with files: tasks, run files, data sets, models, task records, result logs. Nothing is
    run.

    ```python
    import aigo_bridge

    (report,) = aigo_bridge.validate("examples/capitals/task.yaml")
    assert (report.kind, report.issues) == ("task", ())
    ```

    Args:
        paths: files of any kind, and folders, whose YAML files and result logs are all looked at.
        root: folder that files which they name may not leave; `None`: each file's project.
        dialect: rules for YAML files: `default`, or `aigo-3.17` for what that release of AI GO takes.
        env: environment variables that the files may read as `$NAME`: names, or a mapping with values in
            place of the process's.
        files: hidden files, key files and files ignored by git that the files may read.

    Returns:
        One report per file: `kind`, and `issues` with place, message and hint, errors and warnings;
        `is_valid(strict=False)` says whether there are errors.

    Raises:
        UsageError: a path does not exist, or there is no such dialect.
    """
    if dialect not in get_args(Dialect):
        raise UsageError(
            f"dialect: found {dialect!r}, expected {' or '.join(map(repr, get_args(Dialect)))}",
            code=Code.WRONG_OPTION,
        )
    for path in paths:
        refuse_address(path, "paths")
    if isinstance(env, str):
        raise UsageError(f"env: found the text {env!r}, expected names or a mapping", code=Code.WRONG_OPTION)
    allowed = replace(
        granted(),
        variables=granted().variables | set(env),
        values={**granted().values, **(env if isinstance(env, Mapping) else {})},
        files=granted().files | real_paths(files),
    )
    reach = None if root is None else Path(root).resolve()
    with granting(allowed):
        return tuple(validate_files(map(Path, paths), root=reach, dialect=dialect))
