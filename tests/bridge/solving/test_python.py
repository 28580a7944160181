"""`run_solver` and `postprocess` snippets: abilities, results and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import anyio
import pytest

from aigo_bridge.dtypes import ChatCompletionModelOutput, Message, ModelResponse, SolverTrace
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.snippets import SnippetHost, SnippetLimits
from aigo_bridge.solving.conversation import chat_output, empty_trace, output_items, text_item
from aigo_bridge.solving.python import PostprocessedRow, PythonPostprocessor
from aigo_bridge.solving.registry import compile_solver
from aigo_bridge.solving.solver import Solved
from aigo_bridge.spec.solvers import Postprocessor as PostprocessorSpec
from aigo_bridge.spec.solvers import PythonSolver


@pytest.fixture(scope="module")
def host() -> Iterator[SnippetHost]:
    host = SnippetHost(SnippetLimits(seconds=20))
    yield host
    host.close()


class Echo:
    """Model that repeats the last message or fails."""

    key = ""
    name = "test/echo"

    def __init__(self, failure: Exception | None = None):
        self.requests: list[ModelRequest] = []
        self.failure = failure

    async def predict(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        if self.failure is not None:
            raise self.failure
        last = request.items[-1] if request.items else None
        text = getattr(last, "output", None) or str(request.input.messages[-1].content)
        output = chat_output(text)
        return ModelResponse(raw_output=output, items=output_items(output))


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def solve(host: SnippetHost, source: str, sample: dict[str, Any], model: Echo | None = None) -> SolverTrace:
    spec = PythonSolver(type="python", run_solver_snippet=dedent(source))
    solver = compile_solver(spec, host)
    trace = asyncio.run(solver(sample, model or Echo(), nobody))
    assert isinstance(trace, SolverTrace)
    return trace


def said(trace: Solved) -> list[str]:
    assert isinstance(trace, SolverTrace)
    return [
        f"{item.role.value}: {''.join(getattr(part, 'text', '') for part in item.content)}"
        for item in trace.items
        if isinstance(item, Message)
    ]


def test_the_documented_solver_works(host: SnippetHost) -> None:
    source = """
        async def run_solver(sample, model, trace):
            trace.append_system_message("Be brief.")
            trace.append_user_message(sample["question"])
            response = await model.predict(trace.items)
            trace.add_model_response(response)
            return trace
    """
    trace = solve(host, source, {"question": "Why?\u2028ä"})
    assert said(trace) == ["system: Be brief.", "user: Why?\u2028ä", "assistant: Why?\u2028ä"]
    assert isinstance(trace.output, ChatCompletionModelOutput)
    kept = SolverTrace.model_validate(trace.model_dump(mode="json"))
    assert said(kept) == said(trace)


@pytest.mark.parametrize(
    "inputs",
    [
        "'hi'",
        "[{'role': 'user', 'content': 'hi'}]",
        "{'messages': [{'role': 'user', 'content': 'hi'}]}",
        "(trace.append_user_message('hi'), trace.items)[1]",
        "[item.model_dump() for item in (trace.append_user_message('hi'), trace.items)[1]]",
    ],
)
def test_predict_accepts_items_chat_messages_and_text(host: SnippetHost, inputs: str) -> None:
    model = Echo()
    source = f"""
        async def run_solver(sample, model, trace):
            trace.add_model_response(await model.predict({inputs}, temperature=0.5, max_tokens=7))
    """
    assert said(solve(host, source, {}, model))[-1] == "assistant: hi"
    (request,) = model.requests
    assert [(message.role, message.content) for message in request.input.messages] == [("user", "hi")]
    assert dict(request.options) == {"temperature": 0.5, "max_tokens": 7}


def test_function_calls_and_a_response_format_reach_the_model(host: SnippetHost) -> None:
    source = """
        from latticeflow.core.dtypes import FunctionCall, FunctionCallOutput
        async def run_solver(sample, model, trace):
            trace.append_user_message("How many?")
            trace.append(FunctionCall(id="a", call_id="1", name="f", arguments="{}", status="completed"))
            trace.append(FunctionCallOutput(id="b", call_id="1", output="42", status="completed"))
            form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}
            trace.add_model_response(await model.predict(trace.items, response_format=form))
    """
    model = Echo()
    trace = solve(host, source, {}, model)
    (request,) = model.requests
    assert request.items is not None
    assert [item.type for item in request.items] == ["message", "function_call", "function_call_output"]
    assert request.input.response_format is not None
    assert trace.trace.get_last_assistant_text() == "42"
    assert len(trace.trace.function_calls) == 1


def test_sync_function_can_build_a_trace_without_a_model(host: SnippetHost) -> None:
    source = """
        from latticeflow.assessment.dtypes import SolverTrace, Trace
        def run_solver(sample, model, trace):
            other = SolverTrace(trace=Trace(items=[]), raw_outputs=[])
            other.append_user_message(model.name)
            return other
    """
    assert said(solve(host, source, {})) == ["user: test/echo"]


def test_trace_can_be_returned_as_json(host: SnippetHost) -> None:
    source = """
        def run_solver(sample, model, trace):
            trace.append_user_message("x")
            return {"trace": trace.trace.model_dump(mode="json", exclude_unset=False)}
    """
    assert said(solve(host, source, {})) == ["user: x"]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            "return 4",
            "InvalidSolverOutput",
            "run_solver_snippet: run_solver returned a int, expected a SolverTrace",
        ),
        ("return {}", "InvalidSolverOutput", "returned a mapping with no keys"),
        ("return {'trace': 4}", "InvalidSolverOutput", "returned no SolverTrace: trace"),
        ("return trace.trace", "InvalidSolverOutput", "returned a mapping with 'FORMAT', 'items', expected"),
        (
            "return {'trace': {'items': [{'role': 'user', 'content': 'x'}]}}",
            "InvalidSolverOutput",
            "returned no SolverTrace: trace.items.0: 'type' is missing",
        ),
        (
            "raise ValueError('no')",
            "SnippetError",
            "run_solver_snippet: ValueError: no (line 2, in run_solver",
        ),
        ("await model.predict(4)", "InvalidModelInput", "model.predict got a int, expected items"),
        ("await model.predict([1])", "InvalidModelInput", "model.predict got a list with a int"),
        ("await model.predict([{'type': 'message'}])", "InvalidModelInput", "got invalid items"),
        (
            "await model.predict([{'role': 'user', 'content': 4}])",
            "InvalidModelInput",
            "items.0: 'type' is missing",
        ),
        ("await model.predict('x', top_k=3)", "InvalidModelInput", "model.predict asks for top_k"),
        ("await model.predict([{'role': 'robot', 'content': 'x'}])", "InvalidModelInput", "chat messages"),
    ],
)
def test_solver_failure_is_reported_with_its_kind(
    host: SnippetHost, body: str, kind: str, message: str
) -> None:
    with pytest.raises(SampleError) as caught:
        solve(host, f"async def run_solver(sample, model, trace):\n    {body}", {})
    assert message in caught.value.message
    assert (caught.value.stage, caught.value.kind) == ("solver", kind)


PREDICTS = """
    async def run_solver(sample, model, trace):
        trace.add_model_response(await model.predict(sample["q"]))
"""


def test_model_error_is_raised_unchanged(host: SnippetHost) -> None:
    failure = SampleError("the model failed: 500", stage="solver", kind="HTTPStatusError")
    with pytest.raises(SampleError) as caught:
        solve(host, PREDICTS, {"q": "x"}, Echo(failure))
    assert caught.value is failure


def test_engine_limit_is_raised_unchanged(host: SnippetHost) -> None:
    class LimitExceeded(Exception):  # noqa: N818
        pass

    with pytest.raises(LimitExceeded):
        solve(host, PREDICTS, {"q": "x"}, Echo(LimitExceeded()))


def test_many_solvers_wait_for_models_concurrently(host: SnippetHost) -> None:
    together = 8
    gathered = asyncio.Event()

    class Gathering(Echo):
        """Model that answers only after this many concurrent requests."""

        async def predict(self, request: ModelRequest) -> ModelResponse:
            if len(self.requests) + 1 == together:
                gathered.set()
            response = await super().predict(request)
            await gathered.wait()
            return response

    solver = compile_solver(PythonSolver(type="python", run_solver_snippet=dedent(PREDICTS)), host)
    model = Gathering()

    async def main() -> list[Solved]:
        with anyio.fail_after(60):  # sequential calls would wait forever
            return await asyncio.gather(*[solver({"q": str(i)}, model, nobody) for i in range(24)])

    assert [said(trace) for trace in asyncio.run(main())] == [[f"assistant: {i}"] for i in range(24)]


# Post-processors


def processed(
    host: SnippetHost, source: str, sample: dict[str, Any], sample_id: str | int = "s1"
) -> list[PostprocessedRow]:
    trace = empty_trace()
    trace.append(text_item("user", "List."))
    output = chat_output("a, b")
    trace.add_model_response(ModelResponse(raw_output=output, items=output_items(output)))
    spec = PostprocessorSpec(type="python", postprocess_snippet=dedent(source))
    return asyncio.run(PythonPostprocessor(spec, host)(sample_id, sample, trace))


SPLITS = """
    def postprocess(sample, solver_output):
        answers = solver_output.output.choices[0].message.content.split(", ")
        rows = []
        for answer in answers:
            one = solver_output.model_copy(deep=True)
            one.raw_outputs[-1].choices[0].message.content = answer
            rows.append(({**sample, "answer": answer}, one))
        return rows
"""


def test_post_processor_splits_one_output_into_several_rows(host: SnippetHost) -> None:
    rows = processed(host, SPLITS, {"q": 1})
    assert [(row.id, dict(row.data)) for row in rows] == [
        ("s1#0", {"q": 1, "answer": "a"}),
        ("s1#1", {"q": 1, "answer": "b"}),
    ]
    assert [row.output.output for row in rows] == [chat_output("a"), chat_output("b")]
    assert said(rows[0].output) == ["user: List.", "assistant: a, b"]


def test_new_sample_id_names_the_row_and_a_copied_one_does_not(host: SnippetHost) -> None:
    assert [row.id for row in processed(host, SPLITS, {"sample_id": "s1"})] == ["s1#0", "s1#1"]
    assert [row.id for row in processed(host, SPLITS, {"sample_id": 7}, 7)] == ["7#0", "7#1"]
    named = "async def postprocess(sample, output): return [({'sample_id': 'x/ä'}, output), ({}, output)]"
    assert [row.id for row in processed(host, named, {"sample_id": "s1"})] == ["x/ä", "s1#1"]


def test_post_processor_can_return_no_row(host: SnippetHost) -> None:
    assert processed(host, "def postprocess(sample, output): return []", {}) == []


def test_chat_output_is_converted_to_a_trace(host: SnippetHost) -> None:
    source = """
        from latticeflow.core.dtypes import SingleSolverOutput
        def postprocess(sample, output):
            return [(sample, SingleSolverOutput(messages=output.messages, output=output.output))]
    """
    (row,) = processed(host, source, {})
    assert said(row.output) == ["user: List.", "assistant: a, b"]
    assert row.output.output == chat_output("a, b")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", "postprocess returned a NoneType, expected a list of (sample, solver_output)"),
        ("{}", "returned a dict"),
        ("[1]", "another value as entry 0"),
        ("[(sample, output, 1)]", "another value as entry 0"),
        ("[(sample, output), (4, output)]", "another value as entry 1"),
        ("[(sample, 4)]", "postprocess, entry 0, returned a int, expected a SolverTrace"),
        ("[({'sample_id': 'x'}, output)] * 2", "two rows with the id 'x'"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_invalid_post_processor_result_fails_the_sample(
    host: SnippetHost, returned: str, message: str
) -> None:
    with pytest.raises(SampleError) as caught:
        processed(host, f"def postprocess(sample, output): return {returned}", {})
    assert message in caught.value.message
    assert caught.value.stage == "solver"
