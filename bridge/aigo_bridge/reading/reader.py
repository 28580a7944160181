"""Reading of files: one into a `Document`, many for their problems, or one into its current form."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from yaml.nodes import Node

from aigo_bridge.access.existence import is_folder
from aigo_bridge.access.grants import VariableUse, process_variables, record_variables, recording
from aigo_bridge.access.opening import root_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, Severity, SpecError
from aigo_bridge.reading.checks import check
from aigo_bridge.reading.checks.tasks import relation_issues
from aigo_bridge.reading.deprecated import Rewriter, apply, rewrite
from aigo_bridge.reading.dialects import refuse_wide_forms
from aigo_bridge.reading.document import Dialect, Document, place_at
from aigo_bridge.reading.kinds import KINDS, Kind, is_part, other_document, recognise, told_kind
from aigo_bridge.reading.loading import Loader, Unreadable, with_line_feeds
from aigo_bridge.reading.messages import MOST_ISSUES, issues_from_validation, nearest
from aigo_bridge.reading.nodes import construct

M = TypeVar("M", bound=BaseModel)


class UnknownKindError(SpecError):
    """YAML file whose content does not determine a kind of AI GO file."""


def read(
    model: type[M],
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    text: str | None = None,
) -> Document[M]:
    """Read a specification from its YAML file, with everything that it includes and refers to.

    Args:
        model: class of the specification; `BaseModel` to detect the kind of file from its content.
        path: the file.
        root: folder that must contain all other files of the document; `None` for its project
            (`access.opening`).
        dialect: rules for reading (see `Dialect`).
        env: environment variables; `None` for the variables of the process.
        config: parameter values of a run file's evaluation that override the values in the file.
        text: text that replaces the content of the file, which need not exist; `None` to read the file.

    Raises:
        SpecError: a file is invalid; contains every problem of every file.
    """
    expected = next((kind for kind, about in KINDS.items() if about.spec is model), None)
    loader = Loader(root if root is not None else root_of(path), process_variables() if env is None else env)
    if text is not None:
        loader.unsaved[str(path.absolute())] = with_line_feeds(text)
    node, kind, rewriter = open_nodes(loader, path, expected, dialect)
    problems = rewriter.issues
    data = construct(node, problems)
    variables = loader.variables
    if loader.has_variables:
        variables.put_in(kind, node, data, str(path))
    record_variables(variables.uses)
    document: Document[Any] = Document(
        None,
        data,
        path,
        loader.root,
        dialect=dialect,
        variables=tuple(variables.uses),
        node=node,
        texts=loader.texts,
    )
    if not isinstance(data, dict):
        problems.append(
            document.place(
                Issue(f"found another type, expected {KINDS[kind].noun} (a mapping)", code=Code.WRONG_TYPE)
            )
        )
        raise SpecError([_shown(issue, loader.texts) for issue in (*loader.issues, *problems)])
    if config:
        file_config = data.get("config")
        data["config"] = {**(file_config if isinstance(file_config, dict) else {}), **config}
    spec: BaseModel | None = None
    try:
        spec = KINDS[kind].spec.model_validate(data)
    except ValidationError as error:
        invalid = issues_from_validation(error, document, KINDS[kind].spec)
        worded = {(issue.path, issue.message) for issue in invalid}
        relations = (
            issue for issue in relation_issues(kind, data) if (issue.path, issue.message) not in worded
        )
        problems += [*invalid, *map(document.place, relations)]
    if dialect == "aigo-3.17":
        problems += islice(refuse_wide_forms(kind, document), MOST_ISSUES)
    problems += islice(check(kind, document), MOST_ISSUES)
    problems = [_without_secrets(issue, variables.expanded) for issue in problems]
    problems = loader.issues + [issue for issue in problems if not _follows(issue, loader)]
    problems = _ordered([_shown(issue, loader.texts) for issue in problems], str(path))
    if len(problems) > MOST_ISSUES:
        more = problems[MOST_ISSUES:]
        severity: Severity = "error" if any(issue.severity == "error" for issue in more) else "warning"
        problems = problems[:MOST_ISSUES]
        problems.append(
            Issue(
                "more problems exist than are listed", file=str(path), severity=severity, code=Code.TOO_MUCH
            )
        )
    if spec is None or any(issue.severity == "error" for issue in problems):
        actual = told_kind(data)
        if actual not in (None, kind):
            message = f"found {KINDS[actual].noun}, expected {KINDS[kind].noun}"
            problems.insert(0, Issue(message, file=str(path), code=Code.OTHER_KIND))
        raise SpecError(problems)
    return replace(document, spec=cast("M", spec), issues=tuple(problems))


def kind_of(path: Path, *, root: Path | None = None, env: Mapping[str, str] | None = None) -> Kind | None:
    """Return the kind of a YAML file; `None` if it cannot be read or detected."""
    return peek(path, root=root, env=env)[0]


def peek(
    path: Path, *, root: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[Kind | None, Any]:
    """Return the kind and data of a YAML file, valid or not; `None` for both if it is unreadable."""
    try:
        document, kind, _ = open_document(path, root=root, env=env)
    except SpecError:
        return None, None
    return kind, document.data


def open_document(
    path: Path, *, root: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[Document[None], Kind, list[Issue]]:
    """Return a YAML file without checking it, its kind, and the problems of files that it refers to.

    Raises:
        SpecError: the file cannot be read, is empty, or its kind cannot be detected.
    """
    loader = Loader(root if root is not None else root_of(path), process_variables() if env is None else env)
    node, kind, _ = open_nodes(loader, path, None, "default")
    document = Document(None, construct(node, []), path, loader.root, node=node, texts=loader.texts)
    return document, kind, [_shown(issue, loader.texts) for issue in loader.issues]


def open_nodes(
    loader: Loader, path: Path, kind: Kind | None, dialect: Dialect
) -> tuple[Node, Kind, Rewriter]:
    """Return the nodes of a file in the current form, and its kind.

    Raises:
        SpecError: the file cannot be read, is empty, or its kind cannot be detected.
    """
    if not _within(path.parent, loader.root):
        raise SpecError(
            f"{str(path)!r} is not in the root folder {str(loader.root)!r}",
            file=str(path),
            code=Code.OUTSIDE_ROOT,
        )
    try:
        node = loader.load(path)
    except Unreadable as error:
        raise SpecError([_shown(issue, loader.texts) for issue in (*loader.issues, error.issue)]) from error
    if node is None:
        expected = "an AI GO file" if kind is None else KINDS[kind].noun
        raise SpecError(
            [
                *loader.issues,
                Issue("the file is empty", file=str(path), hint=f"expected {expected}", code=Code.EMPTY_FILE),
            ]
        )
    foreign = other_document(construct(node, []))
    if foreign is not None:
        what, hint = foreign
        expected = "" if kind is None else f", expected {KINDS[kind].noun}"
        raise SpecError(f"this is {what}{expected}", file=str(path), hint=hint, code=Code.OTHER_KIND)
    if kind is None:
        kind = _kind(node, path, loader)
    return node, kind, rewrite(kind, node, dialect)


def _kind(node: Node, path: Path, loader: Loader) -> Kind:
    problems: list[Issue] = []
    data = construct(node, problems)
    kind = recognise(data, path)
    if kind is None and is_part(data):
        part = f"this file is only a part (type {data['type']!r}) of another file"
        issue = Issue(
            part,
            file=str(path),
            line=1,
            column=1,
            hint="validate the file that refers to it",
            code=Code.OTHER_KIND,
        )
        raise UnknownKindError([*loader.issues, *problems, issue])
    if kind is None:
        keys = ", ".join(repr(key) for key in data) if isinstance(data, dict) and data else "no keys"
        hints = (nearest(str(key), ["definition"]) for key in (data if isinstance(data, dict) else ()))
        hint = next(filter(None, hints), None)
        hint = hint or "expected a task, a run file, a dataset or another AI GO file"
        message = f"unknown kind of file: found {keys}"
        raise UnknownKindError(
            [
                *loader.issues,
                *problems,
                Issue(message, file=str(path), line=1, column=1, hint=hint, code=Code.UNKNOWN_KIND),
            ]
        )
    return kind


def _without_secrets(issue: Issue, expanded: Mapping[str, str]) -> Issue:
    for value, written in expanded.items():
        if value and (value in issue.message or value in (issue.hint or "")):
            hint = issue.hint.replace(value, written) if issue.hint else None
            issue = replace(issue, message=issue.message.replace(value, written), hint=hint)
    return issue


def _follows(issue: Issue, loader: Loader) -> bool:
    """Return whether an issue only results from a file that could not be read."""
    return (issue.file, issue.line, issue.column) in loader.failed


def _within(path: Path, root: Path) -> bool:
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return os.path.commonpath([real, real_root]) == real_root


def _shown(issue: Issue, texts: Mapping[str, str]) -> Issue:
    if issue.source_line is not None or issue.file is None or issue.line is None:
        return issue
    return replace(issue, source_line=place_at(issue.file, issue.line, issue.column or 1, texts).source_line)


def _ordered(issues: list[Issue], first: str) -> list[Issue]:
    """Sort the issues by file and line, starting with the requested file."""
    unique = dict.fromkeys(issues)
    return sorted(
        unique, key=lambda issue: (issue.file != first, issue.file or "", issue.line or 0, issue.column or 0)
    )


def upgrade_text(path: Path, *, root: Path | None = None) -> str:
    """Return the text of a YAML file with all deprecated syntax converted; unchanged without such syntax.

    Files that it refers to are read but not changed. Upgrade each of them separately.

    Args:
        path: a file of any kind.
        root: as for `read`.

    Raises:
        SpecError: the file cannot be read as YAML, its kind cannot be detected, or it contains deprecated
            syntax that cannot be converted.
    """
    loader = Loader(root if root is not None else root_of(path), {})
    _, _, rewriter = open_nodes(loader, path, None, "default")
    name = str(path)
    errors: list[Issue] = [issue for issue in (*loader.issues, *rewriter.issues) if issue.severity == "error"]
    if errors:
        raise SpecError(errors)
    return apply(loader.texts[name], [edit for edit in rewriter.edits if edit.file == name])


@dataclass(frozen=True)
class FileReport:
    """Validation result of one file and the files that it refers to."""

    file: Path
    """Path of the file."""
    kind: Kind | None
    """Kind of file; `None` if it could not be read or detected."""
    issues: tuple[Issue, ...]
    """Errors and warnings, in file order."""
    skipped: bool = False
    """Whether the file was found in a folder and is not an AI GO entity (a part that others refer to, or
    unrelated YAML).
    """
    document: Document[Any] | None = field(default=None, repr=False)
    """Document after reading; `None` if it is invalid."""
    variables: tuple[VariableUse, ...] = ()
    """Environment variables in the file and its includes."""
    files: tuple[str, ...] = ()
    """Real paths of files that it includes or refers to."""

    def is_valid(self, *, strict: bool = False) -> bool:
        """Return whether the file is free of errors and, with `strict`, of warnings."""
        return not any(strict or issue.severity == "error" for issue in self.issues)


def validate_paths(
    paths: Iterable[Path],
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Iterator[FileReport]:
    """Yield one report per file. Files of a folder are sorted by name.

    Args:
        paths: files of any kind, and folders whose `.yaml` and `.yml` files are all checked.
        root: folder that must contain all includes; `None` for the project of each file, as in a run.
        dialect: rules for reading (see `Dialect`).
        env: environment variables; `None` for the variables of the process.
    """
    for path in paths:
        if is_folder(path):
            for file in yaml_files(path):
                yield _report(file, root, dialect, env, in_folder=True)
        else:
            yield _report(path, root, dialect, env, in_folder=False)


def yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files below a folder, sorted, without hidden folders and links to folders."""
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith((".yaml", ".yml")) and not name.startswith("."):
                yield Path(directory, name)


def _report(
    path: Path, root: Path | None, dialect: Dialect, env: Mapping[str, str] | None, *, in_folder: bool
) -> FileReport:
    with recording() as uses:
        report = _read(path, root, dialect, env, in_folder=in_folder)
    return replace(report, variables=tuple(uses.variables), files=tuple(uses.files))


def _read(
    path: Path, root: Path | None, dialect: Dialect, env: Mapping[str, str] | None, *, in_folder: bool
) -> FileReport:
    try:
        document = read(BaseModel, path, root=root, dialect=dialect, env=env)
    except UnknownKindError as error:
        return FileReport(path, None, () if in_folder else error.issues, skipped=in_folder)
    except SpecError as error:
        return FileReport(path, None, error.issues)
    kind = next(kind for kind, about in KINDS.items() if type(document.spec) is about.spec)
    return FileReport(path, kind, document.issues, document=document)
