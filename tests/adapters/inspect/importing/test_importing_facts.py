"""Comparison of imported logs with the API of Inspect: every event, call, score and error."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent, SpanBeginEvent, ToolEvent
from inspect_ai.log import EvalSample, read_eval_log
from tests.support.inspect_logs import rare as rare_logs
from tests.support.inspect_logs import scripted as scripted_logs

from aigo_bridge.dtypes import (
    CustomEvent,
    FunctionCall,
    FunctionCallEvent,
    Message,
    ModelCallEvent,
    SampleTrialEvidence,
    SolverTrace,
    TaskResultLog,
    Trace,
)
from aigo_bridge.dtypes import SpanBeginEvent as OurSpanBegin
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.text.json_text import without_non_finite
from aigo_inspect.importing.api import import_log, iter_samples

NAMES = [*scripted_logs.TASKS, *rare_logs.RARE, "edited", "scored again", "invalidated", "agents.json"]
KINDS = {
    "model": "model_call_event",
    "tool": "function_call_event",
    "span_begin": "span_begin",
    "span_end": "span_end",
    "error": "error",
}


def trace_of(trial: SampleTrialEvidence) -> Trace:
    assert trial.solver is not None
    output = trial.solver.output
    assert isinstance(output, SolverTrace)
    return output.trace


def pairs(path: Path, log: TaskResultLog) -> list[tuple[EvalSample, SampleTrialEvidence]]:
    native = read_eval_log(str(path), resolve_attachments="full")
    assert native.samples is not None
    by_key = {(sample.id, sample.epoch): sample for sample in native.samples}
    assert log.evidence is not None
    assert log.evidence.samples is not None
    trials = [trial for sample in log.evidence.samples for trial in sample.trials]
    assert {(trial.sample_id, trial.index + 1) for trial in trials} == by_key.keys()
    return [(by_key[trial.sample_id, trial.index + 1], trial) for trial in trials]


@pytest.fixture(scope="module", params=NAMES)
def imported(request: pytest.FixtureRequest, logs: dict[str, Path]) -> tuple[Path, TaskResultLog, LossReport]:
    loss = LossReport()
    path = logs[request.param]
    return path, import_log(path, keep="all", loss=loss), loss


def test_every_event_is_imported_with_its_type(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, loss = imported
    for native, trial in pairs(path, log):
        expected: Counter[str] = Counter()
        for event in native.events:
            kind = KINDS.get(event.event, event.event)
            expected[kind] += 1
        found: Counter[str] = Counter()
        for ours in trace_of(trial).events or []:
            found[ours.name if isinstance(ours, CustomEvent) else ours.type] += 1
        assert found == expected
    assert loss.lost == sum(count for kind, count in loss.dropped.items() if kind.startswith("sample."))


def text_of_items(items: list[Any]) -> list[str]:
    """Return the texts of messages without reasoning, and the names of calls."""
    texts = []
    for item in items:
        if isinstance(item, Message):
            texts += [
                part.text for part in item.content if part.type in ("input_text", "output_text", "text")
            ]
        elif isinstance(item, FunctionCall):
            texts.append(f"{item.name}({item.arguments})")
        else:
            texts.append(item.output if isinstance(item.output, str) else "parts")
    return texts


def text_of_messages(messages: list[Any]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        if message.role == "tool":
            plain = isinstance(message.content, str)
            texts.append(
                (message.content or (message.error.message if message.error else "")) if plain else "parts"
            )
            continue
        parts = [message.content] if isinstance(message.content, str) else message.content
        for part in parts:
            if isinstance(part, str):
                texts += [part] if part or not getattr(message, "tool_calls", None) else []
            elif part.type == "text":
                texts.append(part.text)
            elif part.type == "tool_use":
                texts += [f"{part.name}({part.arguments})", part.result]
            elif part.type == "data":
                texts.append(json.dumps(part.data, separators=(",", ":")))
        for call in getattr(message, "tool_calls", None) or []:
            texts.append(f"{call.function}({json.dumps(call.arguments, separators=(',', ':'))})")
    return texts


def test_every_model_call_has_context_answer_usage_and_tools(
    imported: tuple[Path, TaskResultLog, LossReport],
) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        calls = {event.uuid: event for event in native.events if isinstance(event, ModelEvent)}
        found = [event for event in trace_of(trial).events or [] if isinstance(event, ModelCallEvent)]
        assert {event.id for event in found} == calls.keys()
        for ours in found:
            event = calls[ours.id or ""]
            assert ours.model == event.model
            assert text_of_items(ours.input_context) == text_of_messages(event.input)
            answers = [choice.message for choice in event.output.choices[:1]]
            if event.error and not any(message.text or message.tool_calls for message in answers):
                # A failed call has no answer; Inspect records an empty one.
                answers = []
            assert text_of_items(ours.output_items) == text_of_messages(answers)
            assert ours.tools == [tool.name for tool in event.tools]
            usage = event.output.usage
            assert (ours.usage is None) == (usage is None)
            if usage is not None and ours.usage is not None:
                cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
                assert ours.usage.num_prompt_tokens == usage.input_tokens + cached
                assert ours.usage.num_completion_tokens == usage.output_tokens
            assert ours.error == event.error
            assert ours.timestamp == event.timestamp
            if event.completed is None:
                assert ours.total_time is None
            else:
                assert ours.total_time == pytest.approx((event.completed - event.timestamp).total_seconds())
            extra = (ours.metadata or {})["inspect"]
            for name in ("cache", "retries", "role"):
                assert extra.get(name) == getattr(event, name)


def test_every_tool_call_has_arguments_result_and_error(
    imported: tuple[Path, TaskResultLog, LossReport],
) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        calls = {event.uuid: event for event in native.events if isinstance(event, ToolEvent)}
        found = [event for event in trace_of(trial).events or [] if isinstance(event, FunctionCallEvent)]
        assert {event.id for event in found} == calls.keys()
        for ours in found:
            event = calls[ours.id or ""]
            assert (ours.function, ours.call_id, ours.span_id) == (event.function, event.id, event.span_id)
            assert json.loads(ours.arguments) == event.arguments
            if isinstance(event.result, list):
                assert len(ours.result) == len(event.result)
            else:
                assert ours.result == str(event.result)
            assert ours.error == (event.error.message if event.error else None)
            caller = next(e for e in trace_of(trial).events or [] if e.id == ours.model_call_id)
            assert isinstance(caller, ModelCallEvent)
            assert ours.call_id in {
                item.call_id for item in caller.output_items if isinstance(item, FunctionCall)
            }


BASE = {"event", "uuid", "span_id", "timestamp", "working_start", "metadata", "pending"}


def test_every_other_event_has_its_complete_content(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        expected = {
            event.uuid: event.model_dump(mode="json", exclude_none=True, exclude=BASE)
            for event in native.events
            if event.event not in KINDS and event.event != "compaction"
        }
        for data in expected.values():
            data.pop("input_ansi", None)
        found = {
            e.id: e.data
            for e in trace_of(trial).events or []
            if isinstance(e, CustomEvent) and e.name != "compaction"
        }
        assert found.keys() == expected.keys()
        for uuid, data in expected.items():
            ours = found[uuid]
            # Fields that Inspect adds when it reads a log.
            assert without_non_finite({key: value for key, value in data.items() if key in ours})[0] == ours
            assert all(not data[key] for key in data.keys() - ours.keys())


def test_limits_match_the_samples(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        metadata = trace_of(trial).metadata
        assert metadata is not None
        assert metadata.extra is not None
        limit = metadata.extra["inspect"].get("limit")
        assert (limit and limit["type"]) == (native.limit and native.limit.type)


def test_raw_requests_and_responses_are_imported(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        calls = [e.call for e in native.events if isinstance(e, ModelEvent) and e.call is not None]
        assert trial.solver is not None
        output = trial.solver.output
        assert isinstance(output, SolverTrace)
        found = output.direct_ios or []
        assert [json.loads(io.direct_input.body or "") for io in found] == [call.request for call in calls]
        assert [json.loads(io.direct_output.body or "") for io in found] == [call.response for call in calls]


def test_the_span_tree_matches_inspect(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        expected = {
            (e.id, e.parent_id, e.name, e.type) for e in native.events if isinstance(e, SpanBeginEvent)
        }
        events = [e for e in trace_of(trial).events or [] if isinstance(e, OurSpanBegin)]
        assert {(e.span_id, e.parent_span_id, e.name, e.span_type) for e in events} == expected


def test_scores_and_errors_match_the_log(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    for native, trial in pairs(path, log):
        assert [score.scorer_name for score in trial.scores or []] == list(native.scores or {})
        for ours in trial.scores or []:
            score = (native.scores or {})[ours.scorer_name or ""]
            expected = score.value if isinstance(score.value, dict) else {ours.scorer_name: score.value}
            if score.value != score.value:  # NaN: not scored
                assert ours.values == {ours.scorer_name: None}
                assert ours.metadata is not None
                assert ours.metadata["unscored"] is True
                continue
            assert ours.values == expected
            metadata = ours.metadata or {}
            assert metadata.get("answer") == score.answer
            assert metadata.get("explanation") == score.explanation
            assert metadata.get("metadata") == (score.metadata or None)
            assert len(metadata.get("history", [])) == len(score.history)
        expected_errors = [native.error.message] if native.error else []
        if native.invalidation:
            expected_errors.append(f"the sample was marked invalid: {native.invalidation.reason}")
        assert [error.message for error in trial.errors] == expected_errors


def test_metrics_match_the_log(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    results = read_eval_log(str(path), header_only=True).results
    assert log.evidence is not None
    expected = sorted(
        m.value for s in (results.scores if results else []) for m in s.metrics.values() if m.value == m.value
    )
    assert (
        sorted(value for metric in log.evidence.metrics or [] for value in metric.values.values()) == expected
    )
    keys = [(metric.scorer_key, metric.metric_key) for metric in log.evidence.metrics or []]
    assert len(set(keys)) == len(keys)


def test_no_attachment_reference_remains(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    _, log, _ = imported
    assert "attachment://" not in log.model_dump_json()


def test_a_dumped_log_is_read_back_unchanged(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    _, log, _ = imported
    text = log.model_dump_json()
    again = TaskResultLog.model_validate_json(text)
    assert again.model_dump_json() == text


def test_samples_can_be_read_one_at_a_time(imported: tuple[Path, TaskResultLog, LossReport]) -> None:
    path, log, _ = imported
    assert log.evidence is not None
    assert [s.model_dump() for s in iter_samples(path, keep="all")] == [
        s.model_dump() for s in log.evidence.samples or []
    ]
