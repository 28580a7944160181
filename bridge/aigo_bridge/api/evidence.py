"""Python API for logs and files: import engine logs, validate files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from aigo_bridge.access.display_paths import refuse_address
from aigo_bridge.access.grants import granted, granting, real_paths
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


def import_logs(
    logs: StrPath | Iterable[StrPath],
    out: StrPath = "out",
    *,
    engine: str | None = None,
    options: ImportOptions | None = None,
) -> tuple[ImportReport, ...]:
    """Convert engine logs from any source into result logs. Damaged and unfinished logs are converted as far
    as possible.

    A log is data: code in it is never executed.

    ```python
    import aigo_bridge

    plan = aigo_bridge.plan_task("examples/capitals")
    aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl", out="logs")
    (report,) = aigo_bridge.import_logs("logs", "evidence")
    assert (report.samples, report.failed, report.exit_code) == (4, 0, 0)
    ```

    Args:
        logs: one or several files, folders, patterns (`logs/*.eval`) or URLs (`s3://…`). Other files that
            a pattern or
            folder also contains are skipped.
        out: folder for the result logs; it is created if needed.
        engine: engine that wrote the logs; `None`: detected from the files.
        options: content to write and to remove; `None`: everything that AI GO expects, secrets redacted.

    Returns:
        One report per log. `output` is the result log for `read_log`; `loss` counts dropped or
        changed data. `exit_code` is 0, 1 if more data was dropped than the options allow, or 3 if only a
            part
        (or nothing) could be read; `reason` explains it.

    Raises:
        UsageError: a location contains no logs, or an option is invalid.
        MissingEngineError: packages for some logs are not installed; the logs of other engines are
            imported.
        OSError: the folder cannot be created.
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


def validate(
    *paths: StrPath,
    root: StrPath | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | Collection[str] = (),
    files: Collection[StrPath] = (),
) -> tuple[ValidationReport, ...]:
    """Check files: tasks, run files, datasets, models, task records, result logs. Nothing is executed.

    ```python
    import aigo_bridge

    (report,) = aigo_bridge.validate("examples/capitals/task.yaml")
    assert (report.kind, report.issues) == ("task", ())
    ```

    Args:
        paths: files of any kind, and folders; all YAML files and result logs in a folder are checked.
        root: folder that referenced files must not leave; `None`: each file's project.
        dialect: rules for YAML files: `default`, or `aigo-3.17` for the rules of that AI GO release.
        env: environment variables that the files may read as `$NAME`: names, or a mapping with values
            that replace
            the process's values.
        files: hidden files, key files and files ignored by git that the files may read.

    Returns:
        One report per file: `kind`, and `issues` with position, message and hint, errors and warnings.
        `is_valid(strict=False)` returns whether the file has no errors.

    Raises:
        UsageError: a path does not exist, or the dialect is unknown.
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
