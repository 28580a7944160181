"""Recorded traces in a column of the data set."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from aigo_bridge.dtypes import SolverTrace, Trace, make_explicit
from aigo_bridge.dtypes.problems import problems
from aigo_bridge.errors import SampleError
from aigo_bridge.models import Model, Models
from aigo_bridge.solving.conversation import chat_output, last_text, misread_item
from aigo_bridge.spec.solvers import PassThroughSolver


class PassThrough:
    """The recorded trace is the output; no model is called.

    The output's one raw output is made from the last assistant message; without such a message there is none.
    """

    def __init__(self, spec: PassThroughSolver):
        self._column = spec.trace_column

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        return self.output(sample)

    def output(self, sample: Mapping[str, Any]) -> SolverTrace:
        """What is passed on.

        Raises:
            SampleError: the cell is no trace.
        """
        trace = recorded_trace(sample, self._column)
        text = last_text(trace.items)
        return SolverTrace(
            trace=trace, raw_outputs=[] if text is None else [chat_output(text)], direct_ios=[]
        )


def recorded_trace(sample: Mapping[str, Any], column: str) -> Trace:
    """The trace in a cell: a mapping with `items`, a list of items, or either of them as JSON text.

    Raises:
        SampleError: there is no such column, or the cell is not a trace.
    """
    found = _data(sample, column)
    try:
        trace = Trace.model_validate(found)
    except ValidationError as error:
        raise _not_a_trace(column, problems(error)) from error
    misread = misread_item(found["items"], trace.items)
    if misread is not None:
        raise _not_a_trace(column, misread)
    return make_explicit(trace)


def recorded_opening(sample: Mapping[str, Any], column: str) -> Trace:
    """What was said before the first answer of a trace in a cell; the rest is not looked at.

    Raises:
        SampleError: there is no such column, or the cell is not a trace.
    """
    before: list[Any] = []
    for item in _data(sample, column)["items"]:
        if not isinstance(item, dict) or item.get("role") not in ("user", "system", "developer"):
            break
        before.append(item)
    return recorded_trace({column: before}, column)


def _data(sample: Mapping[str, Any], column: str) -> dict[str, Any]:
    """A cell as a mapping with `items`."""
    if column not in sample:
        raise _not_a_trace(
            column, f"the sample has no such column, only {', '.join(map(repr, sample)) or 'none'}"
        )
    found = sample[column]
    if isinstance(found, str | bytes):
        try:
            found = json.loads(found)
        except ValueError as error:
            raise _not_a_trace(column, f"its text is not JSON: {error}") from error
        except RecursionError as error:
            raise _not_a_trace(column, "its text is nested too deeply") from error
    if isinstance(found, list):
        found = {"items": found}
    if not isinstance(found, dict):
        kind = "nothing" if found is None else f"a {type(found).__name__}"
        raise _not_a_trace(column, f"found {kind}, expected a mapping with 'items' or a list of items")
    if "items" not in found:
        keys = ", ".join(repr(key) for key in found) or "no keys"
        raise _not_a_trace(column, f"found a mapping with {keys}, expected one with 'items'")
    return found


def _not_a_trace(column: str, reason: str) -> SampleError:
    return SampleError(
        f"column {column!r} does not hold a trace: {reason}", stage="solver", kind="InvalidTrace"
    )
