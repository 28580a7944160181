"""`function_call_coverage`: matched calls in both modes, and the lists of calls in the metadata."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import permutations
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.dtypes import FunctionCall, SolverTrace, Trace
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.function_calls import ExpectedCall, FunctionCallCoverage, is_subsequence, match
from aigo_bridge.scoring.registry import compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost
from aigo_bridge.spec.scorers import FunctionCallCoverageScorer


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def call(name: str, arguments: str = "{}", number: int = 0) -> FunctionCall:
    return FunctionCall(
        type="function_call",
        id=f"f{number}",
        call_id=f"c{number}",
        name=name,
        arguments=arguments,
        status="completed",
    )


def trace(*calls: FunctionCall, before: Sequence[FunctionCall] = ()) -> SolverTrace:
    output = SolverTrace(trace=Trace(items=list(before)), raw_outputs=[], direct_ios=[])
    output.append_user_message("Book it.")
    output.extend(calls)
    return output


def cover(
    required: Any, *made: str | FunctionCall, mode: str = "any_order", output: SolverTrace | None = None
) -> Score:
    spec = FunctionCallCoverageScorer.model_validate(
        {
            "type": "function_call_coverage",
            "function_calls": "{{ sample.calls | tojson }}",
            "mode": mode,
        }
    )
    output = output or trace(*(each if isinstance(each, FunctionCall) else call(each) for each in made))
    return asyncio.run(FunctionCallCoverage(spec)(Sample(0, {"calls": required}), output, nobody))


def static(function_calls: Any, *made: str, **data: Any) -> Score:
    spec = FunctionCallCoverageScorer.model_validate(
        {"type": "function_call_coverage", "function_calls": function_calls}
    )
    (scorer,) = compile_scorers([spec], samples=[], host=SnippetHost())
    return asyncio.run(scorer.score(Sample(0, data), trace(*map(call, made)), nobody))


def test_all_six_scores_of_a_trace_are_computed() -> None:
    outcome = cover(["find", "book", "book", "pay"], "find", "look", "book", "find")
    assert outcome.values == {
        "all_required_calls_made": False,
        "required_calls_coverage": 0.5,
        "num_required_calls_made": 2,
        "num_required_calls_not_made": 2,
        "num_required_calls_total": 4,
        "num_unrequired_calls": 2,  # look, and the second find
    }
    assert outcome.metadata == {
        "required_calls": ["find", "book", "book", "pay"],
        "called": [{"name": name, "arguments": {}} for name in ("find", "look", "book", "find")],
        "matched_calls": ["find", "book"],
        "unmatched_calls": ["book", "pay"],
        "unrequired_calls": [{"name": "look", "arguments": {}}, {"name": "find", "arguments": {}}],
    }


def test_empty_requirements_are_fully_covered() -> None:
    values = cover([], "look").values
    assert values["all_required_calls_made"] is True
    assert values["required_calls_coverage"] == 1.0
    assert values["num_unrequired_calls"] == 1


def test_trace_without_calls_has_no_coverage() -> None:
    values = cover(["find"]).values
    assert values["all_required_calls_made"] is False
    assert values["required_calls_coverage"] == 0.0


@pytest.mark.parametrize(
    ("made", "complete"), [(("a", "b"), True), (("b", "a"), False), (("b", "a", "x", "b"), True)]
)
def test_order_only_changes_whether_all_required_calls_were_made(
    made: tuple[str, ...], complete: bool
) -> None:
    ordered, any_order = cover(["a", "b"], *made, mode="in_order"), cover(["a", "b"], *made)
    assert ordered.values["all_required_calls_made"] is complete
    assert any_order.values["all_required_calls_made"] is True
    assert {**ordered.values, "all_required_calls_made": True} == any_order.values


@pytest.mark.parametrize(
    ("required", "made", "same"),
    [
        ({"x": 1}, '{"x": 1}', True),
        ({"x": 1}, '{"x": 1.0}', True),
        ({"x": 1, "y": [True, None]}, '{"y": [true, null], "x": 1}', True),
        ({"x": 1}, '{"x": true}', False),
        ({"x": 1}, '{"x": "1"}', False),
        ({"x": 1}, '{"x": 1, "y": 2}', False),
        ({}, "{}", True),
        ({"x": "ü"}, '{"x": "\\u00fc"}', True),
    ],
)
def test_required_arguments_must_match_the_call(required: dict[str, Any], made: str, same: bool) -> None:
    outcome = cover([{"name": "f", "arguments": required}], call("f", made))
    assert outcome.values["all_required_calls_made"] is same


@pytest.mark.parametrize("arguments", ["", "not json", "{", "[" * 100_000])
def test_call_with_invalid_arguments_matches_by_name_only(arguments: str) -> None:
    made = call("f", arguments)
    assert cover(["f"], made).values["all_required_calls_made"] is True
    exact = cover([{"name": "f", "arguments": {}}], made)
    assert exact.values["all_required_calls_made"] is False
    assert exact.metadata["called"] == ["f"]


def test_name_only_requirement_leaves_the_call_needed_by_arguments() -> None:
    required = ["f", {"name": "f", "arguments": {"x": 1}}]
    for made in permutations([call("f", '{"x": 1}'), call("f", '{"x": 2}')]):
        assert cover(required, *made).values["num_required_calls_made"] == 2


def test_calls_before_the_first_user_message_are_ignored() -> None:
    output = trace(call("a"), before=[call("b", number=1)])
    assert cover(["a", "b"], output=output).values["num_required_calls_made"] == 1
    assert cover(["a", "b"], output=output).values["num_unrequired_calls"] == 0


def test_null_arguments_match_any_arguments() -> None:
    assert cover([{"name": "f", "arguments": None}], call("f", '{"x": 1}')).values["all_required_calls_made"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ sample.calls }}", "JSON list"),  # the text of a Python list
        ("find, book", "JSON list"),
        ('{"name": "find"}', "JSON list"),
        ("[1]", "a function name"),
        ('[{"name": "f", "args": {}}]', "a function name"),
        ('[{"name": "f", "arguments": "x"}]', "a function name"),
        ("[" * 100_000, "JSON list"),
    ],
)
def test_invalid_call_lists_are_rejected(text: str, message: str) -> None:
    with pytest.raises(SampleError, match=message) as caught:
        static(text, "find", calls=["find"])
    assert (caught.value.stage, caught.value.kind) == ("score", "InvalidFunctionCalls")
    assert len(caught.value.message) < 200


def test_required_calls_can_be_a_list_with_templates() -> None:
    assert static('["find"]', "find").values["all_required_calls_made"] is True
    assert (
        static(["find", "{{ sample.last }}"], "find", "pay", last="pay").values["num_required_calls_made"]
        == 2
    )
    exact = [{"name": "find", "arguments": {"deep": ["{{ sample.what }}", 1]}}]
    assert static(exact, "find", what="x").metadata["unmatched_calls"] == [
        {"name": "find", "arguments": {"deep": ["x", 1]}}
    ]


def test_missing_trace_fails_the_sample() -> None:
    spec = FunctionCallCoverageScorer(type="function_call_coverage", function_calls="[]")
    with pytest.raises(SampleError, match="not a trace"):
        asyncio.run(FunctionCallCoverage(spec)(Sample(0, {}), None, nobody))


CALLS = st.lists(
    st.builds(ExpectedCall, st.sampled_from(["f", "g"]), st.sampled_from([None, "1", "2"])), max_size=5
)


@given(CALLS, CALLS)
def test_every_call_is_accounted_for_once(required: list[ExpectedCall], made: list[ExpectedCall]) -> None:
    matched, unmatched, surplus = match(required, made)
    assert sorted(map(repr, matched + unmatched)) == sorted(map(repr, required))
    assert len(matched) + len(surplus) == len(made)


@given(CALLS, CALLS)
def test_matching_meets_the_most_requirements(required: list[ExpectedCall], made: list[ExpectedCall]) -> None:
    def best(rest: list[ExpectedCall], free: list[ExpectedCall]) -> int:
        if not rest:
            return 0
        head, *tail = rest
        options = {each for each in free if head.met_by(each)}
        used = [best(tail, [c for i, c in enumerate(free) if i != free.index(each)]) + 1 for each in options]
        return max([best(tail, free), *used])

    assert len(match(required, made)[0]) == best(required, made)


@given(CALLS, CALLS)
def test_calls_in_order_also_match_in_any_order(
    required: list[ExpectedCall], made: list[ExpectedCall]
) -> None:
    if is_subsequence(required, made):
        assert not match(required, made)[1]


@given(CALLS, CALLS, st.randoms())
def test_the_order_of_the_calls_does_not_change_the_counts(
    required: list[ExpectedCall], made: list[ExpectedCall], random: Random
) -> None:
    shuffled = list(made)
    random.shuffle(shuffled)
    assert [len(part) for part in match(required, made)] == [len(part) for part in match(required, shuffled)]


def test_many_calls_are_matched_quickly() -> None:
    names = [f"f{number % 100}" for number in range(20_000)]
    matched, _, _ = match(
        [ExpectedCall(name) for name in names], [ExpectedCall(name, json.dumps({})) for name in names]
    )
    assert len(matched) == 20_000
