"""What a template makes of cells without a value: told before any model is called, as the text `None` or `nan` looks like an answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.metrics.numbers import is_missing
from aigo_bridge.plan import Sample
from aigo_bridge.planning_checks import OUTPUT_NAMES, TemplateField, template_fields
from aigo_bridge.spec import BenchmarkDefinition
from aigo_bridge.templates import SampleTemplate

COMPARED = ("ground_truth", "ground_truth_choice", "value")
"""Fields of scorers whose text is compared; there a null is an error of the sample."""

_PRINTED = re.compile(r"(?<![\w])(None|nan)(?![\w])")


def null_issues(definition: BenchmarkDefinition, samples: Sequence[Sample]) -> Iterator[Issue]:
    """A warning for each template field and column that it prints, where the column has no value in some samples.

    Args:
        definition: config bound; its templates are known to compile.
        samples: all that will be run.
    """
    cells: dict[Place, _Cells] = {}
    beside = (definition.dataset.keys if definition.dataset is not None else None) or ()
    for field in template_fields(definition):
        if not field.sees_columns:
            continue
        template = SampleTemplate(field.text)
        for place in places_of(template, beside):
            if place not in cells:
                cells[place] = _Cells.of(place, samples)
            yield from _issues(field, template, cells[place], len(samples))


Place = tuple[str, ...]
"""A column, or a data set and a column of it."""


def places_of(template: SampleTemplate, beside: Collection[str] = ()) -> list[Place]:
    """The cells that a template reads; of data sets side by side (`beside`), those of the rows within the sample."""
    names = (name for name in template.reads if name[0] == "sample" and len(name) > 1)
    return sorted({tuple(map(str, name[1 : 3 if name[1] in beside else 2])) for name in names})


def cell_of(row: Mapping[str, Any], place: Place) -> Any:
    """What stands there; `None` also where nothing does."""
    value: Any = row
    for name in place:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _replaced(row: Mapping[str, Any], place: Place, value: Any) -> dict[str, Any]:
    name, *inner = place
    return {**row, name: _replaced(row[name], tuple(inner), value) if inner else value}


@dataclass(frozen=True)
class _Cells:
    """What a column lacks."""

    place: Place
    missing: Sequence[Sample]

    @classmethod
    def of(cls, place: Place, samples: Sequence[Sample]) -> _Cells:
        return cls(place, [sample for sample in samples if is_missing(cell_of(sample.data, place))])


def _issues(field: TemplateField, template: SampleTemplate, cells: _Cells, total: int) -> Iterator[Issue]:
    compared = field.path[-1] in COMPARED and "scorers" in field.path
    column, found = ".".join(cells.place), cells.missing
    if found and _prints(template, found[0].data):
        null = str(cell_of(found[0].data, cells.place))
        hint = (
            "such samples cannot be compared, and fail"
            if compared and _is_all(template, found[0].data)
            else f"the template prints it as {null!r}; fill in the cells, or write e.g. {{{{ sample.{column} if sample.{column} is string else '' }}}}"
        )
        yield _warning(field, column, "null" if null == "None" else "missing", found, total, hint)
    elif found and _takes_for_true(template, found[0].data, cells.place):
        hint = f"a missing cell counts as true in a condition; write e.g. {{% if sample.{column} is true %}}"
        yield _warning(field, column, "missing", found, total, hint)


def _prints(template: SampleTemplate, row: Mapping[str, Any]) -> bool:
    """Whether the template prints a null of this row; of what only the run knows, it is taken to."""
    if any(name[0] in OUTPUT_NAMES for name in template.reads | template.optional_reads):
        return True
    rendered = _rendered(template, row)
    return rendered is not None and _PRINTED.search(rendered) is not None


def _is_all(template: SampleTemplate, row: Mapping[str, Any]) -> bool:
    """Whether a null is all that the template gives, so that there is nothing to compare; within a text it is a part of that."""
    rendered = _rendered(template, row)
    return rendered is None or _PRINTED.fullmatch(rendered.strip()) is not None


def _takes_for_true(template: SampleTemplate, row: Mapping[str, Any], place: Place) -> bool:
    """Whether a condition of the template takes a missing cell (NaN) for true, which null is not."""
    as_missing = _rendered(template, row)
    as_true, as_null = (_rendered(template, _replaced(row, place, value)) for value in (True, None))
    return cell_of(row, place) is not None and as_missing == as_true != as_null


def _rendered(template: SampleTemplate, row: Mapping[str, Any]) -> str | None:
    try:
        return template.render(sample=row)
    except TemplateError:
        return None  # told of the sample, when it runs


def _warning(
    field: TemplateField, column: str, what: str, found: Sequence[Sample], total: int, hint: str
) -> Issue:
    return Issue(
        f"column {column!r} is {what} in {len(found)} of {total} samples (first: sample {found[0].id!r})",
        path=field.path,
        hint=hint,
        severity="warning",
    )
