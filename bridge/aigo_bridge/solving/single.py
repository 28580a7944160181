"""The single-turn solver: one request, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models import Model, ModelRequest, Models, task_of
from aigo_bridge.solving.conversation import empty_trace, input_item
from aigo_bridge.solving.inputs import body_from_template, compile_input, request_of_value
from aigo_bridge.spec.solvers import GenericInputBuilder, SingleTurnSolver
from aigo_bridge.templates import SampleTemplate


class SingleTurn:
    """One request, one answer."""

    def __init__(self, spec: SingleTurnSolver):
        self._build = compile_input(spec.input_builder)
        builder = spec.input_builder
        self._template = (
            SampleTemplate(builder.template) if isinstance(builder, GenericInputBuilder) else None
        )

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        if self._template is not None and task_of(model) != "chat_completion":
            return await answered(request_of_value(body_from_template(self._template, sample)), model)
        return await answered(self._build(sample), model)


async def answered(request: ModelRequest, model: Model) -> SolverTrace:
    """The trace of one call: what was sent, then what came back."""
    trace = empty_trace()
    trace.extend(request.items or [input_item(message) for message in request.input.messages])
    trace.add_model_response(await model.predict(request))
    return trace
