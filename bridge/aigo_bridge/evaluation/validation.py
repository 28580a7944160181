"""Validate any file that this project knows, its kind recognised by what is in it.

Of a YAML file also whether it can be run: the checks that `run` makes before it calls a model, without a
model, a snippet or the network. What a user would run is planned, so that the two agree: what is valid
starts, and what does not start is told by both with the same words and places.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import orjson

from aigo_bridge.access.grants import Uses, VariableUse, outside_files, recording
from aigo_bridge.access.opening import naming
from aigo_bridge.access.presence import is_file, is_folder
from aigo_bridge.access.snapshot import Snapshot
from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import contradictions
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
from aigo_bridge.results.validating import validate_log
from aigo_bridge.spec import BenchmarkDefinition, DatasetSpec, RunSpec, TaskSpec, has_marker
from aigo_bridge.text.plurals import plural

YAML_SUFFIXES = (".yaml", ".yml")
JSON_ENDINGS = tuple(name + packed for name in (".json", ".jsonl") for packed in ("", ".gz", ".zst"))
HEAD = 64 * 1024
"""Bytes of a JSON file that are looked at to tell what it is."""


@dataclass(frozen=True)
class ValidationReport:
    """What is wrong with one file."""

    file: Path
    kind: str
    """What it is: `task`, `run`, `tasklog`, `jsonl` …; `unknown` when it could not be told."""
    issues: tuple[Issue, ...]
    variables: tuple[VariableUse, ...] = ()
    """Environment variables that it names, or what belongs to it."""
    addresses: tuple[str, ...] = ()
    """Addresses and hubs that a run would fetch rows from."""
    needs: str | None = None
    """What a task's code needs beyond its jail, and the user has to allow; `None`: nothing."""
    files: tuple[str, ...] = ()
    """Real paths of files that it reads outside its own folder."""

    def __repr__(self) -> str:
        errors = sum(issue.severity == "error" for issue in self.issues)
        warnings = len(self.issues) - errors
        parts = [
            plural(number, noun) for number, noun in ((errors, "error"), (warnings, "warning")) if number
        ]
        return f"<ValidationReport of {str(self.file)!r}: {self.kind}, {', '.join(parts) or 'valid'}>"

    def is_valid(self, *, strict: bool) -> bool:
        """Whether nothing is wrong; with `strict`, warnings count."""
        return not any(strict or issue.severity == "error" for issue in self.issues)


def validate(
    paths: Iterable[Path], *, root: Path | None = None, dialect: Dialect = "default"
) -> Iterator[ValidationReport]:
    """One report per file; folders are gone through for YAML files, task records (`tasks.jsonl`, as `run
    FOLDER` finds them) and result logs (`*.tasklog.json…`).

    Args:
        paths: files and folders.
        root: folder that includes may reach; `None`: each file's project, as when it is run.
        dialect: rules for YAML files.

    Raises:
        UsageError: a path does not exist.
    """
    named = list(paths)
    reports = _reports(named, root, dialect)
    snapshot = Snapshot()
    while True:
        with naming(named), snapshot:  # not while the caller has its turn: it may change files
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
            raise UsageError(f"there is no file or folder {str(path)!r}", code=Code.NOTHING_THERE)


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
    """A YAML file's report; of a valid one also whether it can be run.

    In the 3.17 dialect that is a warning: the vendor's loader does not look at data.
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
    """Whether a JSON or JSONL file is a result log: AI GO entities may be written as JSON, too, and records
    as JSONL.
    """
    try:
        with open_for_reading(path) as file:
            head = file.read(HEAD)
    except (OSError, EvidenceError, UsageError):
        return True  # its reader says what is wrong
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


# Whether a file can be run

_AT_HAND = Surroundings(at_hand_only=True)


def planning_issues(kind: Kind, document: Document[Any], root: Path | None) -> list[Issue]:
    """What a run of a valid file would say before it starts; what only an option supplies is no error.

    Args:
        kind: what the file is.
        document: the file as read.
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
        # Parameters without a default are what tasks are made of: their values come with the run.
        yield from (_placed(issue, document) for issue in error.issues if issue.option != "--config")
        if any(issue.option == "--config" for issue in error.issues):
            yield from _of_rows(document, origin)
        return
    except UsageError:
        return  # an option is missing: the dataset to evaluate
    yield from plan.warnings
    yield from _contradictions(plan, document)


def _of_rows(document: Document[TaskSpec], origin: PlanOrigin) -> Iterator[Issue]:
    """What is wrong with the rows of a task whose parameters are not known, if its dataset is."""
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
    """The issue with a place in the document, if it has none in any file."""
    return issue if issue.file is not None else document.place(issue)


def _contradictions(plan: TaskPlan, document: Document[Any]) -> Iterator[Issue]:
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
