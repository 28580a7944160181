"""What planning says of a file: the checks that `run` makes before it calls a model, without a model, a snippet or the network.

`validate` plans what a user would run, so that the two agree: what it finds valid starts, and what does not start is
told by both with the same words and places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aigo_bridge.errors import DatasetError, EvidenceError, Issue, SpecError, TemplateError, UsageError
from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.gaps import contradictions
from aigo_bridge.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning import plan_task
from aigo_bridge.planning_data import Surroundings, entity_rows, is_at_hand, planned_rows
from aigo_bridge.reading import Document, Kind
from aigo_bridge.spec import BenchmarkDefinition, DatasetSpec, RunSpec, TaskSpec, has_marker

_AT_HAND = Surroundings(at_hand_only=True)


def planning_issues(kind: Kind, document: Document[Any], root: Path | None) -> list[Issue]:
    """What a run of a valid file would say before it starts; what only an option supplies is no error.

    Args:
        kind: what the file is.
        document: the file as read.
        root: as for reading.
    """
    origin = PlanOrigin(task=str(document.file), root=None if root is None else str(root))
    found: Iterable[Issue]
    match kind:
        case "task":
            found = _of_task(cast("Document[TaskSpec]", document), origin)
        case "dataset":
            found = _of_dataset(cast("Document[DatasetSpec]", document))
        case "run":
            found = _of_run(cast("Document[RunSpec]", document), origin)
        case "evaluation" | "plan":
            found = _of_evaluations(origin)
        case _:
            found = ()
    return [
        replace(issue, severity="warning") if issue.option is not None else issue
        for issue in dict.fromkeys(found)
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
        return  # an option is missing: the data set to evaluate
    yield from plan.warnings
    yield from _contradictions(plan, document)


def _of_rows(document: Document[TaskSpec], origin: PlanOrigin) -> Iterator[Issue]:
    """What is wrong with the rows of a task whose parameters are not known, if its data set is."""
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
        yield document.place(Issue(message, path=("definition",), hint=gap.hint))


def _of_dataset(document: Document[DatasetSpec]) -> Iterator[Issue]:
    if not is_at_hand(document.spec):
        return
    try:
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
        yield Issue(str(error), file=origin.task)
        return
    for evaluation in evaluations:
        yield from evaluation.warnings
        for entry in evaluation.entries:
            for plan in entry.plans[:1]:
                yield from _contradictions(plan, evaluation.run_file.document)
