"""The single-turn solver: one request, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models import Model, ModelRequest, Models
from aigo_bridge.solving.conversation import empty_trace, input_item
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.spec.solvers import SingleTurnSolver


class SingleTurn:
    """One request, one answer."""

    def __init__(self, spec: SingleTurnSolver):
        self._build = compile_input(spec.input_builder)

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        return await answered(self._build(sample), model)


async def answered(request: ModelRequest, model: Model) -> SolverTrace:
    """The trace of one call: what was sent, then what came back."""
    trace = empty_trace()
    trace.extend([input_item(message) for message in request.input.messages])
    trace.add_model_response(await model.predict(request))
    return trace
