"""Repeated values are created once, both parsers give the same messages, and parts are written without
joining."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts

from aigo_bridge.importing.log_import import LossReport
from aigo_inspect.importing.importing import import_file
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.records import ValueCache

# Values in every event


def test_equal_values_are_created_once_and_different_ones_stay_distinct() -> None:
    made: list[Any] = []

    def make(value: Any) -> Any:
        made.append(value)
        return [value]

    repeated = ValueCache(make)
    one, other = Raw(b'{"a":1}'), Raw(b'{"a":2}')
    assert repeated.of(one) == [{"a": 1}]
    assert repeated.of(other) == [{"a": 2}]
    assert repeated.of(Raw(b'{"a":1}')) is repeated.of(one)
    assert made == [{"a": 1}, {"a": 2}]
    for number in range(1000):
        assert repeated.of(Raw(str(number).encode())) == [number]


# Messages of every type

TEXT = {"type": "text", "text": "said"}
KINDS: list[dict[str, Any]] = [
    {"content": "plain", "role": "user"},
    {"content": "plain", "role": "user", "source": "operator"},
    {"content": "plain", "role": "user", "tool_call_id": ["a", "b"]},
    {"content": "plain", "role": "system", "metadata": {"key": "attachment://" + "1" * 32}},
    {"content": [TEXT, {"type": "image", "image": "data:x", "detail": "original"}], "role": "user"},
    {"content": [{"type": "audio", "audio": "x", "format": "mp3"}, {"type": "brand new"}], "role": "user"},
    {"content": "", "role": "assistant", "source": "generate", "model": "m"},
    {
        "content": "",
        "role": "assistant",
        "tool_calls": [{"id": "", "function": "f", "arguments": {"a": 1e16}}],
    },
    {"content": "x", "role": "assistant", "tool_calls": [{"id": "c", "function": "f", "arguments": "text"}]},
    {"content": "x", "role": "assistant", "tool_calls": [{"id": "c", "function": "f", "arguments": None}]},
    {
        "content": "x",
        "role": "assistant",
        "metadata": {"a": 1},
        "tool_calls": [
            {"id": "c", "function": "f", "arguments": "code", "type": "custom", "parse_error": "bad"}
        ],
    },
    {
        "content": [{"type": "reasoning", "reasoning": "hm", "signature": "s"}, TEXT],
        "role": "assistant",
        "tool_calls": [
            {"id": "c", "function": "f", "arguments": {}, "view": {"format": "text", "content": "v"}}
        ],
    },
    {
        "content": [{"type": "reasoning", "reasoning": "x", "redacted": True, "summary": "s"}],
        "role": "assistant",
    },
    {
        "content": [{**TEXT, "citations": [{"type": "url", "url": "u", "cited_text": "sa"}]}],
        "role": "assistant",
    },
    {"content": "result", "role": "tool", "tool_call_id": "c", "function": "f"},
    {"content": "result", "role": "tool", "tool_call_id": None},
    {"content": "", "role": "tool", "tool_call_id": "c", "error": {"type": "timeout", "message": "late"}},
    {
        "content": [TEXT, {"type": "video", "video": "v", "format": "mov"}],
        "role": "tool",
        "metadata": {"a": [1]},
    },
    {"content": "attachment://" + "1" * 32, "role": "assistant", "source": "generate"},
    {
        "content": "x",
        "role": "assistant",
        "tool_calls": [{"id": "c", "function": "f", "arguments": {"a": "attachment://" + "1" * 32}}],
    },
]


def with_message(text: bytes, message: dict[str, Any], place: str) -> bytes:
    """Return a sample with this message in its pool, as an answer, or at its end."""
    sample = json.loads(text)
    sample["attachments"]["1" * 32] = "a long text"
    message = {"id": "m-new", **message}
    (call, *_) = [event for event in sample["events"] if event["event"] == "model"]
    if place in ("pool", "all"):
        call["input_refs"] = [[0, len(sample["events_data"]["messages"]) + 1]]
        sample["events_data"]["messages"].append(message)
    if place in ("answer", "all"):
        call["output"]["choices"][0]["message"] = message
    if place == "cut answer":
        call["output"]["choices"][0].update(message=message, stop_reason="max_tokens")
    if place in ("end", "all"):
        sample["messages"].append(message)
    return json.dumps(sample, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("place", ["pool", "answer", "cut answer", "end", "all"])
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_every_message_type_is_parsed_directly_into_records(
    logs: dict[str, Path], number: int, place: str
) -> None:
    with open_log(logs["plain"]) as log:
        ((ref, text), *_) = texts(logs["plain"])
        changed = with_message(text, KINDS[number], place)
        found = strict(log, ref, changed)
        assert found is not None
        assert b"attachment://" not in found[0]
        assert found == lenient(log, ref, changed)


def test_a_span_without_an_end_is_counted_once(logs: dict[str, Path], tmp_path: Path) -> None:
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(logs["plain"]) as source, zipfile.ZipFile(log, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.startswith("samples/"):
                sample = json.loads(data)
                last = max(i for i, event in enumerate(sample["events"]) if event["event"] == "span_end")
                del sample["events"][last]
                data = json.dumps(sample).encode()
            target.writestr(name, data)
    result = import_file(log, tmp_path / "result")
    assert result.exit_code == 0
    assert result.loss.kept["sample"] == result.samples
    assert result.loss.changed["span without an end: closed at the last event"] == result.samples


def test_loss_counts_are_added_and_cleared() -> None:
    one, other = LossReport(), LossReport()
    one.kept["a"], other.kept["a"], other.kept["b"], other.dropped["c"], other.changed["d"] = 1, 2, 3, 4, 5
    one.add(other)
    assert one.as_dict() == {"kept": {"a": 3, "b": 3}, "changed": {"d": 5}, "dropped": {"c": 4}}
    one.clear()
    assert one == LossReport()
