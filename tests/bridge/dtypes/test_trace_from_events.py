"""Traces from event streams: order, derived items, spans."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.bridge.dtypes.building import at, begin, called, compaction, custom, end, message, model_call, said

from aigo_bridge.dtypes import (
    BaseTraceEvent,
    CustomEvent,
    ErrorEvent,
    FunctionCall,
    FunctionCallOutput,
    FunctionCallStatus,
    InputTextContent,
    SpanBeginEvent,
    SpanEndEvent,
    Trace,
    TraceEvent,
    TraceItem,
)


def note(name: str, span: str | None = None, second: float | None = None) -> CustomEvent:
    return CustomEvent(name=name, data={}, span_id=span, timestamp=at(second))


def names(trace: Trace) -> list[str]:
    """Return short names of events: `(s` and `)s` for begin and end of a span, names and texts of others."""
    short = []
    for event in trace.events or []:
        if isinstance(event, SpanBeginEvent):
            short.append(f"({event.span_id}")
        elif isinstance(event, SpanEndEvent):
            short.append(f"){event.span_id}")
        else:
            short.append(getattr(event, "name", event.type))
    return short


class TestArguments:
    def test_empty_stream_gives_an_empty_trace_with_both_lists_set(self) -> None:
        trace = Trace.from_events([])
        assert trace.model_fields_set == {"items", "events"}
        assert trace.model_dump() == {"items": [], "events": []}

    def test_given_span_and_other_fields_are_set(self) -> None:
        trace = Trace.from_events([begin("s"), end("s")], span_id="s", metadata={"model": "m"})

        assert trace.span_id == "s"
        assert trace.metadata is not None
        assert trace.span_name is None
        assert trace.model_fields_set == {"items", "events", "span_id", "metadata"}

    def test_unknown_fields_are_refused(self) -> None:
        with pytest.raises(ValidationError):
            Trace.from_events([], x=1)

    @pytest.mark.parametrize("field", ["items", "events"])
    def test_items_and_events_cannot_be_given(self, field: str) -> None:
        with pytest.raises(TypeError):
            Trace.from_events([], **{field: []})  # type: ignore[arg-type]  # refused at run time

    @pytest.mark.parametrize("events", [[{"type": "custom"}], iter([note("a")]), [None], "text"])
    def test_input_other_than_a_sequence_of_events_is_refused(self, events: Any) -> None:
        with pytest.raises(TypeError):
            Trace.from_events(events)

    def test_tuple_of_events_is_accepted(self) -> None:
        assert names(Trace.from_events((note("a"),))) == ["a"]

    def test_span_that_does_not_occur_has_no_items(self) -> None:
        assert Trace.from_events([said(message("user"))], span_id="s").items == []


class TestOrder:
    def test_events_with_and_without_timestamps_cannot_be_mixed(self) -> None:
        with pytest.raises(ValueError, match="1 of 2 events have a timestamp"):
            Trace.from_events([note("a", second=0), note("b")])

    def test_timestamps_of_span_ends_are_ignored(self) -> None:
        timed_end = SpanEndEvent(span_id="s", timestamp=at(-5))

        assert names(Trace.from_events([begin("s"), note("a", "s"), timed_end])) == ["(s", "a", ")s"]
        assert names(Trace.from_events([begin("s", second=1), note("a", "s", 2), end("s")])) == [
            "(s",
            "a",
            ")s",
        ]

    def test_interleaved_spans_become_blocks(self) -> None:
        stream = [begin("a"), begin("b"), note("1", "a"), note("2", "b"), note("3", "a"), end("a"), end("b")]
        assert names(Trace.from_events(stream)) == ["(a", "1", "3", ")a", "(b", "2", ")b"]

    def test_span_is_nested_by_its_parent_id_not_by_its_position(self) -> None:
        stream = [
            begin("child", "parent"),
            note("1", "child"),
            begin("parent"),
            end("parent"),
            begin("lost", "nowhere"),
        ]
        assert names(Trace.from_events(stream)) == ["(parent", "(child", "1", ")parent", "(lost"]

    def test_event_with_an_unknown_or_missing_span_belongs_to_the_root(self) -> None:
        stream = [begin("s"), note("1"), note("2", "nowhere"), note("3", "s"), end("s")]
        assert names(Trace.from_events(stream)) == ["(s", "3", ")s", "1", "2"]

    def test_siblings_are_sorted_by_time_and_equal_times_keep_their_order(self) -> None:
        stream = [
            note("3", second=3),
            begin("s", second=2),
            note("1", second=1),
            note("b", "s", 9),
            note("a", "s", 8),
        ]
        stream += [note("x", second=2), note("y", second=2)]
        assert names(Trace.from_events(stream)) == ["1", "(s", "a", "b", "x", "y", "3"]

    def test_without_times_siblings_keep_the_order_of_the_stream(self) -> None:
        assert names(Trace.from_events([note("b"), note("a")])) == ["b", "a"]

    def test_last_span_end_is_moved_to_the_end_and_unmatched_ends_are_dropped(self) -> None:
        last = end("s")
        trace = Trace.from_events([end("s"), end("other"), begin("s"), last, note("1", "s")])

        assert names(trace) == ["(s", "1", ")s"]
        assert trace.events is not None
        assert trace.events[-1] is last

    def test_span_without_an_end_stays_without_an_end(self) -> None:
        assert names(Trace.from_events([begin("s"), note("1")])) == ["(s", "1"]

    def test_naive_and_aware_times_among_siblings_cannot_be_compared(self) -> None:
        naive = CustomEvent(name="n", data={}, timestamp=datetime(2024, 1, 1))  # noqa: DTZ001  # without offset on purpose
        with pytest.raises(TypeError):
            Trace.from_events([note("a", second=0), naive])
        in_span = CustomEvent(name="n", data={}, span_id="s", timestamp=datetime(2024, 1, 1))  # noqa: DTZ001  # as above
        assert names(Trace.from_events([begin("s", second=0), in_span])) == ["(s", "n"]

    def test_input_events_are_not_changed(self) -> None:
        stream: list[TraceEvent] = [note("b", second=2), note("a", second=1)]
        before = list(stream)
        Trace.from_events(stream)
        assert stream == before

    def test_spans_may_nest_deeper_than_the_recursion_limit(self) -> None:
        depth = 3000
        stream = [begin(str(i), None if i == 0 else str(i - 1)) for i in range(depth)]
        stream_ends = [end(str(i)) for i in range(depth)]
        trace = Trace.from_events([*stream, *stream_ends, note("x", str(depth - 1))])
        assert names(trace)[depth] == "x"
        assert len(trace.events or []) == 2 * depth + 1

    def test_cyclic_spans_are_dropped(self) -> None:
        stream = [begin("s", "s"), note("1", "s"), begin("a", "b"), begin("b", "a"), note("2")]
        assert names(Trace.from_events(stream)) == ["2"]

    @given(seed=st.integers(), size=st.integers(0, 12))
    def test_shuffled_stream_with_timestamps_gives_the_same_trace(self, seed: int, size: int) -> None:
        """Distinct timestamps define the order, independent of the order of the stream."""
        rng = random.Random(seed)
        stream: list[TraceEvent] = []
        spans: list[str | None] = [None]
        for second in range(size):
            home = rng.choice(spans)
            if rng.random() < 0.3:
                stream += [begin(f"s{second}", home, second), end(f"s{second}")]
                spans.append(f"s{second}")
            else:
                stream.append(said(message("user", str(second)), home, second))
        shuffled = rng.sample(stream, len(stream))

        assert Trace.from_events(shuffled) == Trace.from_events(stream)

    @given(seed=st.integers(), size=st.integers(0, 12))
    def test_ordering_is_idempotent(self, seed: int, size: int) -> None:
        rng = random.Random(seed)
        spans: list[str | None] = [None, "a", "b", "c"]
        stream: list[BaseTraceEvent] = [
            rng.choice(
                [
                    note("n", rng.choice(spans)),
                    begin(rng.choice("abc"), rng.choice([None, "a", "b", "d"])),
                    end(rng.choice("abc")),
                ]
            )
            for _ in range(size)
        ]
        if len({event.span_id for event in stream if isinstance(event, SpanBeginEvent)}) == sum(
            isinstance(event, SpanBeginEvent) for event in stream
        ):
            once = Trace.from_events(stream).events or []
            assert Trace.from_events(once).events == once


class TestItemsFromMessages:
    def test_message_event_item_is_the_same_object(self) -> None:
        item = message("user", "u")
        assert Trace.from_events([said(item)]).items[0] is item

    def test_completed_call_gives_a_call_and_an_answer_with_new_ids(self) -> None:
        event = called("c", result=[InputTextContent(text="r")], id="event", error="ignored")

        one, other = Trace.from_events([said(message("user")), event]).items[1:]

        assert isinstance(one, FunctionCall)
        assert isinstance(other, FunctionCallOutput)
        assert (one.name, one.arguments, one.call_id, one.status) == (
            "f",
            "{}",
            "c",
            FunctionCallStatus.completed,
        )
        assert other.output == event.result
        assert other.status.value == "completed"
        assert len({one.id, other.id, "event"}) == 3
        assert "type" not in one.model_dump()
        assert "type" not in other.model_dump()

    @pytest.mark.parametrize("status", ["in_progress", "incomplete"])
    def test_a_call_that_is_not_completed_has_no_answer(self, status: str) -> None:
        items = Trace.from_events([said(message("user")), called("c", status=status)]).items
        assert [item.type for item in items] == ["message", "function_call"]

    def test_a_failed_call_with_an_empty_result_has_an_empty_answer(self) -> None:
        items = Trace.from_events([said(message("user")), called("c", result="", error="broken")]).items
        assert isinstance(items[2], FunctionCallOutput)
        assert items[2].output == ""

    def test_messages_are_not_deduplicated_and_other_events_are_ignored(self) -> None:
        item = message("user", "u", id="1")
        stream = [
            said(item),
            said(item),
            model_call([item], [item]),
            ErrorEvent(message="m"),
            compaction("summary"),
        ]
        assert Trace.from_events(stream).items == [item, item]

    def test_only_direct_events_of_the_span_are_used(self) -> None:
        stream = [
            said(message("user", "root")),
            begin("s"),
            said(message("user", "in"), "s"),
            called("c", span="s"),
            end("s"),
        ]

        assert Trace.from_events(stream).items == [message("user", "root")]
        assert [item.type for item in Trace.from_events(stream, span_id="s").items] == [
            "message",
            "function_call",
            "function_call_output",
        ]

    def test_message_in_another_span_selects_items_from_messages(self) -> None:
        stream = [model_call([message("user")], []), begin("s"), said(message("user"), "s"), end("s")]
        assert Trace.from_events(stream).items == []

    def test_items_follow_the_order_of_the_events(self) -> None:
        stream = [said(message("user", "2"), second=2), said(message("user", "1"), second=1)]
        assert [item.content[0].text for item in Trace.from_events(stream).user_messages] == ["1", "2"]  # type: ignore[union-attr]  # texts, as built


def numbered(*numbers: int | str) -> list[TraceItem]:
    return [message("user", str(number), id=str(number)) for number in numbers]


def ids(trace: Trace) -> list[str]:
    return [getattr(item, "id", "") for item in trace.items]


def model_stream(text: str) -> list[TraceEvent]:
    """`1 2 > 3, trim, 2 3 > 4`: contexts and outputs of calls, and compactions."""
    events: list[TraceEvent] = []
    for part in text.split(", "):
        if ">" in part:
            context, output = part.split(">")
            events.append(model_call(numbered(*context.split()), numbered(*output.split())))
        else:
            events.append(compaction(part))
    return events


class TestItemsFromModelCalls:
    @pytest.mark.parametrize(
        ("stream", "items"),
        [
            ("1 > 2", "1 2"),
            ("1 > 2, 1 2 3 > 4", "1 2 3 4"),
            ("1 > 2, 9 > ", "9"),
            ("1 > 2,  > ", ""),
            ("s u > a, summary, s x > b", "s u a s x b"),
            ("1 2 3 > 4, trim, 3 4 5 > 6, trim, 5 6 7 > 8", "1 2 3 4 5 6 7 8"),
            ("s 1 2 > 3, trim, s 2 3 4 > 5", "s 2 3 4 5"),
            ("1 2 > 3, trim, 9 > 10", "9 10"),
            ("1 2 > 3, trim,  > 4", "4"),
            ("1 2 > 3, trim", ""),
            ("1 2 > 3, summary", "1 2 3"),
            ("trim, summary, 1 > 2", "1 2"),
            ("1 2 > 3, trim, trim, 3 > 4", "1 2 3 4"),
            ("1 2 > 3, trim, summary, 3 > 4", "1 2 3 4"),
            ("1 2 > 3, summary, summary, 4 > 5", "1 2 3 4 5"),
            ("1 2 > 3, trim, 3 4 > 5, 2 3 > 6", "1 2 2 3 6"),
            ("1 2 > 3, trim, 2 > 9, 3 4 > 5", "1 3 4 5"),
        ],
    )
    def test_last_model_call_of_each_segment_is_used(self, stream: str, items: str) -> None:
        assert ids(Trace.from_events(model_stream(stream))) == items.split()

    def test_tool_events_and_model_calls_of_other_spans_are_ignored(self) -> None:
        stream = [*model_stream("1 > 2"), called("c"), begin("s"), model_call(numbered(7), [], "s"), end("s")]

        assert ids(Trace.from_events(stream)) == ["1", "2"]
        assert ids(Trace.from_events(stream, span_id="s")) == ["7"]

    def test_compaction_in_another_span_does_not_end_a_segment(self) -> None:
        stream = [
            *model_stream("1 > 2"),
            begin("s"),
            compaction("summary", "s"),
            end("s"),
            *model_stream("3 > 4"),
        ]
        assert ids(Trace.from_events(stream)) == ["1", "2", "3", "4"][2:]

    def test_failed_model_call_is_also_used(self) -> None:
        stream = [*model_stream("1 > 2"), model_call(numbered(5), [], error="broken")]
        assert ids(Trace.from_events(stream)) == ["5"]

    def test_empty_item_ids_are_equal(self) -> None:
        before, after = message("user", "a"), message("user", "b")
        stream = [
            model_call([message("user", "x", id="x"), before], []),
            compaction("trim"),
            model_call([after], []),
        ]

        assert [item.content[0].text for item in Trace.from_events(stream).user_messages] == ["x", "b"]  # type: ignore[union-attr]  # texts, as built

    def test_items_without_an_id_are_matched_by_value(self) -> None:
        stream = [
            model_call([custom(1), custom(2, x=0), custom(2, x=1)], []),
            compaction("trim"),
            model_call([custom(2, x=1)], []),
        ]
        assert Trace.from_events(stream).items == [custom(1), custom(2, x=0), custom(2, x=1)]

    def test_items_are_the_same_objects_as_in_the_model_call(self) -> None:
        call = model_call(numbered(1), numbered(2))
        items = Trace.from_events([call]).items
        assert items[0] is call.input_context[0]
        assert items[1] is call.output_items[0]


class TestSpans:
    def test_trace_without_events_has_no_spans(self) -> None:
        assert Trace(items=[]).spans() == []
        assert Trace(items=[], events=[]).spans() == []

    def test_children_come_in_order_with_their_names_events_and_items(self) -> None:
        stream = [
            said(message("user", "root")),
            begin("a", name="A", span_type="agent"),
            said(message("user", "in a"), "a"),
            begin("b", "a", name="B"),
            said(message("user", "in b"), "b"),
            end("b"),
            end("a"),
            begin("c", name="C"),
            end("c"),
        ]
        trace = Trace.from_events(stream, metadata={"model": "m"})

        a, c = trace.spans()

        assert (a.span_id, a.span_name, a.span_type) == ("a", "A", "agent")
        assert names(a) == ["message_event", "(b", "message_event", ")b"]
        assert a.items == [message("user", "in a")]
        assert a.metadata is None
        assert (c.span_name, c.items, c.events) == ("C", [], [])
        assert c.model_fields_set == {"items", "events", "span_id", "span_name"}
        (b,) = a.spans()
        assert (b.span_name, b.items) == ("B", [message("user", "in b")])
        assert b.spans() == []

    def test_span_without_end_or_with_an_unknown_parent_is_not_a_child(self) -> None:
        trace = Trace.from_events([begin("open"), begin("lost", "nowhere"), end("lost")])
        assert trace.spans() == []

    def test_child_span_selects_its_own_item_source(self) -> None:
        stream = [
            said(message("user")),
            begin("calls"),
            model_call(numbered(1), numbered(2), "calls"),
            end("calls"),
            begin("both"),
            model_call(numbered(3), [], "both"),
            begin("inner", "both"),
            said(message("user"), "inner"),
            end("inner"),
            end("both"),
        ]
        calls, both = Trace.from_events(stream).spans()

        assert ids(calls) == ["1", "2"]
        assert both.items == []

    def test_events_of_a_loaded_trace_keep_the_stored_order(self) -> None:
        stored = Trace(
            items=[], events=[begin("s"), note("b", "s"), note("a", "s"), end("s"), note("c", "s")]
        )
        assert names(stored.spans()[0]) == ["b", "a"]

    def test_a_child_of_a_loaded_trace_may_have_mixed_timestamps(self) -> None:
        stored = Trace(items=[], events=[begin("s"), note("a", "s", 1), note("b", "s"), end("s")])
        with pytest.raises(ValueError, match="timestamp"):
            stored.spans()

    def test_a_stored_span_that_ends_before_it_begins_is_empty(self) -> None:
        stored = Trace(items=[], events=[end("s"), note("a", "s"), begin("s")])
        assert [child.events for child in stored.spans()] == [[]]

    def test_children_are_plain_traces(self) -> None:
        class Special(Trace):
            pass

        special = Special.from_events([begin("s"), end("s")])
        assert type(special) is Special
        assert type(special.spans()[0]) is Trace
