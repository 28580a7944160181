"""Results that a run file links with `task_result_log_path` in its task specifications.

`lf export eval-run --link-logs` writes such a folder. All logs have the same file name, so a result is
named after its task specification:

```text
run.yaml                                   evaluation.task_specifications[0].key: quiz
task_results/quiz/task_result_log.json     the result `run.yaml#quiz`
```
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aigo_bridge.access.existence import is_file
from aigo_bridge.access.opening import is_below
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading import Document, environment, issues_from_validation
from aigo_bridge.reading.reader import open_document
from aigo_bridge.spec.evaluations import RepeatabilitySpecification, TaskSpecification, specification_keys

LINK = "task_result_log_path"

Specification = TaskSpecification | RepeatabilitySpecification
_EVALUATIONS: dict[str, tuple[str, ...]] = {"run": ("evaluation",), "evaluation": ()}
"""Kind of file → path of its evaluation."""


@dataclass(frozen=True)
class LinkedResult:
    """Task specification and its result."""

    key: str
    display_name: str | None
    task: str | None
    """Key of the task; `None` if the specification repeats others."""
    path: Path | None
    """Path of the result log; `None` if the specification does not link one."""


@dataclass(frozen=True)
class LinkedEvaluation:
    """Evaluation whose run file links results."""

    file: Path
    included: frozenset[Path]
    """Real paths of the files that the run file refers to."""
    results: tuple[LinkedResult, ...]


def linked_evaluation(file: Path, root: Path | None = None) -> LinkedEvaluation | None:
    """Return the evaluation of a run file with its linked results; `None` if the file does not link any.

    Only the task specifications are checked, because results can be read without the models and datasets
    of a run.

    Args:
        file: YAML file.
        root: folder that must contain the file and its results, after following links. `None` if included
            files must be in the project of the file. Results are always in the folder of the run file.

    Raises:
        SpecError: the file cannot be read, a task specification is invalid, or a result is missing or
            outside the folder; lists every problem of the file.
    """
    document, kind, issues = open_document(file, root=root, env=environment())
    if kind not in _EVALUATIONS:
        return None
    place = _EVALUATIONS[kind]
    evaluation = document.data.get(place[0]) if place else document.data
    written = evaluation.get("task_specifications") if isinstance(evaluation, dict) else None
    if not isinstance(written, list) or not all(isinstance(item, dict) for item in written):
        if issues:
            raise SpecError(issues)
        return None
    if not any(item.get(LINK) is not None for item in written):
        return None
    path = (*place, "task_specifications")
    specifications = _valid(document, path, written)
    keys = specification_keys(specifications)
    problems = [*_repeated_keys(document, path, keys)]
    results: list[LinkedResult] = []
    for number, (key, spec) in enumerate(zip(keys, specifications, strict=True)):
        log, issue = _log_of(spec, file, root)
        if issue is not None:
            problems.append(document.place(replace(issue, path=(*path, number, LINK))))
        task = spec.task_key if isinstance(spec, TaskSpecification) else None
        results.append(LinkedResult(key, spec.display_name, task, log))
    if problems:
        raise SpecError(problems)
    files = frozenset(Path(os.path.realpath(name)) for name in document.texts)
    return LinkedEvaluation(file, files - {Path(os.path.realpath(file))}, tuple(results))


def _valid(document: Document[Any], path: tuple[str, ...], written: list[Any]) -> list[Specification]:
    specifications: list[Specification] = []
    issues: list[Issue] = []
    for number, item in enumerate(written):
        repeats = item.get("type") == "repeatability"
        model = RepeatabilitySpecification if repeats else TaskSpecification
        try:
            specifications.append(model.model_validate(item))
        except ValidationError as error:
            issues += issues_from_validation(error, document.part((*path, number), None), model)
    if issues:
        raise SpecError(issues)
    return specifications


def _repeated_keys(document: Document[Any], path: tuple[str, ...], keys: tuple[str, ...]) -> Iterator[Issue]:
    counts = Counter(keys)
    for number, key in enumerate(keys):
        if counts[key] > 1:
            message = f"{counts[key]} specifications have the key {key!r}, expected a different key for each"
            yield document.place(Issue(message, path=(*path, number, "key"), code=Code.REPEATED_ENTRY))


def _log_of(spec: Specification, file: Path, root: Path | None) -> tuple[Path | None, Issue | None]:
    written = spec.task_result_log_path if isinstance(spec, TaskSpecification) else None
    if written is None:
        return None, None
    folder = file.parent
    hint = "the path is relative to the run file"
    log = folder / written
    if "\0" in written or not written.strip():
        return None, Issue(f"found {written!r}, expected a path", hint=hint, code=Code.WRONG_VALUE)
    if not all(is_below(log, place) for place in (folder, root) if place is not None):
        message = f"{written!r} is outside the folder of the run file, {str(folder)!r}"
        hint = "copy the result log into that folder, or name the result log itself"
        return None, Issue(message, hint=hint, code=Code.OUTSIDE_ROOT)
    if not is_file(log):
        message = f"result log {str(log)!r} does not exist"
        return None, Issue(message, hint=hint, code=Code.MISSING_FILE)
    return log, None
