"""Mutated trace files: the outcome is a valid AI GO trace or an error."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.dtypes import Trace
from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import redaction
from aigo_formats.traces.documents import ReadContext
from aigo_formats.traces.sources import SOURCES, read_traces

GOLDEN = Path(__file__).parents[3] / "golden" / "traces"
REDACTION = redaction(environment={})
SEEDS = {
    "claude_code": ("sub-agent", "compaction", "tools-at-once", "taken-back", "images-and-documents"),
    "opentelemetry": ("agents-in-agents", "message-events", "openllmetry", "log-records", "parts"),
    "phoenix": ("agent-with-tool", "data-frame-columns", "parts", "retrieval", "errors"),
    "langsmith": ("langgraph", "child-runs", "wrapped-anthropic", "typed-messages", "bulk-export-rows"),
}
ODD: list[Any] = [
    None, True, -1, 0, 2**70, 1e308, "", "x", "\ud800", "2026-13-45T99:99:99Z", "0" * 32, [], [[]], [None], {}, {"a": {}}, {"type": "tool_use"},
    {"type": "text", "text": 5}, {"role": "user"}, {"role": 7, "content": {"x": 1}}, [{"type": "tool_result"}], '{"role": "assistant", "tool_calls": [{}]}',
]  # fmt: skip


def reading(**changes: Any) -> ReadContext:
    return ReadContext(redaction=Redactor(rules=REDACTION.rules), **changes)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, part in parts for place in places(part, (*path, key))]


def spoiled(value: Any, path: tuple[Any, ...], odd: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    if odd is ...:
        del value[path[-1]]
    else:
        value[path[-1]] = odd


def spoil(source: str, random: Random, folder: Path) -> Path:
    """Copy the files of a case and insert, replace or delete some values."""
    case = random.choice(SEEDS[source])
    files = GOLDEN / source / case / "files"
    for original in sorted(files.rglob("*.json*")):
        text = original.read_text(encoding="utf-8")
        documents = (
            [json.loads(line) for line in text.splitlines()]
            if original.suffix == ".jsonl"
            else [json.loads(text)]
        )
        every = places(documents)
        for _ in range(random.randint(1, 4)):
            try:
                spoiled(documents, random.choice(every), deepcopy(random.choice([*ODD, ...])))
            except (KeyError, IndexError, TypeError):
                continue  # already mutated in a parent
        target = folder / original.relative_to(files)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    return folder


@pytest.mark.parametrize("source", SOURCES)
def test_mutated_files_result_in_valid_traces_or_an_error(source: str, tmp_path: Path) -> None:
    """The random seed is the number of the mutation, so each failure is reproducible."""
    for number in range(80):
        folder = spoil(source, Random(f"{source} {number}"), tmp_path / str(number))
        try:
            for trace in read_traces(folder, source, reading()):
                json.dumps(trace, allow_nan=False)
                Trace.model_validate(trace)
        except EvidenceError:
            continue
        except Exception as error:
            raise AssertionError(f"{source} {number}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("source", SOURCES)
def test_truncated_files_are_reported_as_damaged(source: str, tmp_path: Path) -> None:
    (original,) = sorted((GOLDEN / source / SEEDS[source][0] / "files").glob("*.json*"))
    data = original.read_bytes()
    for length in range(1, len(data) - 2, max(1, len(data) // 60)):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / original.name).write_bytes(data[:length])
        notes = reading()
        traces = list(read_traces(folder, source, notes))
        assert all(Trace.model_validate(trace) for trace in traces)
        is_whole = original.suffix == ".jsonl" and data[length : length + 1] == b"\n"
        assert notes.damage or is_whole or data[:length].endswith(b"\n"), length


def span(number: int, parent: int | None, **attributes: str) -> dict[str, Any]:
    pairs = [
        {"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()
    ]
    return {"traceId": "1" * 32, "spanId": f"{number:016x}", "parentSpanId": "" if parent is None else f"{parent:016x}", "name": "s",
            "startTimeUnixNano": "1772359200000000000", "endTimeUnixNano": "1772359200000000001", "attributes": pairs}  # fmt: skip


def written(folder: Path, *spans: Any) -> Path:
    file = folder / "spans.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}))
    return file


def test_chain_of_3000_agents_is_read(tmp_path: Path) -> None:
    """Reading needs neither recursion nor quadratic time."""
    many = 3_000
    chain = [span(n + 1, n or None, gen_ai__operation__name="invoke_agent") for n in range(many)]
    calls = [span(many + n + 1, n + 1, gen_ai__operation__name="chat") for n in range(many)]
    (trace,) = read_traces(written(tmp_path, *chain, *calls), "opentelemetry", reading())
    assert len(trace["events"]) == 3 * many
    assert trace["span_id"] == f"{1:016x}"


def test_circular_spans_are_kept(tmp_path: Path) -> None:
    notes = reading()
    (trace,) = read_traces(
        written(tmp_path, *(span(n + 1, (n + 1) % 500 + 1) for n in range(500))), "opentelemetry", notes
    )
    assert len(trace["events"]) == 1000
    assert notes.loss.changed["span inside itself: moved to the top"] == 1


def test_thousands_of_tool_calls_without_ids_are_matched(tmp_path: Path) -> None:
    calls = [{"function": {"name": "f", "arguments": json.dumps({"n": n})}} for n in range(5_000)]
    message = json.dumps([{"role": "assistant", "tool_calls": calls}])
    tools = [
        span(
            n + 2,
            1,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="f",
            gen_ai__tool__call__arguments=json.dumps({"n": n}),
        )
        for n in range(2_000)
    ]
    model = span(20_000, 1, gen_ai__operation__name="chat", gen_ai__output__messages=message)
    (trace,) = read_traces(written(tmp_path, span(1, None), model, *tools), "opentelemetry", reading())
    named = [event for event in trace["events"] if event["type"] == "function_call_event"]
    assert len(named) == 2_000
    assert all(event["model_call_id"] == f"{20_000:016x}" for event in named)


def test_sub_agents_that_call_each_other_are_kept(tmp_path: Path) -> None:
    """Circular spans would otherwise be lost with their content."""
    lines = []
    for own, other in (("a", "b"), ("b", "a")):
        base = {"isSidechain": True, "agentId": own, "sessionId": "s", "timestamp": "2026-03-01T10:00:00Z"}
        use = {"type": "tool_use", "id": f"t-{other}", "name": "Task", "input": {"prompt": other}}
        lines += [
            {
                **base,
                "type": "user",
                "uuid": f"u-{own}",
                "parentUuid": None,
                "message": {"role": "user", "content": own},
            },
            {
                **base,
                "type": "assistant",
                "uuid": f"v-{own}",
                "parentUuid": f"u-{own}",
                "message": {"id": f"m-{own}", "role": "assistant", "content": [use]},
            },
            {
                **base,
                "type": "user",
                "uuid": f"w-{own}",
                "parentUuid": f"v-{own}",
                "toolUseResult": {"agentId": other},
                "message": {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"t-{other}", "content": "x"}],
                },
            },
        ]
    lines.append(
        {
            "type": "user",
            "uuid": "m",
            "parentUuid": None,
            "sessionId": "s",
            "timestamp": "2026-03-01T10:00:00Z",
            "message": {"role": "user", "content": "hi"},
        }
    )
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    notes = reading()
    (trace,) = read_traces(tmp_path, "claude_code", notes)
    assert sum(event["type"] == "span_begin" for event in trace["events"]) == 2
    assert notes.loss.changed["span inside itself: moved to the top"] == 1


def test_trace_size_is_linear_in_session_length(tmp_path: Path) -> None:
    """Model calls do not repeat the previous conversation."""
    lines: list[str] = []
    for n in range(4_000):
        role = "assistant" if n % 2 else "user"
        message = {
            "role": role,
            "content": [{"type": "text", "text": "x" * 100}],
            "id": f"m{n}",
            "model": "c",
        }
        lines.append(
            json.dumps(
                {
                    "type": role,
                    "uuid": str(n),
                    "parentUuid": str(n - 1) if n else None,
                    "sessionId": "s",
                    "message": message,
                }
            )
        )
    text = "\n".join(lines)
    (tmp_path / "s.jsonl").write_text(text)
    (trace,) = read_traces(tmp_path, "claude_code", reading())
    assert len(trace["items"]) == 4_000
    assert len(json.dumps(trace)) < 12 * len(text)


def test_exceeded_bounds_are_named_in_the_error(tmp_path: Path) -> None:
    file = written(tmp_path, span(1, None, a="x" * 1000))
    with pytest.raises(LogTooLargeError, match="'member_bytes'"):
        list(read_traces(file, "opentelemetry", reading(bounds=replace(DEFAULT_BOUNDS, member_bytes=100))))
    with pytest.raises(LogTooLargeError, match="'string_bytes'"):
        list(read_traces(file, "opentelemetry", reading(bounds=replace(DEFAULT_BOUNDS, string_bytes=100))))
    with pytest.raises(LogTooLargeError, match="'events'"):
        list(read_traces(file, "opentelemetry", reading(bounds=replace(DEFAULT_BOUNDS, events=0))))


def test_deeply_nested_values_are_truncated_and_counted(tmp_path: Path) -> None:
    deep = "[" * 300 + "]" * 300
    (tmp_path / "r.jsonl").write_text(
        '{"id": "1", "name": "n", "run_type": "tool", "inputs": {"x": '
        + deep
        + '}, "outputs": {"output": "y"}}\n'
    )
    notes = reading()
    (trace,) = read_traces(tmp_path, "langsmith", notes)
    assert "nested too deeply" in json.dumps(trace)
    assert sum(count for what, count in notes.loss.changed.items() if "nested deeper" in what) == 1


def test_value_too_deep_to_parse_is_reported_as_damage(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(
        '{"id": "1", "run_type": "tool", "inputs": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    )
    notes = reading()
    assert not list(read_traces(tmp_path, "langsmith", notes))
    assert len(notes.damage) == 1


def test_pipes_and_symlinks_out_of_the_root_are_rejected(tmp_path: Path) -> None:
    outside = written(tmp_path, span(1, None))
    root = tmp_path / "root"
    root.mkdir()
    (root / "link.json").symlink_to(outside)
    with pytest.raises(EvidenceError, match="outside the root folder"):
        list(read_traces(root, "opentelemetry", reading(root=root)))
    (root / "link.json").unlink()
    os.mkfifo(root / "pipe.json")
    with pytest.raises(EvidenceError):
        list(read_traces(root / "pipe.json", "opentelemetry", reading(root=root)))


def test_secrets_are_redacted_in_all_sources(tmp_path: Path) -> None:
    notes = reading()
    for source in SOURCES:
        traces = list(read_traces(GOLDEN / source / "secrets" / "files", source, notes))
        assert "sk-ant-api03" in (next((GOLDEN / source / "secrets" / "files").rglob("*.json*"))).read_text()
        assert "Ab3dE6gH9jK2mN5pQ8sT1vW4" not in json.dumps(traces)
    assert sum(notes.redaction.found.values()) >= 6
