"""A solver that tasks do not have, in one file as a new one would be: the model is asked again, with its first answer, for a better one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models.protocol import Model, ModelRequest, Models
from aigo_bridge.solving.conversation import chat_request, empty_trace, render, request_of_items, text_item
from aigo_bridge.solving.solver import SolverType
from aigo_bridge.spec.base import Path
from aigo_bridge.spec.solvers import SolverSpec
from aigo_bridge.templates import SampleTemplate


class SecondThoughtSolver(SolverSpec):
    """Two model calls per sample: a question, and whether the model is sure."""

    type: Literal["second_thought"]
    question: str
    """Template over `sample`."""
    doubt: str = "Are you sure?"
    """What is said to the first answer."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        yield ("question",), self.question

    @property
    def talks(self) -> bool:
        return True


class SecondThought:
    """Asks twice."""

    def __init__(self, spec: SecondThoughtSolver):
        self._question = SampleTemplate(spec.question)
        self._doubt = spec.doubt

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        trace = empty_trace()
        for text in (render(self._question, sample), self._doubt):
            trace.append(text_item("user", text))
            trace.add_model_response(await model.predict(request_of_items(trace.items)))
        return trace

    def opening(self, sample: Mapping[str, Any]) -> ModelRequest:
        """The question."""
        return chat_request([("user", render(self._question, sample))])


SECOND_THOUGHT = SolverType(
    SecondThoughtSolver,
    lambda spec, context: SecondThought(spec),
    lambda spec: SecondThought(spec).opening,
)
