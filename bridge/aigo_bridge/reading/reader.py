"""Reading a file of a known or a recognised kind into a `Document`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from yaml.nodes import Node

from aigo_bridge.errors import Issue, Severity, SpecError
from aigo_bridge.reading.checks import check
from aigo_bridge.reading.dialects import refuse_wide_forms
from aigo_bridge.reading.document import Dialect, Document
from aigo_bridge.reading.edits import Rewriter
from aigo_bridge.reading.kinds import (
    MODELS,
    WORDS,
    Kind,
    is_part,
    other_document,
    recognise,
    told_kind,
)
from aigo_bridge.reading.loading import Loader, Unreadable
from aigo_bridge.reading.nodes import construct
from aigo_bridge.reading.old_forms import rewrite
from aigo_bridge.reading.places import place_at
from aigo_bridge.reading.relations import relation_issues
from aigo_bridge.reading.wording import MOST_ISSUES, issues_from_validation, nearest
from aigo_bridge.roots import root_of
from aigo_bridge.spec import (
    AdapterSpec,
    AppSpec,
    AssessmentPlanSpec,
    DatasetGeneratorSpec,
    DatasetSpec,
    EvaluationSpec,
    ModelSpec,
    PolicySpec,
    RunSpec,
    TaskSpec,
)

M = TypeVar("M", bound=BaseModel)


class UnknownKindError(SpecError):
    """YAML, but nothing in it tells which kind of AI GO file it is."""


def read_task(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[TaskSpec]:
    """A task from its YAML file, with everything that it includes and refers to.

    Args:
        path: the file.
        root: folder that no other file of the task may leave; `None`: the project of `path`, see `roots`.
        dialect: see `Dialect`.
        env: environment variables; `None`: those of the process.

    Raises:
        SpecError: anything is wrong; carries every problem of every file.
    """
    return _read("task", TaskSpec, path, root, dialect, env)


def read_dataset(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[DatasetSpec]:
    """A data set from its YAML file; as `read_task`."""
    return _read("dataset", DatasetSpec, path, root, dialect, env)


def read_generator(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[DatasetGeneratorSpec]:
    """A data set generator from its YAML file; as `read_task`."""
    return _read("generator", DatasetGeneratorSpec, path, root, dialect, env)


def read_model(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[ModelSpec]:
    """A model from its YAML file; as `read_task`."""
    return _read("model", ModelSpec, path, root, dialect, env)


def read_adapter(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[AdapterSpec]:
    """A model adapter from its YAML file; as `read_task`."""
    return _read("adapter", AdapterSpec, path, root, dialect, env)


def read_evaluation(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[EvaluationSpec]:
    """An evaluation from its YAML file; as `read_task`."""
    return _read("evaluation", EvaluationSpec, path, root, dialect, env)


def read_run(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Document[RunSpec]:
    """A run file with all entities that it refers to; as `read_task`.

    `config` has values of the evaluation's parameters that stand in place of the file's own.
    """
    return _read("run", RunSpec, path, root, dialect, env, config)


def read_plan(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[AssessmentPlanSpec]:
    """An assessment plan from its YAML file; as `read_task`."""
    return _read("plan", AssessmentPlanSpec, path, root, dialect, env)


def read_app(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[AppSpec]:
    """An app from its YAML file; as `read_task`."""
    return _read("app", AppSpec, path, root, dialect, env)


def read_policy(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[PolicySpec]:
    """A policy from its YAML file; as `read_task`."""
    return _read("policy", PolicySpec, path, root, dialect, env)


def read_any(
    path: Path,
    *,
    root: Path | None = None,
    dialect: Dialect = "default",
    env: Mapping[str, str] | None = None,
) -> Document[BaseModel]:
    """A file of any kind, recognised by its content, as `read_task`; the type of `spec` tells which."""
    return _read(None, BaseModel, path, root, dialect, env)


def _read(
    kind: Kind | None,
    model: type[M],
    path: Path,
    root: Path | None,
    dialect: Dialect,
    env: Mapping[str, str] | None,
    config: Mapping[str, Any] | None = None,
) -> Document[M]:
    loader = Loader(root if root is not None else root_of(path), os.environ if env is None else env)
    node, kind, rewriter = open_nodes(loader, path, kind, dialect)
    problems = loader.issues + rewriter.issues
    data = construct(node, problems)
    document: Document[Any] = Document(
        None, data, path, loader.root, dialect=dialect, node=node, texts=loader.texts
    )
    if not isinstance(data, dict):
        problems.append(document.place(Issue(f"expected {WORDS[kind]} (a mapping), found something else")))
        raise SpecError([_shown(issue, loader.texts) for issue in problems])
    if config:
        own = data.get("config")
        data["config"] = {**(own if isinstance(own, dict) else {}), **config}
    spec: BaseModel | None = None
    try:
        spec = MODELS[kind].model_validate(data)
    except ValidationError as error:
        found = issues_from_validation(error, document, MODELS[kind])
        said = {(issue.path, issue.message) for issue in found}
        relations = (
            issue for issue in relation_issues(kind, data) if (issue.path, issue.message) not in said
        )
        problems += [*found, *map(document.place, relations)]
    if dialect == "aigo-3.17":
        problems += islice(refuse_wide_forms(kind, document), MOST_ISSUES)
    problems += islice(check(kind, document), MOST_ISSUES)
    problems = loader.issues + [issue for issue in problems if not _follows(issue, loader)]
    problems = [_without_secrets(issue, loader.expanded) for issue in problems]
    problems = _ordered([_shown(issue, loader.texts) for issue in problems], str(path))
    if len(problems) > MOST_ISSUES:
        rest = problems[MOST_ISSUES:]
        severity: Severity = "error" if any(issue.severity == "error" for issue in rest) else "warning"
        problems = problems[:MOST_ISSUES]
        problems.append(Issue("there are more problems than these", file=str(path), severity=severity))
    if spec is None or any(issue.severity == "error" for issue in problems):
        told = told_kind(data)
        if told not in (None, kind):
            message = f"this is {WORDS[told]}, expected {WORDS[kind]}"
            problems.insert(0, Issue(message, file=str(path)))
        raise SpecError(problems)
    return replace(document, spec=cast("M", spec), issues=tuple(problems))


def kind_of(path: Path, *, root: Path | None = None, env: Mapping[str, str] | None = None) -> Kind | None:
    """What kind of file a YAML file is; `None` when it cannot be read or told."""
    return peek(path, root=root, env=env)[0]


def peek(
    path: Path, *, root: Path | None = None, env: Mapping[str, str] | None = None
) -> tuple[Kind | None, Any]:
    """What kind of file a YAML file is, and what stands in it, valid or not; `None` twice when it cannot be read or told."""
    loader = Loader(root if root is not None else root_of(path), os.environ if env is None else env)
    try:
        node, kind, _ = open_nodes(loader, path, None, "default")
    except SpecError:
        return None, None
    return kind, construct(node, [])


def open_nodes(
    loader: Loader, path: Path, kind: Kind | None, dialect: Dialect
) -> tuple[Node, Kind, Rewriter]:
    """Nodes of a file in the current form, and its kind.

    Raises:
        SpecError: the file cannot be read, is empty, or its kind cannot be told.
    """
    if not _within(path.parent, loader.root):
        raise SpecError(
            [Issue(f"{str(path)!r} is not in the root folder {str(loader.root)!r}", file=str(path))]
        )
    try:
        node = loader.load(path)
    except Unreadable as error:
        raise SpecError([_shown(issue, loader.texts) for issue in (*loader.issues, error.issue)]) from error
    if node is None:
        expected = "a file of AI GO" if kind is None else WORDS[kind]
        raise SpecError(
            [*loader.issues, Issue("the file is empty", file=str(path), hint=f"expected {expected}")]
        )
    other = other_document(construct(node, []))
    if other is not None:
        what, hint = other
        expected = "" if kind is None else f", expected {WORDS[kind]}"
        raise SpecError([Issue(f"this is {what}{expected}", file=str(path), hint=hint)])
    if kind is None:
        kind = _kind(node, path, loader)
    return node, kind, rewrite(kind, node, dialect)


def _kind(node: Node, path: Path, loader: Loader) -> Kind:
    problems: list[Issue] = []
    data = construct(node, problems)
    kind = recognise(data, path)
    if kind is None and is_part(data):
        part = f"this is a part of another file (type {data['type']!r}), and is checked with that"
        issue = Issue(part, file=str(path), line=1, column=1, hint="validate the file that refers to it")
        raise UnknownKindError([*loader.issues, *problems, issue])
    if kind is None:
        keys = ", ".join(repr(key) for key in data) if isinstance(data, dict) and data else "no keys"
        hints = (nearest(str(key), ["definition"]) for key in (data if isinstance(data, dict) else ()))
        hint = next(filter(None, hints), None)
        hint = hint or "expected a task, a run file, a data set or another file of AI GO"
        message = f"cannot tell what this file is: found {keys}"
        raise UnknownKindError(
            [*loader.issues, *problems, Issue(message, file=str(path), line=1, column=1, hint=hint)]
        )
    return kind


def _without_secrets(issue: Issue, expanded: Mapping[str, str]) -> Issue:
    for value, written in expanded.items():
        if value and (value in issue.message or value in (issue.hint or "")):
            hint = issue.hint.replace(value, written) if issue.hint else None
            issue = replace(issue, message=issue.message.replace(value, written), hint=hint)
    return issue


def _follows(issue: Issue, loader: Loader) -> bool:
    """Whether an issue only says that a file which could not be read is missing."""
    return (issue.file, issue.line, issue.column) in loader.failed


def _within(path: Path, root: Path) -> bool:
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return os.path.commonpath([real, real_root]) == real_root


def _shown(issue: Issue, texts: Mapping[str, str]) -> Issue:
    """The issue with the text of its line."""
    if issue.source_line is not None or issue.file is None or issue.line is None:
        return issue
    return replace(issue, source_line=place_at(issue.file, issue.line, issue.column or 1, texts).source_line)


def _ordered(issues: list[Issue], first: str) -> list[Issue]:
    """In the order of the files' lines, the file that was asked for first."""
    unique = dict.fromkeys(issues)
    return sorted(
        unique, key=lambda issue: (issue.file != first, issue.file or "", issue.line or 0, issue.column or 0)
    )
