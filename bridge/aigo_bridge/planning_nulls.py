"""What a template makes of cells without a value: told before any model is called, as the text `None` or `nan` looks like an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
    lacking: dict[str, list[Sample]] = {}
    for field in template_fields(definition):
        if not field.sees_columns:
            continue
        template = SampleTemplate(field.text)
        for column in sorted({name[1] for name in template.reads if name[0] == "sample" and len(name) > 1}):
            if column not in lacking:
                lacking[column] = [sample for sample in samples if is_missing(sample.data.get(column))]
            found = lacking[column]
            if found and _prints(template, found[0].data):
                yield _warning(field, column, found, len(samples))


def _prints(template: SampleTemplate, row: Mapping[str, Any]) -> bool:
    """Whether the template prints a null of this row; of what only the run knows, it is taken to."""
    if any(name[0] in OUTPUT_NAMES for name in template.reads | template.optional_reads):
        return True
    try:
        return _PRINTED.search(template.render(sample=row)) is not None
    except TemplateError:
        return False  # told of the sample, when it runs


def _warning(field: TemplateField, column: str, found: Sequence[Sample], total: int) -> Issue:
    compared = field.path[-1] in COMPARED and "scorers" in field.path
    null = found[0].data.get(column)
    return Issue(
        f"column {column!r} is {'null' if null is None else 'missing'} in {len(found)} of {total} samples (first: sample {found[0].id!r})",
        path=field.path,
        hint="such samples cannot be compared, and fail"
        if compared
        else f"the template prints it as {str(null)!r}; fill in the cells, or write e.g. {{{{ sample.{column} if sample.{column} is string else '' }}}}",
        severity="warning",
    )
