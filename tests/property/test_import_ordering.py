"""`from_events` for dictionaries equals `Trace.from_events` for objects."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.dtypes import TRACE_EVENT_TYPE_ADAPTER, Trace, TraceItem
from aigo_inspect.mapping.conversation import derived_items
from aigo_inspect.mapping.spans import ordered_by_span

SPANS = ["a", "b", "c", None]
messages = st.integers(0, 5).map(
    lambda n: {
        "type": "message",
        "id": f"m{n}",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": f"text {n}"}],
    }
)
times = st.integers(0, 9).map(lambda n: f"2030-01-01T00:00:00.{n:06d}Z")


def event(kind: str, fields: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just(kind), "id": st.uuids().map(str), "timestamp": times, **fields}
    )


events = st.lists(
    st.one_of(
        event(
            "model_call_event",
            {
                "span_id": st.sampled_from(SPANS),
                "model": st.just("m"),
                "input_context": st.lists(messages, max_size=4),
                "output_items": st.lists(messages, max_size=1),
            },
        ),
        event(
            "compaction",
            {"span_id": st.sampled_from(SPANS), "strategy": st.sampled_from(["trim", "summary"])},
        ),
        event("custom", {"span_id": st.sampled_from(SPANS), "name": st.just("n"), "data": st.just({})}),
    ),
    max_size=12,
)
tree = st.fixed_dictionaries({"b": st.sampled_from(["a", None]), "c": st.sampled_from(["a", "b", None])})


def spans(parents: dict[str, Any]) -> list[dict[str, Any]]:
    begins = [
        {
            "type": "span_begin",
            "id": f"{s}-begin",
            "span_id": s,
            "parent_span_id": parents.get(s),
            "name": s,
            "timestamp": "2030-01-01T00:00:00.000003Z",
        }
        for s in ("a", "b", "c")
    ]
    ends = [
        {"type": "span_end", "id": f"{s}-end", "span_id": s, "timestamp": begins[0]["timestamp"]}
        for s in "abc"
    ]
    return [*begins, *ends]


@given(events, tree, st.sampled_from(SPANS))
def test_order_and_items_match_the_typed_trace(
    stream: list[dict[str, Any]], parents: dict[str, Any], span_id: str | None
) -> None:
    stream = [*spans(parents), *stream]
    for given_event in stream:
        if given_event.get("span_id", "") is None:
            del given_event["span_id"]
    typed = [TRACE_EVENT_TYPE_ADAPTER.validate_python(event) for event in stream]
    trace = Trace.from_events(typed, span_id=span_id)
    ordered = ordered_by_span(stream)
    assert [e["id"] for e in ordered] == [e.id for e in trace.events or []]
    assert TypeAdapter(list[TraceItem]).validate_python(derived_items(ordered, span_id)) == trace.items
