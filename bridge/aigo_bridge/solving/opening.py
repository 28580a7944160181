"""What a solver says before it first asks a model: known from the plan alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aigo_bridge.models import ModelRequest
from aigo_bridge.solving.conversation import chat_request, request_of_items
from aigo_bridge.solving.inputs import compile_input, render
from aigo_bridge.solving.recorded import recorded_opening
from aigo_bridge.spec import solvers as spec
from aigo_bridge.templates import SampleTemplate

Opening = Callable[[Mapping[str, Any]], ModelRequest]
"""Row → the conversation before the first answer; raises `SampleError` where the solver would."""


def compile_opening(solver: spec.Solver) -> Opening | None:
    """The opening of a solver's conversations; `None` where only the run makes it, or there are several."""
    match solver:
        case spec.SingleTurnSolver():
            return compile_input(solver.input_builder)
        case spec.PassThroughSolver():
            return _recorded(solver.trace_column)
        case spec.MultiTurnSolver():
            return _written(solver.message_builders)
    return None


def _recorded(column: str) -> Opening:
    return lambda row: request_of_items(recorded_opening(row, column).items)


def _written(builders: Sequence[spec.MessageBuilder]) -> Opening | None:
    written: list[tuple[str, SampleTemplate]] = []
    for builder in builders:
        if not isinstance(builder, spec.ChatMessageBuilder):
            break
        written.append((str(builder.role), SampleTemplate(builder.content)))
        if builder.terminate_if is not None:
            break  # what follows may not be said
    if not written:
        return None
    return lambda row: chat_request((role, render(template, row)) for role, template in written)
