"""The grouped single-turn solver: several model inputs from one template, each answered on its own.

The template gives a JSON list of chat completion bodies, or a mapping from names to bodies; the output is a
`GroupedSolverTrace` of the same shape. (The format has a class for the output and a generic builder for the input; that the
group's shape is the template's follows from both.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aigo_bridge.dtypes import GroupedSolverTrace
from aigo_bridge.errors import SampleError
from aigo_bridge.models import Model, ModelRequest, Models, task_of
from aigo_bridge.solving.inputs import body_from_template, request_from_body, request_of_value
from aigo_bridge.solving.single import answered
from aigo_bridge.spec.base import MLTask
from aigo_bridge.spec.solvers import GroupedSingleTurnSolver
from aigo_bridge.templates import SampleTemplate


class GroupedSingleTurn:
    """Several requests, each answered on its own; one failed answer fails all of the group."""

    def __init__(self, spec: GroupedSingleTurnSolver):
        self._template = SampleTemplate(spec.input_builder.template)

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> GroupedSolverTrace:
        # All requests are checked before the first is paid for.
        requests = self.requests(sample, task_of(model))
        answers = {name: await answered(request, model) for name, request in requests.items()}
        if all(isinstance(name, int) for name in answers):
            return GroupedSolverTrace(solver_outputs=list(answers.values()))
        return GroupedSolverTrace(solver_outputs={str(name): answer for name, answer in answers.items()})

    def requests(
        self, sample: Mapping[str, Any], task: MLTask = "chat_completion"
    ) -> dict[str | int, ModelRequest]:
        """The requests of a model for a task, by name, or by position for a list.

        Raises:
            SampleError: the template gives no group of model inputs.
        """
        bodies = body_from_template(self._template, sample)
        if isinstance(bodies, list) and bodies:
            return {index: _request(index, body, task) for index, body in enumerate(bodies)}
        if isinstance(bodies, dict) and bodies and "messages" not in bodies:
            return {name: _request(name, body, task) for name, body in bodies.items()}
        found = f"a {type(bodies).__name__}" if bodies else f"an empty {type(bodies).__name__}"
        if isinstance(bodies, dict) and bodies:
            found = "one model input"
        raise SampleError(
            f"the input template gave {found}, expected a list of model inputs or a mapping from names to them",
            stage="solver",
            hint='write [{"messages": […]}, …]',
            kind="InvalidModelInput",
        )


def _request(name: str | int, body: Any, task: MLTask) -> ModelRequest:
    if task != "chat_completion":
        return request_of_value(body)
    try:
        return request_from_body(body)
    except SampleError as error:
        raise SampleError(
            f"input {name!r} of the group: {error.message}", stage="solver", hint=error.hint, kind=error.kind
        ) from error
