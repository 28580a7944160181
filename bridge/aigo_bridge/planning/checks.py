"""Checks of a bound definition against the dataset's columns, before any model is called."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.plan.plan import Sample
from aigo_bridge.reading.checks.scoring import check_actions
from aigo_bridge.spec.parameters import DatasetColumnParameter, Parameter
from aigo_bridge.spec.task import BenchmarkDefinition
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.text.plurals import plural

OUTPUT_NAMES = ("solver_output", "trace", "messages", "model_output", "model_outputs", "input_prompt")
"""Template variables of scorers that only exist if the task has a solver."""


@dataclass(frozen=True)
class TemplateField:
    """Field of a definition that is rendered per sample."""

    path: tuple[str | int, ...]
    """Path in the task document."""
    text: str
    sees_output: bool
    """Whether the template may use the solver output."""
    sees_columns: bool = True
    """Whether `sample` is a row of the dataset. A post-processor may create rows with other columns."""


def definition_issues(
    definition: BenchmarkDefinition,
    columns: Sequence[str] | None,
    nested: Mapping[str, Sequence[str]] | None = None,
) -> list[Issue]:
    """Return all certain and probable errors of a bound definition, with paths in the document.

    Args:
        definition: definition with bound config.
        columns: columns of the dataset; `None` if unknown.
        nested: columns of the rows inside a column, if several datasets are aligned.
    """
    issues: list[Issue] = []
    for field in template_fields(definition):
        issues += _template_issues(field, columns, nested or {})
    issues += _contradictions(definition)
    issues += _rules(definition, columns)
    return issues


def column_issues(
    parameters: Sequence[Parameter], config: Mapping[str, Any], columns: Sequence[str]
) -> list[Issue]:
    """Return issues of parameters that name a missing column, which snippets find only per sample."""
    issues: list[Issue] = []
    for parameter in parameters:
        name = config.get(parameter.key)
        if isinstance(parameter, DatasetColumnParameter) and name is not None and name not in columns:
            message = f"parameter {parameter.key!r}: {name!r} is not a column of the dataset"
            issues.append(
                Issue(
                    message,
                    path=("config", parameter.key),
                    hint=_columns_hint(name, columns),
                    code=Code.UNKNOWN_COLUMN,
                )
            )
    return issues


def _columns_hint(name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1)
    return f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(columns) or 'none'}"


def template_fields(definition: BenchmarkDefinition) -> Iterator[TemplateField]:
    """Yield every field of a definition that is a template for each sample."""
    if definition.solver is not None:
        for path, text in definition.solver.rendered():
            yield TemplateField(("definition", "solver", *path), text, False)
    with_output = definition.solver is not None
    own_rows = definition.solver is None or definition.solver.postprocessor is None
    for number, scorer in enumerate(definition.scorers):
        for name, text in scorer.rendered():
            yield TemplateField(("definition", "scorers", number, name), text, with_output, own_rows)


def _template_issues(
    field: TemplateField, columns: Sequence[str] | None, nested: Mapping[str, Sequence[str]]
) -> list[Issue]:
    try:
        template = SampleTemplate(field.text)
    except TemplateError as error:
        return [
            Issue(
                issue.message,
                line=issue.line,
                column=issue.column,
                path=field.path,
                hint=issue.hint,
                code=issue.code,
            )
            for issue in error.issues
        ]
    names = ("sample", *OUTPUT_NAMES) if field.sees_output else ("sample",)
    issues: list[Issue] = []
    for name in sorted(template.reads):
        line = template.line_of(name)
        if name[0] not in names:
            reason = "without a solver, only `sample` can be used here"
            hint = reason if name[0] in OUTPUT_NAMES else f"known names: {', '.join(names)}"
            issues.append(
                Issue(
                    f"`{name[0]}` is not defined here",
                    line=line,
                    path=field.path,
                    hint=hint,
                    code=Code.UNKNOWN_NAME,
                )
            )
        elif name[0] != "sample" or not field.sees_columns or len(name) < 2 or columns is None:
            continue
        elif name[1] in nested and len(name) > 2 and name[2] not in nested[name[1]]:
            message = f"`sample.{name[1]}.{name[2]}` is not a column of dataset {name[1]!r}"
            hint = _columns_hint(str(name[2]), nested[name[1]])
            issues.append(Issue(message, line=line, path=field.path, hint=hint, code=Code.UNKNOWN_COLUMN))
        elif name[1] not in columns:
            message = f"`sample.{name[1]}` is not a column of the dataset"
            hint = _columns_hint(str(name[1]), columns)
            issues.append(Issue(message, line=line, path=field.path, hint=hint, code=Code.UNKNOWN_COLUMN))
    return issues


def _contradictions(definition: BenchmarkDefinition) -> list[Issue]:
    """Return the issues that the scorers report about themselves, warnings last."""
    issues = [
        replace(issue, path=("definition", "scorers", number, *path))
        for number, scorer in enumerate(definition.scorers)
        for path, issue in scorer.problems()
    ]
    return sorted(issues, key=lambda issue: issue.severity == "warning")


def _rules(definition: BenchmarkDefinition, columns: Sequence[str] | None) -> list[Issue]:
    """Return the issues of action rules. Columns are unknown if a post-processor creates the rows."""
    if not definition.actions:
        return []
    own_rows = definition.solver is None or definition.solver.postprocessor is None
    document = definition.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return list(check_actions(document, ("definition",), columns if own_rows else None))


COMPARED = ("ground_truth", "ground_truth_choice", "value")
"""Fields of scorers whose text is compared. A null in them is an error of the sample."""

_PRINTED = re.compile(r"(?<![\w])(None|nan)(?![\w])")


def null_issues(definition: BenchmarkDefinition, samples: Sequence[Sample]) -> Iterator[Issue]:
    """Yield a warning for each template field and column that it prints, if some samples lack a value in the
    column.
    """
    beside = (definition.dataset.keys if definition.dataset is not None else None) or ()
    templates = [
        (field, SampleTemplate(field.text)) for field in template_fields(definition) if field.sees_columns
    ]
    # Use one pass for all cells, because rows may be on disk.
    missing: dict[Place, list[Sample]] = {
        place: [] for _, template in templates for place in places_of(template, beside)
    }
    for sample in samples if missing else ():
        for place, without in missing.items():
            if is_missing(cell_of(sample.data, place)):
                without.append(sample)
    for field, template in templates:
        for place in places_of(template, beside):
            yield from _issues(field, template, _Cells(place, missing[place]), len(samples))


Place = tuple[str, ...]
"""Column, or a dataset and one of its columns."""


def places_of(template: SampleTemplate, beside: Collection[str] = ()) -> list[Place]:
    """Return the cells that a template reads, with dataset keys for aligned datasets (`beside`)."""
    names = (name for name in template.reads if name[0] == "sample" and len(name) > 1)
    return sorted({tuple(map(str, name[1 : 3 if name[1] in beside else 2])) for name in names})


def cell_of(row: Mapping[str, Any], place: Place) -> Any:
    """Return the value of a cell; `None` if it is missing."""
    value: Any = row
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _replaced(row: Mapping[str, Any], place: Place, value: Any) -> dict[str, Any]:
    name, *inner = place
    return {**row, name: _replaced(row[name], tuple(inner), value) if inner else value}


@dataclass(frozen=True)
class _Cells:
    """Missing values of a column."""

    place: Place
    missing: Sequence[Sample]


def _issues(field: TemplateField, template: SampleTemplate, cells: _Cells, total: int) -> Iterator[Issue]:
    compared = field.path[-1] in COMPARED and "scorers" in field.path
    column, missing = ".".join(cells.place), cells.missing
    if missing and _prints(template, missing[0].data):
        null = str(cell_of(missing[0].data, cells.place))
        hint = (
            "these samples cannot be compared and will fail"
            if compared and _is_all(template, missing[0].data)
            else f"the template renders it as {null!r}; fill in the cells, or write for example "
            f"{{{{ sample.{column} if sample.{column} is string else '' }}}}"
        )
        yield _warning(field, column, "null" if null == "None" else "missing", missing, total, hint)
    elif missing and _takes_for_true(template, missing[0].data, cells.place):
        hint = f"a missing cell counts as true in a condition; write e.g. {{% if sample.{column} is true %}}"
        yield _warning(field, column, "missing", missing, total, hint)


def _prints(template: SampleTemplate, row: Mapping[str, Any]) -> bool:
    """Return whether the template prints a null of this row; true if only the run determines it."""
    if any(name[0] in OUTPUT_NAMES for name in template.reads | template.optional_reads):
        return True
    rendered = _rendered(template, row)
    return rendered is not None and _PRINTED.search(rendered) is not None


def _is_all(template: SampleTemplate, row: Mapping[str, Any]) -> bool:
    """Return whether the rendered template consists only of a null, so that the comparison is meaningless."""
    rendered = _rendered(template, row)
    return rendered is None or _PRINTED.fullmatch(rendered.strip()) is not None


def _takes_for_true(template: SampleTemplate, row: Mapping[str, Any], place: Place) -> bool:
    """Return whether a condition of the template treats a missing cell (NaN) as true, unlike null."""
    as_missing = _rendered(template, row)
    as_true, as_null = (_rendered(template, _replaced(row, place, value)) for value in (True, None))
    return cell_of(row, place) is not None and as_missing == as_true != as_null


def _rendered(template: SampleTemplate, row: Mapping[str, Any]) -> str | None:
    try:
        return template.render(sample=row)
    except TemplateError:
        return None  # The error is reported for the sample during the run.


def _warning(
    field: TemplateField, column: str, what: str, missing: Sequence[Sample], total: int, hint: str
) -> Issue:
    return Issue(
        f"column {column!r} is {what} in {len(missing)} of {plural(total, 'sample')} (first:"
        f" sample {missing[0].id!r})",
        path=field.path,
        hint=hint,
        severity="warning",
        code=Code.EMPTY_CELLS,
    )
