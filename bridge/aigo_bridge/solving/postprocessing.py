"""Post-processors: the author's code that turns one solver run into several rows, each scored on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from aigo_bridge.dtypes import (
    ChatCompletionInputMessage,
    ChatCompletionOutputMessage,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    make_explicit,
)
from aigo_bridge.dtypes.problems import problems
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.solving.conversation import empty_trace, input_item
from aigo_bridge.solving.python import solver_trace
from aigo_bridge.spec.solvers import Postprocessor as PostprocessorSpec

ID_COLUMN = "sample_id"
"""Column in which a row may name itself."""


@dataclass(frozen=True)
class PostprocessedRow:
    """One row that is scored on its own."""

    id: str
    """`<sample_id>#<n>`, n from 0, or the row's own `sample_id` where the post-processor gave it one."""
    data: Mapping[str, Any]
    """Column → value."""
    output: SolverTrace
    """What the solver said, for this row."""


class Postprocessor:
    """`postprocess(sample, solver_output) -> list of (sample, solver_output)`, sync or async."""

    def __init__(
        self, spec: PostprocessorSpec, host: SnippetHost, label: str, place: tuple[str, int] | None = None
    ):
        self._snippet = Snippet(spec.postprocess_snippet, "postprocess", label).at(place)
        self._host = host

    async def __call__(
        self, sample_id: str | int, sample: Mapping[str, Any], output: SolverOutput
    ) -> list[PostprocessedRow]:
        """The rows of one solver run, in the author's order; there may be none.

        Raises:
            SampleError: the code failed, or returned something else (stage `solver`).
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
                f"something else as entry {number}, expected a pair of sample and solver_output"
            )
        data, output = pair
        own = data.get(ID_COLUMN)
        # A copied sample carries the original's id along: that names the run, not the row.
        named = own not in (None, "") and str(own) not in (str(sample.get(ID_COLUMN)), str(sample_id))
        row_id = str(own) if named else f"{sample_id}#{number}"
        where = f"{self._snippet.where}: postprocess, entry {number},"
        trace = _from_chat(output, where) if _is_chat_output(output) else solver_trace(output, where)
        return PostprocessedRow(row_id, data, trace)

    def _invalid(self, found: str) -> SampleError:
        return SampleError(
            f"{self._snippet.where}: postprocess returned {found}",
            stage="solver",
            kind="InvalidPostprocessorOutput",
        )


def compile_postprocessor(
    spec: PostprocessorSpec,
    host: SnippetHost,
    *,
    snippet_label: str = "postprocess_snippet",
    snippet_place: tuple[str, int] | None = None,
) -> Postprocessor:
    """The post-processor that carries out `spec`; `snippet_label` and `snippet_place` (file, first line) name its code in errors."""
    return Postprocessor(spec, host, snippet_label, snippet_place)


def _is_chat_output(output: Any) -> bool:
    return isinstance(output, dict) and "messages" in output and "trace" not in output


def _from_chat(output: Any, where: str) -> SolverTrace:
    """A `SingleSolverOutput` as a trace, so that scorers see one kind of output."""
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
