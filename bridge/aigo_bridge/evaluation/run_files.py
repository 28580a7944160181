"""Run files after reading: evaluation, parameter values, positions of all parts, and names for parts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from aigo_bridge.access.existence import is_file, is_present
from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import root_of_folder
from aigo_bridge.access.private import refusal
from aigo_bridge.access.snapshot import remembered
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError, TemplateError, UsageError
from aigo_bridge.jsonl_spec import is_record_file
from aigo_bridge.plan.plan import CachePolicy, PlanOrigin
from aigo_bridge.reading import Document, environment, issues_from_validation, kind_of, peek, read
from aigo_bridge.reading.locating import find_task
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import (
    AssessmentPlanSpec,
    EvaluationSpec,
    RepeatabilitySpecification,
    RunConfig,
    RunSpec,
    TaskSpecification,
    specification_keys,
)
from aigo_bridge.spec.parameters import parse_text, resolve_config, template_values
from aigo_bridge.templates import bind_config

Place = tuple[str | int, ...]

KINDS = ("run", "evaluation", "plan")
"""Kinds of files that contain evaluations."""


@dataclass(frozen=True)
class RunFile:
    """Evaluation with everything that its file declares."""

    file: Path
    """File that the user named. Paths of results in it are relative to its folder."""
    document: Document[Any]
    run: RunSpec
    run_path: Place
    """Path of the run file in the document: `()`, or a path in an assessment plan."""
    evaluation: EvaluationSpec
    evaluation_path: Place
    values: Mapping[str, Any]
    """Value of every evaluation parameter."""
    run_config: RunConfig

    @property
    def cache(self) -> CachePolicy:
        """Cache policy of the file."""
        if "cache_policy" in self.run_config.model_fields_set or self.evaluation.cache_policy is None:
            return self.run_config.cache_policy
        return self.evaluation.cache_policy

    @cached_property
    def specifications(self) -> tuple[WrittenSpecification, ...]:
        """Task specifications as written. A specification without a key gets the task key, with a number if
        the key is not unique.
        """
        specs = self.evaluation.task_specifications
        path = (*self.evaluation_path, "task_specifications")
        return tuple(
            WrittenSpecification(key, (*path, number), spec)
            for number, (key, spec) in enumerate(zip(specification_keys(specs), specs, strict=True))
        )

    @cached_property
    def datasets(self) -> Mapping[str, Document[DatasetSpec]]:
        """Datasets that the file declares."""
        return {
            dataset.key: self.document.part((*self.run_path, "datasets", number), dataset)
            for number, dataset in enumerate(self.run.datasets)
        }

    @cached_property
    def stored_results(self) -> Mapping[str, Path]:
        """Specification key → result log that is used instead of a run.

        Raises:
            SpecError: a result log is outside its root folder.
        """
        return {
            written.key: self.stored_result(written.path, written.spec)
            for written in self.specifications
            if isinstance(written.spec, TaskSpecification) and written.spec.task_result_log_path is not None
        }

    def stored_result(self, path: Place, spec: TaskSpecification) -> Path:
        """Return the path of a stored result that the file names. Like all files, it must be in the root
        folder.

        Raises:
            SpecError: the result is outside the root folder.
        """
        assert spec.task_result_log_path is not None
        result = self.file.parent / spec.task_result_log_path
        issue = refusal(result, self.document.root, repr(spec.task_result_log_path), own=self.file.parent)
        if issue is not None:
            raise SpecError([self.place(issue, (*path, "task_result_log_path"))])
        record_file(result)
        return result

    def value(self, path: Place) -> Any:
        """Return the value at a path, with parameter values inserted."""
        data = self.document.data
        for part in path:
            data = data[part]
        return bind_config(data, self.values)

    def place(self, issue: Issue, path: Place) -> Issue:
        """Return an issue with its position in the file."""
        return self.document.place(replace(issue, path=path))


@dataclass(frozen=True)
class WrittenSpecification:
    """Task specification as written."""

    key: str
    path: Place
    """Path in the document."""
    spec: TaskSpecification | RepeatabilitySpecification


def holds_evaluation(name: str) -> bool:
    """Return whether a name is a run file, an evaluation or an assessment plan, and not a task."""
    path = Path(name)
    return is_file(path) and not is_record_file(path) and kind_of(path, env=environment()) in KINDS


def names_run_file(text: str) -> bool:
    """Return whether a name is a run file or a specification of one."""
    return parse_reference(text) is not None or holds_evaluation(text)


def own_folder(text: str) -> Path:
    """Return the folder of the task or run file that a user names.

    Raises:
        UsageError: the file or task does not exist.
    """
    reference = parse_reference(text)
    return (find_task(text) if reference is None else reference.file).parent


def read_run_files(origin: PlanOrigin) -> list[RunFile]:
    """Return the evaluations of a file, with values that `origin.config` overrides: one, or all of an
    assessment plan.

    Raises:
        SpecError: a file is invalid, or values are missing or wrong.
        UsageError: the file does not exist.
    """
    path = Path(origin.task)
    root = None if origin.root is None else Path(origin.root)
    if not is_file(path):
        raise UsageError(f"file {origin.task!r} does not exist", code=Code.NOTHING_THERE)
    env = environment()
    match kind_of(path, root=root, env=env):
        case "evaluation":
            evaluation = read(EvaluationSpec, path, root=root, env=env)
            run = RunSpec(evaluation=evaluation.spec)
            return [_bound(path, evaluation, run, (), evaluation.spec, (), run.run_config, origin.config)]
        case "plan":
            return _of_plan(path, read(AssessmentPlanSpec, path, root=root, env=env), origin)
        case _:
            document = read(RunSpec, path, root=root, env=env, config=origin.config)
            return [_of_run(path, document, document.spec, (), origin.config)]


def _of_run(
    file: Path,
    document: Document[Any],
    run: RunSpec,
    path: Place,
    config: Mapping[str, Any],
) -> RunFile:
    if run.evaluation is None:
        place = document.place(
            Issue("'evaluation' is missing, so there is nothing to run", path=path, code=Code.NOTHING_TO_RUN)
        )
        raise SpecError([place])
    return _bound(file, document, run, path, run.evaluation, (*path, "evaluation"), run.run_config, config)


def _bound(
    file: Path,
    document: Document[Any],
    run: RunSpec,
    run_path: Place,
    evaluation: EvaluationSpec,
    path: Place,
    run_config: RunConfig,
    config: Mapping[str, Any],
) -> RunFile:
    parameters = {parameter.key: parameter for parameter in evaluation.config_spec}
    surplus = [key for key in config if key not in parameters]
    if surplus:
        near = difflib.get_close_matches(surplus[0], parameters, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(parameters) or 'none'}"
        raise UsageError(
            f"--config: evaluation {evaluation.key!r} has no parameter {surplus[0]!r} ({hint})",
            code=Code.UNKNOWN_PARAMETER,
        )
    typed = {
        key: parse_text(parameters[key], value) if isinstance(value, str) else value
        for key, value in config.items()
    }
    declared = {key: value for key, value in run.config.items() if key in parameters}
    try:
        values = resolve_config(evaluation.config_spec, {**declared, **typed})
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
    """Return the evaluations of an assessment plan. It contains whole run files, or names evaluations in run
    files of the same folder.
    """
    plan = document.spec
    if plan.evaluations is not None:
        return [
            _of_run(file, document, run, ("evaluations", number), origin.config)
            for number, run in enumerate(plan.evaluations)
        ]
    run_files: list[RunFile] = []
    issues: list[Issue] = []
    for number, entry in enumerate(plan.evaluation_specifications or ()):
        path = ("evaluation_specifications", number)
        source = find_run_file(entry.evaluation_key, file)
        if source is None:
            message = (
                f"evaluation {entry.evaluation_key!r} was not found; looked for a run file with it "
                f"in {file.parent}"
            )
            issues.append(
                document.place(Issue(message, path=(*path, "evaluation_key"), code=Code.UNKNOWN_ENTITY))
            )
            continue
        config = {**entry.evaluation_config, **origin.config}
        try:
            (one,) = read_run_files(
                PlanOrigin(task=str(source), config=config, root=origin.root or str(document.root))
            )
        except SpecError as error:
            issues += error.issues
            continue
        run_config = entry.evaluation_run_config
        changed = {name: getattr(run_config, name) for name in run_config.model_fields_set}
        run_files.append(replace(one, run_config=one.run_config.model_copy(update=changed)))
    if issues:
        raise SpecError(issues)
    return run_files


def find_run_file(evaluation_key: str, beside: Path) -> Path | None:
    """Return the run or evaluation file with an evaluation of that key, in the folder or `evaluations/`."""
    found = (path for key, path in _evaluations_beside(beside.parent) if key == evaluation_key)
    source = next((path for path in found if path != beside), None)
    if source is not None:
        record_file(source)
    return source


@remembered
def _evaluations_beside(folder: Path) -> list[tuple[str, Path]]:
    reach = root_of_folder(folder)
    files = [
        path
        for place in (folder, folder / "evaluations")
        for path in sorted([*place.glob("*.yaml"), *place.glob("*.yml")])
        if refusal(path, reach, path.name, own=folder) is None
    ]
    keys = ((_evaluation_key(path, reach), path) for path in files)
    return [(key, path) for key, path in keys if key is not None]


def _evaluation_key(path: Path, root: Path) -> str | None:
    """Return the key of the evaluation in a file, valid or not. Return `None` without a key, or if the file
    cannot be read, because it may be unrelated.
    """
    kind, data = peek(path, root=root, env=environment())
    evaluation = data.get("evaluation") if kind == "run" else data if kind == "evaluation" else None
    key = evaluation.get("key") if isinstance(evaluation, dict) else None
    return key if isinstance(key, str) else None


# Specifications with their values


@dataclass(frozen=True)
class BoundSpecification:
    """Task specification with parameter values inserted."""

    key: str
    path: Place
    """Path in the document."""
    run_file: RunFile
    spec: TaskSpecification
    num_runs: int = 1


def specifications_of(run_file: RunFile) -> list[BoundSpecification]:
    """Return every specification with its key and its values. Specifications that repeat another evaluation
    are expanded.

    Raises:
        SpecError: values are missing or wrong.
    """
    specifications: list[BoundSpecification] = []
    issues: list[Issue] = []
    for written in run_file.specifications:
        path = written.path
        try:
            bound = run_file.value(path)
            if isinstance(written.spec, TaskSpecification):
                spec = TaskSpecification.model_validate(bound)
                runs = spec.repeatability.num_runs if spec.repeatability is not None else 1
                specifications.append(BoundSpecification(written.key, path, run_file, spec, runs))
            else:
                repeated = RepeatabilitySpecification.model_validate(bound)
                specifications += _repeated(written.key, path, run_file, repeated)
        except ValidationError as error:
            inner = run_file.document.part(path, written.spec)
            issues += issues_from_validation(error, inner, type(written.spec))
        except (SpecError, TemplateError) as error:
            issues += [
                issue if issue.line is not None else run_file.place(issue, (*path, *issue.path))
                for issue in error.issues
            ]
    if issues:
        raise SpecError(issues)
    return specifications


def _repeated(
    key: str, path: Place, run_file: RunFile, spec: RepeatabilitySpecification
) -> list[BoundSpecification]:
    """Return a specification for each input of a `type: repeatability` specification, to run repeatedly."""
    changes = {
        name: getattr(spec, name)
        for name in ("num_samples", "subsampling", "display_name")
        if getattr(spec, name) is not None
    }
    repeated: list[BoundSpecification] = []
    for number, wanted in enumerate(spec.inputs):
        place = (*path, "inputs", number)
        source = _other_evaluation(wanted.evaluation_key, run_file, place)
        standard = [
            BoundSpecification(
                written.key,
                written.path,
                source,
                TaskSpecification.model_validate(source.value(written.path)),
            )
            for written in source.specifications
            if isinstance(written.spec, TaskSpecification)
        ]
        chosen = [bound for bound in standard if wanted.task_specification_key in (None, bound.key)]
        if not chosen:
            keys = ", ".join(bound.key for bound in standard) or "none"
            message = (
                f"evaluation {wanted.evaluation_key!r} has no specification {wanted.task_specification_key!r}"
            )
            raise SpecError(
                [run_file.place(Issue(message, hint=f"it has: {keys}", code=Code.UNKNOWN_ENTITY), place)]
            )
        for bound in chosen:
            repeated_spec = bound.spec.model_copy(update={**changes, "task_result_log_path": None})
            runs = spec.repeatability_config.num_runs
            repeated.append(replace(bound, key=key, spec=repeated_spec, num_runs=runs))
    if len(repeated) == 1:
        return repeated
    return [replace(bound, key=f"{key}-{number}") for number, bound in enumerate(repeated, start=1)]


def _other_evaluation(key: str, run_file: RunFile, place: Place) -> RunFile:
    if key == run_file.evaluation.key:
        return run_file
    source = find_run_file(key, run_file.file)
    if source is None:
        message = f"evaluation {key!r} was not found; looked for a run file with it in {run_file.file.parent}"
        raise SpecError(
            [run_file.place(Issue(message, code=Code.UNKNOWN_ENTITY), (*place, "evaluation_key"))]
        )
    (repeated_file,) = read_run_files(PlanOrigin(task=str(source), root=str(run_file.document.root)))
    return repeated_file


# Names of parts as one text, so that another process can find them: `run.yaml#quiz`, `run.yaml#quiz/2`.

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Reference:
    """Reference to a task specification of a run file."""

    file: Path
    key: str
    """Key of the specification."""
    run: int = 0
    """Number of the run, from 0."""

    def __str__(self) -> str:
        number = f"/{self.run + 1}" if self.run else ""
        return f"{self.file}#{self.key}{number}"


def parse_reference(text: str) -> Reference | None:
    """Return the specification that a text names; `None` if it names a file or a shipped task."""
    file, mark, name = text.rpartition("#")
    if not mark or not file.lower().endswith(SUFFIXES) or is_present(text):
        return None
    key, slash, number = name.partition("/")
    if slash and not (number.isascii() and number.isdigit() and int(number) > 0):
        return None
    return Reference(Path(file), key, int(number) - 1 if slash else 0)
