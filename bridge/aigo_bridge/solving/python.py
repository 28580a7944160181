"""Solvers that the author writes in Python; they run in the snippet worker and call the model from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aigo_bridge.dtypes import ModelResponse, SolverTrace, TraceItem, make_explicit
from aigo_bridge.dtypes.problems import problems
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.models import GENERATION_OPTIONS, Model, ModelRequest, Models
from aigo_bridge.snippets import InOut, Remote, Snippet, SnippetHost
from aigo_bridge.solving.conversation import empty_trace, misread_item, request_of_items
from aigo_bridge.solving.inputs import request_from_body
from aigo_bridge.spec.solvers import PythonSolver

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem])


class PythonRun:
    """`run_solver(sample, model, trace)`, sync or async.

    It returns the trace (as `SolverTrace` or as its JSON), or nothing: then the trace that it was given counts.
    `await model.predict(inputs, **options)` takes items of a trace, chat messages as dictionaries, or one user message as
    text, and gives a `ModelResponse`; `model.key` and `model.name` tell the model.
    """

    def __init__(
        self, spec: PythonSolver, host: SnippetHost, label: str, place: tuple[str, int] | None = None
    ):
        self._snippet = Snippet(spec.run_solver_snippet, "run_solver", label).at(place)
        self._host = host

    async def __call__(self, sample: Mapping[str, Any], model: Model, models: Models) -> SolverTrace:
        async def predict(inputs: Any, **options: Any) -> ModelResponse:
            return await model.predict(model_request(inputs, options))

        remote = Remote({"key": model.key, "name": model.name})
        try:
            returned = await self._host.call(
                self._snippet, dict(sample), remote, InOut(empty_trace()), callbacks={"predict": predict}
            )
        except SnippetError as error:
            if isinstance(error.__cause__, SampleError):
                # The author let a failure of the model pass: it is the model's, not the code's.
                raise error.__cause__ from None
            raise SampleError(str(error), stage="solver", kind="SnippetError") from error
        return solver_trace(returned, f"{self._snippet.where}: run_solver")


def solver_trace(returned: Any, where: str) -> SolverTrace:
    """What an author's code returned as its output.

    Raises:
        SampleError: it is not a `SolverTrace`; `where` names the function.
    """
    if not isinstance(returned, dict) or "trace" not in returned:
        keys = (
            f"a mapping with {', '.join(map(repr, returned)) or 'no keys'}"
            if isinstance(returned, dict)
            else ""
        )
        raise SampleError(
            f"{where} returned {keys or f'a {type(returned).__name__}'}, expected a SolverTrace",
            stage="solver",
            kind="InvalidSolverOutput",
        )
    try:
        trace = SolverTrace.model_validate({"raw_outputs": [], "direct_ios": [], **returned})
    except ValidationError as error:
        raise SampleError(
            f"{where} returned no SolverTrace: {problems(error)}", stage="solver", kind="InvalidSolverOutput"
        ) from error
    misread = misread_item(returned["trace"]["items"], trace.items)
    if misread is not None:
        raise SampleError(
            f"{where} returned no SolverTrace: trace.{misread}", stage="solver", kind="InvalidSolverOutput"
        )
    return make_explicit(trace)


def model_request(inputs: Any, options: Mapping[str, Any]) -> ModelRequest:
    """The request behind `model.predict(inputs, **options)`; `inputs` as JSON.

    Raises:
        SampleError: the inputs are no conversation, or an option would be lost.
    """
    if isinstance(inputs, str):
        inputs = [{"role": "user", "content": inputs}]
    if isinstance(inputs, dict) and "messages" in inputs:
        return request_from_body({**inputs, **options}, source="model.predict")
    if not isinstance(inputs, list) or not all(isinstance(entry, dict) for entry in inputs):
        raise _bad_input(
            f"got {_kind(inputs)}, expected items of a trace, a list of chat messages, or a text"
        )
    if _is_chat(inputs):
        return request_from_body({**options, "messages": inputs}, source="model.predict")
    checked = request_from_body({**options, "messages": []}, source="model.predict")
    try:
        items = _ITEMS.validate_python(inputs)
    except ValidationError as error:
        raise _bad_input(f"got items that are none: {problems(error)}") from error
    misread = misread_item(inputs, items)
    if misread is not None:
        raise _bad_input(f"got items that are none: {misread}")
    request = request_of_items(items, checked.options)
    chat = request.input.model_copy(update={"response_format": checked.input.response_format})
    return ModelRequest(chat, request.options, request.items)


def _is_chat(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether these are chat messages: items have a `type` and content in parts."""
    return all(
        "role" in entry and "type" not in entry and isinstance(entry.get("content"), str) for entry in entries
    )


def _kind(inputs: Any) -> str:
    if isinstance(inputs, list):
        other = next(entry for entry in inputs if not isinstance(entry, dict))
        return f"a list with a {type(other).__name__}"
    return f"a {type(inputs).__name__}"


def _bad_input(message: str) -> SampleError:
    hint = f"options: {', '.join(sorted(GENERATION_OPTIONS))}, response_format"
    return SampleError(f"model.predict {message}", stage="solver", hint=hint, kind="InvalidModelInput")
