"""`shout`: asks the model in capital letters."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.models.protocol import Model, ModelRequest, Models
from aigo_bridge.solving.conversation import chat_request, empty_trace, render, request_of_items, text_item
from aigo_bridge.solving.solver import SolverType
from aigo_bridge.spec.base import Path
from aigo_bridge.spec.solvers import SolverSpec
from aigo_bridge.templates import SampleTemplate


class ShoutSolver(SolverSpec):
    """`shout`: one model call with the question in capital letters."""

    is_extension = True

    type: Literal["shout"]
    question: str
    """Template over `sample`."""

    def rendered(self) -> Iterator[tuple[Path, str]]:
        """Yield the template that validation checks."""
        yield ("question",), self.question

    @property
    def talks(self) -> bool:
        """Whether the solver calls the evaluated model."""
        return True


class Shout:
    """Solves one sample."""

    def __init__(self, spec: ShoutSolver):
        self._question = SampleTemplate(spec.question)

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        """Return the conversation of one sample."""
        trace = empty_trace()
        trace.append(text_item("user", self._text(sample)))
        trace.add_model_response(await model.predict(request_of_items(trace.items)))
        return trace

    def opening(self, sample: Mapping[str, Any]) -> ModelRequest:
        """Return the first request, for previews."""
        return chat_request([("user", self._text(sample))])

    def _text(self, sample: Mapping[str, Any]) -> str:
        return render(self._question, sample).upper()


SHOUT = SolverType(ShoutSolver, lambda solver, _: Shout(solver), opening=lambda solver: Shout(solver).opening)
