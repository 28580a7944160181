"""Shortened contexts of a result are restored, up to a size limit."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import EvidenceError
from aigo_bridge.results import reading
from aigo_bridge.results.reading import expand_contexts

ITEMS = [{"type": "custom_task_input_message", "content": number} for number in range(9)]


def sample_of(events: list[Any]) -> dict[str, Any]:
    return {"trials": [{"solver": {"output": {"trace": {"events": events}}}}]}


def call(name: str, context: list[Any], **note: Any) -> dict[str, Any]:
    metadata = {"inspect": {"context": note}} if note else {"inspect": {}}
    return {"type": "model_call_event", "id": name, "input_context": context, "metadata": metadata}


@given(st.lists(st.lists(st.sampled_from(ITEMS), max_size=5), max_size=8))
def test_shortened_contexts_are_restored_from_any_earlier_call(wanted: list[list[Any]]) -> None:
    full = [call(str(number), context) for number, context in enumerate(wanted)]
    short = [copy.deepcopy(event) for event in full]
    for number in range(1, len(short)):
        before, here = wanted[number - 1], wanted[number]
        first = 0
        while first < min(len(before), len(here)) and before[first] == here[first]:
            first += 1
        if first:
            short[number] = call(str(number), here[first:], of=str(number - 1), first=first)
    assert expand_contexts(sample_of(short)) == sample_of(full)


@pytest.mark.parametrize(
    "sample",
    [
        {},
        {"trials": None},
        {"trials": [None, 3, {"solver": "x"}]},
        sample_of([None, 1, call("a", [], of="nobody", first=3)]),
        sample_of([call("a", ITEMS[:1]), call("b", [], of="a", first=2)]),
        sample_of([call("a", ITEMS[:1]), call("b", [], of=["a"], first=1)]),
        sample_of([call("a", ITEMS[:1]), call("b", [], of="a", first=-1)]),
        sample_of([{"type": "model_call_event", "metadata": 5, "input_context": 3, "id": []}]),
    ],
)
def test_invalid_shortened_contexts_stay_unchanged(sample: dict[str, Any]) -> None:
    assert expand_contexts(copy.deepcopy(sample)) == sample


def test_expanded_contexts_have_a_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ITEMS", 100)
    events = [call("0", [ITEMS[0]])]
    events += [call(str(n), [ITEMS[0]], of=str(n - 1), first=n) for n in range(1, 50)]
    with pytest.raises(EvidenceError, match="more than 100 items"):
        expand_contexts(sample_of(events))
