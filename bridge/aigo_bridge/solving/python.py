"""Snippets of a solver, which run in the snippet worker. The `python` solver calls the model from there.
The post-processor turns one solver run into several rows, each with its own scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    ModelResponse,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    TraceItem,
    make_explicit,
)
from aigo_bridge.dtypes.chat import LATE
from aigo_bridge.dtypes.validation import problems
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.models.protocol import GENERATION_OPTIONS, Model, ModelRequest, Models
from aigo_bridge.snippets import InOut, Remote, Snippet
from aigo_bridge.solving.conversation import (
    empty_trace,
    input_item,
    misread_item,
    request_from_body,
    request_of_items,
)
from aigo_bridge.solving.solver import Place, SolverType
from aigo_bridge.spec.solvers import Postprocessor as PostprocessorSpec
from aigo_bridge.spec.solvers import PythonSolver

if TYPE_CHECKING:
    from aigo_bridge.snippets import SnippetHost

_ITEMS: TypeAdapter[list[TraceItem]] = TypeAdapter(list[TraceItem], config=LATE)


class PythonRun:
    """Solver that calls `run_solver(sample, model, trace)`, sync or async.

    The function returns the trace (as `SolverTrace` or as its JSON) or `None`, which keeps the trace
    argument. `await model.predict(inputs, **options)` accepts trace items, chat messages as dictionaries, or
    one user message as text, and returns a `ModelResponse`. `model.key` and `model.name` identify the model.
    """

    def __init__(self, spec: PythonSolver, host: SnippetHost, place: Place | None = None):
        self._snippet = Snippet(spec.run_solver_snippet, "run_solver", "run_solver_snippet").at(place)
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
                # The author did not catch a model failure, so it is reported as the model's failure.
                raise error.__cause__ from None
            raise SampleError(str(error), stage="solver", kind="SnippetError") from error
        return solver_trace(returned, f"{self._snippet.where}: run_solver")


def solver_trace(returned: Any, where: str) -> SolverTrace:
    """Parse the return value of an author's function.

    Raises:
        SampleError: the value is not a `SolverTrace`; `where` names the function.
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
    """Return the request of `model.predict(inputs, **options)`; `inputs` is JSON.

    Raises:
        SampleError: the inputs are not a conversation, or an option would be lost.
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
        raise _bad_input(f"got invalid items: {problems(error)}") from error
    misread = misread_item(inputs, items)
    if misread is not None:
        raise _bad_input(f"got invalid items: {misread}")
    request = request_of_items(items, checked.options)
    chat = request.input.model_copy(update={"response_format": checked.input.response_format})
    return ModelRequest(chat, request.options, request.items)


def _is_chat(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the entries are chat messages: items have a `type` and content in parts."""
    return all(
        "role" in entry and "type" not in entry and isinstance(entry.get("content"), str) for entry in entries
    )


def _kind(inputs: Any) -> str:
    if isinstance(inputs, list):
        odd = next(entry for entry in inputs if not isinstance(entry, dict))
        return f"a list with a {type(odd).__name__}"
    return f"a {type(inputs).__name__}"


def _bad_input(message: str) -> SampleError:
    hint = f"options: {', '.join(sorted(GENERATION_OPTIONS))}, response_format"
    return SampleError(f"model.predict {message}", stage="solver", hint=hint, kind="InvalidModelInput")


PYTHON = SolverType(PythonSolver, lambda spec, context: PythonRun(spec, context.host, context.snippet_place))

ID_COLUMN = "sample_id"
"""Column in which a row may set its own ID."""


@dataclass(frozen=True)
class PostprocessedRow:
    """Row with its own scores."""

    id: str
    """`<sample_id>#<n>` with n from 0, or the row's own `sample_id` if the post-processor set one."""
    data: Mapping[str, Any]
    """Column → value."""
    output: SolverTrace
    """Solver output of this row."""


class PythonPostprocessor:
    """Post-processor that calls `postprocess(sample, solver_output) -> list of (sample, solver_output)`,
    sync or async.
    """

    def __init__(self, spec: PostprocessorSpec, host: SnippetHost, place: Place | None = None):
        self._snippet = Snippet(spec.postprocess_snippet, "postprocess", "postprocess_snippet").at(place)
        self._host = host

    async def __call__(
        self, sample_id: str | int, sample: Mapping[str, Any], output: SolverOutput
    ) -> list[PostprocessedRow]:
        """Return the rows of one solver run in the author's order; the list may be empty.

        Raises:
            SampleError: the code failed, or returned an invalid value (stage `solver`).
        """
        try:
            returned = await self._host.call(self._snippet, dict(sample), output)
        except SnippetError as error:
            raise SampleError(str(error), stage="solver", kind="SnippetError") from error
        if not isinstance(returned, list):
            raise self._invalid(f"a {type(returned).__name__}, expected a list of (sample, solver_output)")
        rows: dict[str, PostprocessedRow] = {}
        for number, pair in enumerate(returned):
            row = self._row(number, pair, sample_id, sample)
            if row.id in rows:
                raise self._invalid(f"two rows with the id {row.id!r}")
            rows[row.id] = row
        return list(rows.values())

    def _row(
        self, number: int, pair: Any, sample_id: str | int, sample: Mapping[str, Any]
    ) -> PostprocessedRow:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], dict):
            raise self._invalid(
                f"another value as entry {number}, expected a pair of sample and solver_output"
            )
        data, output = pair
        written_id = data.get(ID_COLUMN)
        # A copied sample contains the original ID, which identifies the run instead of the row.
        named = written_id not in (None, "") and str(written_id) not in (
            str(sample.get(ID_COLUMN)),
            str(sample_id),
        )
        row_id = str(written_id) if named else f"{sample_id}#{number}"
        where = f"{self._snippet.where}: postprocess, entry {number},"
        trace = _from_chat(output, where) if _is_chat_output(output) else solver_trace(output, where)
        return PostprocessedRow(row_id, data, trace)

    def _invalid(self, problem: str) -> SampleError:
        return SampleError(
            f"{self._snippet.where}: postprocess returned {problem}",
            stage="solver",
            kind="InvalidPostprocessorOutput",
        )


def _is_chat_output(output: Any) -> bool:
    return isinstance(output, dict) and "messages" in output and "trace" not in output


def _from_chat(output: Any, where: str) -> SolverTrace:
    """Convert a `SingleSolverOutput` to a trace, so that scorers handle one type of output."""
    try:
        chat = SingleSolverOutput.model_validate(output)
    except ValidationError as error:
        raise SampleError(
            f"{where} returned no solver output: {problems(error)}",
            stage="solver",
            kind="InvalidPostprocessorOutput",
        ) from error
    trace = empty_trace()
    for message in chat.messages:
        if isinstance(message, ChatCompletionInputMessage | ChatCompletionOutputMessage):
            trace.append(input_item(message))
        else:
            trace.append_custom_task_input_message(message)
    trace.raw_outputs.extend([] if chat.output is None else [chat.output])
    trace.direct_ios = chat.direct_ios
    return make_explicit(trace)
