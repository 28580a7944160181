"""Run files as they are read: the evaluation, its parameters' values, and where everything stands."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.jsonl_spec import is_record_file
from aigo_bridge.parameters import parse_text, resolve_config, template_values
from aigo_bridge.plan import CachePolicy, PlanOrigin
from aigo_bridge.reading import Document, environment, kind_of, peek, read_evaluation, read_plan, read_run
from aigo_bridge.spec import AssessmentPlanSpec, EvaluationSpec, RunSpec
from aigo_bridge.spec.evaluations import RunConfig

KINDS = ("run", "evaluation", "plan")
"""Kinds of files that hold evaluations."""


@dataclass(frozen=True)
class RunFile:
    """One evaluation with everything that its file declares."""

    file: Path
    """The file that the user named: results that it refers to are relative to its folder."""
    document: Document[Any]
    run: RunSpec
    run_path: tuple[str | int, ...]
    """Where the run file stands in the document: `()`, or a place in an assessment plan."""
    evaluation: EvaluationSpec
    evaluation_path: tuple[str | int, ...]
    values: Mapping[str, Any]
    """Value of every parameter of the evaluation."""
    run_config: RunConfig

    @property
    def cache(self) -> CachePolicy:
        """The file's cache policy."""
        if "cache_policy" in self.run_config.model_fields_set or self.evaluation.cache_policy is None:
            return self.run_config.cache_policy
        return self.evaluation.cache_policy


def holds_evaluation(name: str) -> bool:
    """Whether a user names a run file, an evaluation or an assessment plan, and not a task."""
    path = Path(name)
    return path.is_file() and not is_record_file(path) and kind_of(path, env=environment()) in KINDS


def read_run_files(origin: PlanOrigin) -> list[RunFile]:
    """The evaluations of a file: one, or those of an assessment plan.

    Args:
        origin: `task` is the file, `config` what is given in place of the file's own values.

    Raises:
        SpecError: a file is invalid, or values are missing or wrong.
        UsageError: the file is not there.
    """
    path = Path(origin.task)
    root = None if origin.root is None else Path(origin.root)
    if not path.is_file():
        raise UsageError(f"there is no file {origin.task!r}")
    env = environment()
    match kind_of(path, root=root, env=env):
        case "evaluation":
            evaluation = read_evaluation(path, root=root, env=env)
            run = RunSpec(evaluation=evaluation.spec)
            return [_bound(path, evaluation, run, (), evaluation.spec, (), run.run_config, origin.config)]
        case "plan":
            return _of_plan(path, read_plan(path, root=root, env=env), origin)
        case _:
            document = read_run(path, root=root, env=env, config=origin.config)
            return [_of_run(path, document, document.spec, (), origin.config)]


def _of_run(
    file: Path,
    document: Document[Any],
    run: RunSpec,
    path: tuple[str | int, ...],
    given: Mapping[str, Any],
) -> RunFile:
    if run.evaluation is None:
        place = document.place(Issue("there is no 'evaluation', so nothing can be run", path=path))
        raise SpecError([place])
    return _bound(file, document, run, path, run.evaluation, (*path, "evaluation"), run.run_config, given)


def _bound(
    file: Path,
    document: Document[Any],
    run: RunSpec,
    run_path: tuple[str | int, ...],
    evaluation: EvaluationSpec,
    path: tuple[str | int, ...],
    run_config: RunConfig,
    given: Mapping[str, Any],
) -> RunFile:
    parameters = {parameter.key: parameter for parameter in evaluation.config_spec}
    surplus = [key for key in given if key not in parameters]
    if surplus:
        near = difflib.get_close_matches(surplus[0], parameters, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(parameters) or 'none'}"
        raise UsageError(f"--config: evaluation {evaluation.key!r} has no parameter {surplus[0]!r} ({known})")
    typed = {
        key: parse_text(parameters[key], value) if isinstance(value, str) else value
        for key, value in given.items()
    }
    own = {key: value for key, value in run.config.items() if key in parameters}
    try:
        values = resolve_config(evaluation.config_spec, {**own, **typed})
    except SpecError as error:
        raise SpecError([_placed(document, issue, run_path) for issue in error.issues]) from error
    return RunFile(
        file,
        document,
        run,
        run_path,
        evaluation,
        path,
        template_values(evaluation.config_spec, values),
        run_config,
    )


def _placed(document: Document[Any], issue: Issue, run_path: tuple[str | int, ...]) -> Issue:
    return document.place(replace(issue, path=(*run_path, *issue.path)))


# Assessment plans


def _of_plan(file: Path, document: Document[AssessmentPlanSpec], origin: PlanOrigin) -> list[RunFile]:
    """The evaluations of an assessment plan: whole run files, or evaluations by key from the run files beside it."""
    plan = document.spec
    if plan.evaluations is not None:
        return [
            _of_run(file, document, run, ("evaluations", number), origin.config)
            for number, run in enumerate(plan.evaluations)
        ]
    found: list[RunFile] = []
    issues: list[Issue] = []
    for number, entry in enumerate(plan.evaluation_specifications or ()):
        path = ("evaluation_specifications", number)
        source = find_run_file(entry.evaluation_key, file)
        if source is None:
            message = f"evaluation {entry.evaluation_key!r} was not found; looked for a run file with it in {file.parent}"
            issues.append(document.place(Issue(message, path=(*path, "evaluation_key"))))
            continue
        given = {**entry.evaluation_config, **origin.config}
        try:
            (one,) = read_run_files(
                PlanOrigin(task=str(source), config=given, root=origin.root or str(document.root))
            )
        except SpecError as error:
            issues += error.issues
            continue
        own = entry.evaluation_run_config
        changed = {name: getattr(own, name) for name in own.model_fields_set}
        found.append(
            RunFile(
                one.file,
                one.document,
                one.run,
                one.run_path,
                one.evaluation,
                one.evaluation_path,
                one.values,
                one.run_config.model_copy(update=changed),
            )
        )
    if issues:
        raise SpecError(issues)
    return found


def find_run_file(evaluation_key: str, beside: Path) -> Path | None:
    """The run file (or evaluation file) of the folder, or of `evaluations/` in it, that has an evaluation with that key."""
    for folder in (beside.parent, beside.parent / "evaluations"):
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            if path != beside and _evaluation_key(path) == evaluation_key:
                return path
    return None


def _evaluation_key(path: Path) -> str | None:
    """Key of the evaluation in a file, valid or not; `None` when it has none, or cannot be read: somebody else's file, perhaps."""
    kind, data = peek(path, env=environment())
    evaluation = data.get("evaluation") if kind == "run" else data if kind == "evaluation" else None
    key = evaluation.get("key") if isinstance(evaluation, dict) else None
    return key if isinstance(key, str) else None
