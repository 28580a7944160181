"""Rendering of the templates of scorers for one sample, with errors as failures of the sample."""

from __future__ import annotations

from typing import Any

from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.templates import SampleTemplate


def render(template: SampleTemplate, values: dict[str, Any]) -> str:
    """Render a template for scoring; an error becomes a failure of the sample at stage `score`."""
    try:
        return template.render(**values)
    except TemplateError as error:
        raise SampleError(str(error), stage="score", kind="TemplateError") from error


_NULLS = ("None", "nan")
"""Template output for a null and for a missing cell."""


def render_compared(template: SampleTemplate, values: dict[str, Any], field: str) -> str:
    """Render a text for comparison. A null or missing value is an error and never the text `None` or `nan`.

    Raises:
        SampleError: the template is one expression without a value, or cannot be rendered.
    """
    text = render(template, values)
    if text.strip() in _NULLS and not template.is_constant and is_missing(template.evaluate(**values)):
        raise SampleError(
            f"{field}: {template.source.strip()} is {'null' if 'None' in text else 'missing'} in this"
            " sample, expected a value to compare",
            stage="score",
            hint=("fill in the cell, or set a default, e.g. {{ sample.x if sample.x is string else '' }}"),
            kind="MissingValue",
        )
    return text
