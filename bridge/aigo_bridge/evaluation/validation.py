"""Validation of any file that this project supports. The kind of file is detected from its content.

For a YAML file, validation also checks whether it can run: it performs the checks that `run` makes before
a model call, without a model, a snippet or the network. Both use the same planning code, so a valid file
starts, and an invalid file gets the same messages and positions from both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson

from aigo_bridge.access.existence import is_file, is_folder
from aigo_bridge.access.grants import Uses, VariableUse, outside_files, recording
from aigo_bridge.access.opening import naming
from aigo_bridge.access.snapshot import Snapshot
from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, EvidenceError, Issue, SpecError, TemplateError, UsageError
from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.jsonl_spec import is_like_log, is_record_file, no_records, other_content, validate_file
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning.planning import plan_task
from aigo_bridge.planning.rows import Surroundings, check_entity, entity_rows, is_at_hand, planned_rows
from aigo_bridge.reading import Dialect, Document, Kind, environment
from aigo_bridge.reading.locating import TASK_FILES, shipped_tasks
from aigo_bridge.reading.reader import FileReport, validate_paths
from aigo_bridge.results.log_files import open_for_reading
from aigo_bridge.spec.base import has_marker
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import RunSpec
from aigo_bridge.spec.task import BenchmarkDefinition, TaskSpec
from aigo_bridge.text.plurals import plural

YAML_SUFFIXES = (".yaml", ".yml")
JSON_ENDINGS = tuple(name + packed for name in (".json", ".jsonl") for packed in ("", ".gz", ".zst"))
HEAD = 64 * 1024
"""Bytes of a JSON file to read for detecting its kind."""


@dataclass(frozen=True)
class ValidationReport:
    """Problems of one file."""

    file: Path
    kind: str
    """Kind of file: `task`, `run`, `tasklog`, `jsonl` …; `unknown` if it was not detected."""
    issues: tuple[Issue, ...]
    variables: tuple[VariableUse, ...] = ()
    """Environment variables that the file or the files it uses name."""
    addresses: tuple[str, ...] = ()
    """Addresses and hubs from which a run would download rows."""
    needs: str | None = None
    """Permissions that the task code needs outside its sandbox and that the user must allow; `None` if it
    needs none.
    """
    files: tuple[str, ...] = ()
    """Real paths of files outside the folder of the file that it reads."""

    def __repr__(self) -> str:
        errors = sum(issue.severity == "error" for issue in self.issues)
        warnings = len(self.issues) - errors
        parts = [
            plural(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number
        ]
        return f"<ValidationReport of {str(self.file)!r}: {self.kind}, {', '.join(parts) or 'valid'}>"

    def is_valid(self, *, strict: bool) -> bool:
        """Return whether the file is free of errors and, with `strict`, of warnings."""
        return not any(strict or issue.severity == "error" for issue in self.issues)


def validate(
    paths: Iterable[Path], *, root: Path | None = None, dialect: Dialect = "default"
) -> Iterator[ValidationReport]:
    """Yield one report per file. Folders are searched for YAML files, task records (`tasks.jsonl`, as in `run
    FOLDER`) and result logs (`*.tasklog.json…`).

    Args:
        paths: files and folders.
        root: folder that includes may be read from; `None` for the project of each file, as in a run.
        dialect: rules for YAML files.

    Raises:
        UsageError: a path does not exist.
    """
    named = list(paths)
    reports = _reports(named, root, dialect)
    snapshot = Snapshot()
    while True:
        with (
            naming(named),
            snapshot,
        ):  # Leave the snapshot while the caller has control, because it may change files.
            report = next(reports, None)
        if report is None:
            return
        yield report


def _reports(paths: Iterable[Path], root: Path | None, dialect: Dialect) -> Iterator[ValidationReport]:
    for path in paths:
        if is_folder(path):
            yield from _folder(path, root, dialect)
        elif is_file(path):
            yield _file(path, root, dialect)
        elif shipped := shipped_tasks().get(path.as_posix()):
            yield _file(shipped, root, dialect)
        else:
            raise UsageError(f"file or folder {str(path)!r} does not exist", code=Code.NOTHING_THERE)


def _folder(folder: Path, root: Path | None, dialect: Dialect) -> Iterator[ValidationReport]:
    for report in validate_paths([folder.absolute()], root=root, dialect=dialect, env=environment()):
        if not report.skipped:
            yield _yaml(report, root, dialect)
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if ".tasklog.json" in name:
                yield _log(Path(directory, name))
            elif name in TASK_FILES and is_record_file(path := Path(directory, name)):
                yield _jsonl_spec(path)


def _file(path: Path, root: Path | None, dialect: Dialect) -> ValidationReport:
    name = path.name.lower()
    if name.endswith(JSON_ENDINGS) and _is_log(path):
        return _log(path)
    if is_record_file(path):
        return _jsonl_spec(path)
    (report,) = validate_paths([path.absolute()], root=root, dialect=dialect, env=environment())
    return _yaml(report, root, dialect)


def _yaml(report: FileReport, root: Path | None, dialect: Dialect) -> ValidationReport:
    """Return the report of a YAML file. For a valid file, also check whether it can run.

    In the 3.17 dialect, such problems are warnings, because the vendor's loader does not check data.
    """
    issues = report.issues
    uses = Uses()
    if report.kind is not None and report.document is not None:
        with recording() as uses:
            more = planning_issues(report.kind, report.document, root)
        if dialect != "default":
            more = [replace(issue, severity="warning") for issue in more]
        issues = tuple(dict.fromkeys((*issues, *more)))
    variables = tuple(dict.fromkeys((*report.variables, *uses.variables)))
    needs = getattr(report.document.spec, "needs", None) if report.document is not None else None
    files = tuple(outside_files((*report.files, *uses.files), report.file.parent))
    return ValidationReport(
        report.file, report.kind or "unknown", issues, variables, tuple(uses.addresses), needs, files
    )


def _is_log(path: Path) -> bool:
    """Return whether a JSON or JSONL file is a result log. AI GO entities can also be JSON files, and records
    JSONL files.
    """
    try:
        with open_for_reading(path) as file:
            head = file.read(HEAD)
    except (OSError, EvidenceError, UsageError):
        return True  # The reader of result logs reports the problem.
    if ".tasklog." in path.name:
        return True
    if ".jsonl" in path.name.lower():
        try:
            record = orjson.loads(head.split(b"\n", 1)[0])
        except orjson.JSONDecodeError:
            return False
        return isinstance(record, dict) and is_like_log(record)
    marks = (b'"format_version"', b'"evidence"', b'"specification"', b'"execution"')
    return any(mark in head for mark in marks)


def _log(path: Path) -> ValidationReport:
    from aigo_bridge.results.validating import validate_log

    try:
        issues = validate_log(path)
    except OSError as error:
        issues = [Issue(f"cannot be read: {error.strerror}", file=str(path), code=Code.UNREADABLE_FILE)]
    return ValidationReport(path, "tasklog", tuple(issues))


def _jsonl_spec(path: Path) -> ValidationReport:
    try:
        if (issue := other_content(path)) is not None:
            return ValidationReport(path, "unknown", (issue,))
        tasks, errors = validate_file(path)
    except SpecError as error:
        return ValidationReport(path, "jsonl", error.issues)
    issues = [error.to_issue(path) for error in errors]
    if not tasks and not issues:
        issues = [no_records(path)]
    return ValidationReport(path, "jsonl", tuple(issues))


# Check whether a file can run

_AT_HAND = Surroundings(at_hand_only=True)


def planning_issues(kind: Kind, document: Document[Any], root: Path | None) -> list[Issue]:
    """Return the issues that a run of a valid file would report before it starts. A value that only an option
    provides is not an error.

    Args:
        kind: kind of file.
        document: the file after reading.
        root: as for reading.
    """
    origin = PlanOrigin(task=str(document.file), root=None if root is None else str(root))
    issues: Iterable[Issue]
    match kind:
        case "task":
            issues = _of_task(cast("Document[TaskSpec]", document), origin)
        case "dataset":
            issues = _of_dataset(cast("Document[DatasetSpec]", document))
        case "run":
            issues = _of_run(cast("Document[RunSpec]", document), origin)
        case "evaluation" | "plan":
            issues = _of_evaluations(origin)
        case _:
            issues = ()
    return [
        replace(issue, severity="warning") if issue.option is not None else issue
        for issue in dict.fromkeys(issues)
    ]


def _of_task(document: Document[TaskSpec], origin: PlanOrigin) -> Iterator[Issue]:
    try:
        plan = plan_task(document, origin, _AT_HAND)
    except (SpecError, TemplateError, DatasetError, EvidenceError) as error:
        # Tasks may have parameters without a default, because the run provides their values.
        yield from (_placed(issue, document) for issue in error.issues if issue.option != "--config")
        if any(issue.option == "--config" for issue in error.issues):
            yield from _of_rows(document, origin)
        return
    except UsageError:
        return  # The dataset to evaluate is missing; an option provides it.
    yield from plan.warnings
    yield from _contradictions(plan, document)


def _of_rows(document: Document[TaskSpec], origin: PlanOrigin) -> Iterator[Issue]:
    """Yield problems of the rows of a task whose parameters are unknown but whose dataset is known."""
    definition = document.spec.definition
    reference = definition.dataset if isinstance(definition, BenchmarkDefinition) else None
    if reference is None or any(map(has_marker, (reference.key, *(reference.keys or ())))):
        return
    assert isinstance(definition, BenchmarkDefinition)
    try:
        yield from planned_rows(definition, document, origin, _AT_HAND)[2]
    except (SpecError, TemplateError, DatasetError, EvidenceError) as error:
        yield from (_placed(issue, document) for issue in error.issues)


def _placed(issue: Issue, document: Document[Any]) -> Issue:
    """Return the issue with a position in the document if it lacks a position in a file."""
    return issue if issue.file is not None else document.place(issue)


def _contradictions(plan: TaskPlan, document: Document[Any]) -> Iterator[Issue]:
    from aigo_bridge.engine.protocol import contradictions

    for gap in contradictions(plan):
        message = f"{gap.part} {gap.reason}"
        yield document.place(Issue(message, path=("definition",), hint=gap.hint, code=Code.ENGINE_GAP))


def _of_dataset(document: Document[DatasetSpec]) -> Iterator[Issue]:
    try:
        if not is_at_hand(document.spec):
            check_entity(document)
            return
        yield from entity_rows(document).warnings
    except (DatasetError, TemplateError) as error:
        yield from (_placed(issue, document) for issue in error.issues)


def _of_run(document: Document[RunSpec], origin: PlanOrigin) -> Iterator[Issue]:
    for number, dataset in enumerate(document.spec.datasets):
        yield from _of_dataset(document.part(("datasets", number), dataset))
    if document.spec.evaluation is not None:
        yield from _of_evaluations(origin)


def _of_evaluations(origin: PlanOrigin) -> Iterator[Issue]:
    try:
        evaluations = plan_evaluations(origin, at_hand_only=True)
    except SpecError as error:
        yield from error.issues
        return
    except UsageError as error:
        yield Issue(str(error), file=origin.task, code=error.code)
        return
    for evaluation in evaluations:
        assert evaluation.run_file is not None
        yield from evaluation.warnings
        for entry in evaluation.entries:
            for plan in entry.plans[:1]:
                yield from _contradictions(plan, evaluation.run_file.document)
