"""An unusual field of a sample loses at most that field.

Data without an AI GO equivalent is kept or counted.
"""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts

from aigo_bridge.access.bounds import Bounds, LogTooLargeError
from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.importing.log_import import ImportReport, LossReport
from aigo_bridge.results.counts import read_counts
from aigo_bridge.results.reading import LogReader, read_log
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.logs.pools import check_contexts
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.messages import SOURCE_LEFT_OUT, items_from_message, logprobs_of

Json = dict[str, Any]
TIME = "2026-01-01T00:00:00.000000+00:00"
HEADER = {"status": "success", "eval": {"task": "t", "dataset": {}, "config": {}}, "results": {"scores": []}}
ANSWER = {"id": "a", "role": "assistant", "content": "4"}


def sample_of(*, epoch: int = 1, **changes: Any) -> Json:
    """Return a sample as written by current Inspect, with one model call and one tool call inside a span."""
    base = {"span_id": "s", "timestamp": TIME, "working_start": 0.5}
    call = {"id": "c", "function": "f", "arguments": {}, "type": "function"}
    asked = {"id": "a", "role": "assistant", "content": "", "tool_calls": [call]}
    model = {
        "event": "model",
        "uuid": "e2",
        **base,
        "model": "m",
        "input": [],
        "input_refs": [[0, 1]],
        "tools": [{"name": "f"}],
        "tool_choice": "auto",
        "config": {},
        "output": {
            "model": "m",
            "choices": [{"message": asked, "stop_reason": "tool_calls"}],
            "completion": "",
        },
    }
    tool = {
        "event": "tool",
        "uuid": "e3",
        **base,
        "id": "c",
        "function": "f",
        "arguments": {},
        "result": "4",
        "events": [],
    }
    events = [
        {"event": "span_begin", "uuid": "e1", **base, "id": "s", "name": "solver"},
        model,
        tool,
        {"event": "span_end", "uuid": "e4", **base, "id": "s"},
    ]
    question = {"id": "q", "role": "user", "content": "2+2?"}
    return {
        "id": 1,
        "epoch": epoch,
        "input": "2+2?",
        "target": "4",
        "messages": [question, asked],
        "events": events,
        "events_data": {"messages": [question], "calls": []},
        **changes,
    }


def imported(tmp_path: Path, *samples: Json, settings: ImportOptions | None = None) -> ImportReport:
    log = tmp_path / "log.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(HEADER))
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
    return import_file(log, tmp_path / "out", settings or ImportOptions())


def trace_of(result: ImportReport) -> Any:
    assert result.output is not None
    evidence = read_log(result.output).load().evidence
    assert evidence is not None
    ((sample,),) = [evidence.samples or []]
    solver = sample.trials[0].solver
    assert solver is not None
    assert isinstance(solver.output, SolverTrace)
    return solver.output.trace


def model_of(sample: Json) -> Json:
    found: Json = sample["events"][1]
    return found


def answer_of(sample: Json) -> Json:
    found: Json = model_of(sample)["output"]["choices"][0]["message"]
    return found


WRONG: dict[str, Callable[[Json], object]] = {
    "an event of no kind": lambda s: s["events"].append({"event": [], "mark": "MARK"}),
    "an event that is a text": lambda s: s["events"].append("MARK"),
    "references that are a number": lambda s: model_of(s).update(input_refs=5, role="MARK"),
    "an input that is a number": lambda s: model_of(s).update(input=5, role="MARK"),
    "tools that are a number": lambda s: model_of(s).update(tools=5, role="MARK"),
    "tools that are texts": lambda s: model_of(s).update(tools=["MARK"]),
    "an output that is a list": lambda s: model_of(s).update(output=["MARK"]),
    "choices that are a number": lambda s: model_of(s)["output"].update(choices=5, x="MARK"),
    "a config that is a list": lambda s: model_of(s).update(config=["MARK"]),
    "a call that is a text": lambda s: model_of(s).update(call="MARK"),
    "content that is a number": lambda s: answer_of(s).update(content=5, x="MARK"),
    "content that is an object": lambda s: answer_of(s).update(content={"x": "MARK"}),
    "a part of no type": lambda s: answer_of(s).update(content=[{"type": [], "x": "MARK"}]),
    "citations that are a number": lambda s: answer_of(s).update(
        content=[{"type": "text", "text": "MARK", "citations": 5}]
    ),
    "calls that are a number": lambda s: answer_of(s).update(tool_calls=5, x="MARK"),
    "a message of no role": lambda s: s["messages"].append({"role": [], "content": "MARK"}),
    "a last message of odd content": lambda s: s["messages"].append(
        {"role": "assistant", "content": {"x": "MARK"}}
    ),
    "an output of the sample without choices": lambda s: s.update(output={"choices": 5, "x": "MARK"}),
    "an integer of 400 digits": lambda s: s.update(total_time=10**400, description="MARK"),
    "a time of 400 digits": lambda s: s["events"][2].update(working_time=10**400, view={"x": "MARK"}),
    "a tool error that is a text": lambda s: s["events"][2].update(error="MARK"),
    "events of a tool that are a text": lambda s: s["events"][2].update(events="MARK"),
    "an id that is a list": lambda s: s["events"][2].update(uuid=["MARK"]),
    "a span that is a list": lambda s: s["events"][2].update(span_id=["MARK"]),
    "a time that is none": lambda s: s["events"][2].update(timestamp="MARK"),
    "metadata that is a list": lambda s: s["events"][2].update(metadata=["MARK"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_invalid_field_does_not_lose_the_sample(name: str, tmp_path: Path) -> None:
    sample = sample_of()
    WRONG[name](sample)
    result = imported(tmp_path, sample)
    assert (result.exit_code, result.samples) == (0, 1), result.reason
    assert result.output is not None
    assert "MARK" in result.output.read_text()
    assert len(trace_of(result).events) >= 4


@pytest.mark.parametrize("parent", [["MARK"], {"x": "MARK"}, 5, True, 0, [], False])
def test_a_non_text_parent_is_kept_and_counted(parent: Any, tmp_path: Path) -> None:
    sample = sample_of()
    sample["events"][0]["parent_id"] = parent
    result = imported(tmp_path, sample)
    assert (
        result.loss.changed["event with an id, span or time of an unexpected shape: original value kept"] == 1
    )
    begin = next(event for event in trace_of(result).events if event.type == "span_begin")
    assert begin.metadata["inspect"]["unreadable"] == {"parent_id": parent}
    assert begin.parent_span_id is None


@pytest.mark.parametrize(
    ("refs", "unknown"),
    [([[0, 5]], 1), ([[-3, 1]], 1), (5, 1), (["x"], 1), ([[0, 1], [1, 0]], 1), ([[0, 1], None, [7, 9]], 2)],
)
def test_messages_missing_in_the_pool_are_counted(refs: Any, unknown: int, tmp_path: Path) -> None:
    sample = sample_of()
    model_of(sample)["input_refs"] = refs
    result = imported(tmp_path, sample)
    assert result.exit_code == 0
    assert result.loss.dropped["messages referenced by number: missing from the log"] == unknown
    (call,) = [event for event in trace_of(result).events if event.type == "model_call_event"]
    assert call.metadata["inspect"]["input_refs"] == refs


UNKNOWN: dict[str, Callable[[Json], object]] = {
    "a model event": lambda s: model_of(s).update(new="MARK"),
    "a tool event": lambda s: s["events"][2].update(new="MARK"),
    "a begin": lambda s: s["events"][0].update(new="MARK"),
    "an end": lambda s: s["events"][3].update(new="MARK"),
    "an output": lambda s: model_of(s)["output"].update(new="MARK"),
    "a choice": lambda s: model_of(s)["output"]["choices"][0].update(new="MARK"),
    "an answer": lambda s: answer_of(s).update(new="MARK"),
    "a call": lambda s: answer_of(s)["tool_calls"][0].update(new="MARK"),
    "a question": lambda s: s["events_data"]["messages"][0].update(new="MARK"),
    "a part": lambda s: answer_of(s).update(
        content=[{"type": "text", "text": "x", "internal": {"x": "MARK"}}]
    ),
    "reasoning": lambda s: answer_of(s).update(
        content=[{"type": "reasoning", "reasoning": "x", "internal": "MARK"}]
    ),
    "a citation": lambda s: answer_of(s).update(
        content=[{"type": "text", "text": "x", "citations": [{"type": "url", "url": "u", "new": "MARK"}]}]
    ),
    "the source of a message": lambda s: s["events_data"]["messages"][0].update(source="MARK"),
    "another completion": lambda s: model_of(s)["output"].update(completion="MARK"),
    "a second error": lambda s: (model_of(s).update(error="one"), model_of(s)["output"].update(error="MARK")),
    "the rest of a raw call": lambda s: model_of(s).update(
        call={"request": {}, "response": {}, "new": "MARK"}
    ),
    "the sample's output": lambda s: s.update(
        output={"model": "m", "choices": [], "metadata": {"x": "MARK"}}
    ),
    "when it began": lambda s: s.update(started_at="MARK"),
    "the type of a tool": lambda s: s["events"][2].update(type="MARK"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_fields_without_an_ai_go_equivalent_are_kept(name: str, tmp_path: Path) -> None:
    sample = sample_of()
    UNKNOWN[name](sample)
    result = imported(tmp_path, sample)
    assert result.exit_code == 0
    assert result.output is not None
    assert "MARK" in result.output.read_text()
    trace_of(result)


@pytest.mark.parametrize("name", [*UNKNOWN, *WRONG])
def test_both_parsers_give_the_same_unusual_fields(name: str, logs: dict[str, Path]) -> None:
    sample = sample_of()
    {**UNKNOWN, **WRONG}[name](sample)
    data = json.dumps(sample, separators=(",", ":")).encode()
    with open_log(logs["plain"]) as log:
        ((ref, _), *_) = texts(logs["plain"])
        found = strict(log, ref, data)
        assert found is None or found == lenient(log, ref, data)


def test_omitted_message_sources_and_models_are_counted(tmp_path: Path) -> None:
    sample = sample_of()
    answer_of(sample).update(source="generate", model="m")
    sample["messages"][1] = dict(answer_of(sample))
    sample["events_data"]["messages"][0]["source"] = "input"
    sample["messages"][0]["source"] = "input"
    assert imported(tmp_path, sample).loss.changed[SOURCE_LEFT_OUT] == 2


@pytest.mark.parametrize("kind", ["data", "brand_new"])
@pytest.mark.parametrize("order", [1, -1])
def test_data_parts_are_not_answer_text(kind: str, order: int, tmp_path: Path) -> None:
    """As in `message.text` of Inspect, which is the scored text."""
    parts = [{"type": kind, "data": {"z": "ä"}}, {"type": "text", "text": "cut"}][::order]
    sample = sample_of()
    answer_of(sample).update(content=parts, tool_calls=None)
    sample["messages"][1] = dict(answer_of(sample))
    result = imported(tmp_path, sample)
    trace = trace_of(result)
    assert trace.get_last_assistant_text() == "cut"
    (item,) = trace.assistant_messages
    (file,) = [part for part in item.content if part.type == "input_file"]
    assert "ä" in unquote(file.file_url)
    assert result.loss.changed[f"content of type {kind} in an answer: written as input_file"] == 1


@pytest.mark.parametrize(
    "token", [5, "x", {"bytes": 5}, {"bytes": ["x"]}, {"bytes": {"a": 1}}, {"top_logprobs": 5}, None]
)
def test_unusual_log_probabilities_are_kept_unchanged(token: Any, tmp_path: Path) -> None:
    given = {"token": "4", "logprob": -1, "bytes": [52], "top_logprobs": []}
    tokens = [{**given, **token} if isinstance(token, dict) else token]
    loss = LossReport()
    assert logprobs_of({"logprobs": {"content": tokens}}, loss) is None
    assert sum(loss.changed.values()) == 1
    sample = sample_of()
    answer_of(sample).update(content="4")
    model_of(sample)["output"]["choices"][0]["logprobs"] = {"content": tokens}
    (call,) = [e for e in trace_of(imported(tmp_path, sample)).events if e.type == "model_call_event"]
    assert call.metadata["inspect"]["logprobs"] == {"content": tokens}


def test_a_message_that_cannot_be_mapped_is_kept_completely() -> None:
    loss = LossReport()
    message = {"role": "assistant", "content": 5}
    assert items_from_message(message, loss) == [{"type": "custom_task_input_message", "content": message}]
    assert loss.changed["message of an unexpected shape: kept as custom message"] == 1


# Bounds of a sample


def test_peak_memory_does_not_grow_with_the_number_of_epochs(tmp_path: Path) -> None:
    events = [
        {"event": "info", "uuid": f"i{i}", "timestamp": TIME, "working_start": 0.0, "data": [{"n": i}] * 20}
        for i in range(500)
    ]
    peaks = []
    for epochs in (2, 12):
        tracemalloc.start()
        result = imported(tmp_path, *(sample_of(epoch=n + 1, events=events) for n in range(epochs)))
        tracemalloc.stop()
        assert (result.exit_code, result.samples, result.trials) == (0, 1, epochs)
        tracemalloc.start()
        import_file(tmp_path / "log.eval", tmp_path / "out", ImportOptions())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(("epochs", "failures"), [((2, 3), 0), ((1, 2, 3, 4), 1)])
def test_a_sample_fails_if_all_its_epochs_failed(
    epochs: tuple[int, ...], failures: int, tmp_path: Path
) -> None:
    failed = {"error": {"message": "m", "traceback": "", "traceback_ansi": ""}, "scores": {}}
    samples = [sample_of(epoch=n, **(failed if n in epochs else {})) for n in (1, 2, 3, 4)]
    other = [{**sample_of(epoch=n), "id": 2} for n in (1, 2)]

    result = imported(tmp_path, *samples, *other)

    assert (result.samples, result.trials, result.failed) == (2, 6, failures)
    assert result.output is not None
    counts, _ = read_counts(LogReader(result.output))
    assert (counts.samples, counts.failed, counts.failed_trials) == (2, failures, len(epochs))


@pytest.mark.parametrize(
    ("messages", "refs", "calls"), [(1000, [[0, 1000]] * 9000, 1), (20, [[0, 20]] * 500, 40)]
)
@pytest.mark.parametrize("inline", [False, True])
def test_a_message_pool_with_too_many_references_is_refused(
    messages: int, refs: list[list[int]], calls: int, inline: bool, tmp_path: Path
) -> None:
    sample = sample_of()
    pool = [{"id": f"p{n}", "role": "user", "content": "x" * 20_000} for n in range(messages)]
    sample["events_data"]["messages"] = pool
    sample["events"][1:2] = [{**model_of(sample), "uuid": f"m{n}", "input_refs": refs} for n in range(calls)]
    if inline:
        sample["new_field"] = 1
    result = imported(tmp_path, sample)
    assert (result.exit_code, result.samples) == (3, 0)
    assert "'context_growth'" in result.reason


def test_contexts_of_realistic_agents_are_accepted() -> None:
    """Every call contains all earlier messages, so the references grow with the square of the turns."""
    pool = [{"role": "user", "content": "x" * 1000}] * 1600
    size = 1600 * 1030 + 800 * 2000
    check_contexts([[[0, 2 * n]] for n in range(800)], pool, size, 0, Bounds())
    check_contexts([[[0, 1], [3, 2 * n]] for n in range(800)], pool, size, 50_000_000, Bounds())
    check_contexts([5, None, [[5, 1 << 60]], ["x"]], pool, 1, 0, Bounds())
    with pytest.raises(LogTooLargeError, match="context_growth"):
        check_contexts([[[0, 1600]] * 4000], pool, size, 0, Bounds())
