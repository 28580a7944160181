"""Spans in the OpenTelemetry conventions for generative AI, as written by exporters, with made-up texts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from tests.golden.traces.sessions import IMAGE, KEY

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"
START = 1_772_359_200_000_000_000


def span_id(number: int) -> str:
    return f"{0xEEE19B7EC3C1B100 + number:016x}"


def value(given: Any) -> dict[str, Any]:
    """Return a value with its type."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": str(given)}
    if isinstance(given, float):
        return {"doubleValue": given}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(part) for part in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    return {"stringValue": given}


def pairs(given: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(part)} for key, part in given.items()]


def span(
    number: int,
    name: str,
    parent: Any = None,
    *,
    seconds: Any = (0, 1),
    error: Any = None,
    events: Any = (),
    **attributes: Any,
) -> dict[str, Any]:
    given = {key.replace("__", "."): part for key, part in attributes.items()}
    result: dict[str, Any] = {
        "traceId": TRACE, "spanId": span_id(number), "name": name, "kind": 3,
        "startTimeUnixNano": str(START + int(seconds[0] * 1e9) + 123), "endTimeUnixNano": str(START + int(seconds[1] * 1e9) + 456),
        "attributes": pairs(given), "status": {} if error is None else {"code": 2, "message": error},
    }  # fmt: skip
    if parent is not None:
        result["parentSpanId"] = span_id(parent)
    if events:
        result["events"] = [
            {"name": n, "timeUnixNano": str(START + 10 + i), "attributes": pairs(a)}
            for i, (n, a) in enumerate(events)
        ]
    return result


def otlp(*spans: Any, resource: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": pairs(resource or {"service.name": "assistant"})},
                "scopeSpans": [
                    {
                        "scope": {"name": "opentelemetry.instrumentation.openai", "version": "2.0"},
                        "spans": list(spans),
                    }
                ],
            }
        ]
    }


def text(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}], **more}


def chat(
    number: int, parent: int | None, heard: Any, said: Any, *, tokens: Any = (97, 52), **more: Any
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "gen_ai__operation__name": "chat",
        "gen_ai__provider__name": "openai",
        "gen_ai__request__model": "gpt-4.1",
        "gen_ai__response__model": "gpt-4.1-2026",
    }
    if heard is not None:
        fields["gen_ai__input__messages"] = json.dumps(heard)
    if said is not None:
        fields["gen_ai__output__messages"] = json.dumps(said)
    if tokens[0] is not None:
        fields["gen_ai__usage__input_tokens"], fields["gen_ai__usage__output_tokens"] = tokens
    return span(number, "chat gpt-4.1", parent, **{**fields, **more})


CALL = {"type": "tool_call", "id": "call_1", "name": "get_weather", "arguments": {"location": "Paris"}}
ANSWER = {"type": "tool_call_response", "id": "call_1", "response": "rainy, 57°F"}
QUESTION = text("user", "Weather in Paris?")
FINAL = text("assistant", "It is rainy.", finish_reason="stop")


def tool(number: int, parent: int, **more: Any) -> dict[str, Any]:
    fields = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": "get_weather",
        "gen_ai__tool__call__id": "call_1",
        "gen_ai__tool__call__arguments": '{"location": "Paris"}',
        "gen_ai__tool__call__result": "rainy, 57°F",
    }
    return span(number, "execute_tool get_weather", parent, **{**fields, **more})


def agent_run(root: int = 1, parent: Any = None) -> list[dict[str, Any]]:
    asked = [QUESTION]
    called = [{"role": "assistant", "parts": [CALL], "finish_reason": "tool_call"}]
    return [
        span(
            root,
            "invoke_agent forecaster",
            parent,
            seconds=(0, 9),
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="forecaster",
            gen_ai__agent__id="asst_1",
            gen_ai__conversation__id="conv_5",
            gen_ai__usage__input_tokens=194,
            gen_ai__usage__output_tokens=104,
        ),
        chat(root + 1, root, asked, called, seconds=(1, 2)),
        tool(root + 2, root, seconds=(3, 4)),
        chat(root + 3, root, [*asked, *called, {"role": "tool", "parts": [ANSWER]}], [FINAL], seconds=(5, 6)),
    ]


def one(name: str, *spans: Any, **more: Any) -> tuple[str, dict[str, str]]:
    return name, {"traces.json": json.dumps(otlp(*spans, **more), ensure_ascii=False)}


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Return the files by name of the case."""
    yield one(
        "chat",
        chat(
            1,
            None,
            [QUESTION],
            [FINAL],
            gen_ai__system_instructions=json.dumps([{"type": "text", "content": "Be short."}]),
        ),
    )
    yield one("agent-with-tool", *agent_run())
    yield one("no-content", chat(1, None, None, None))
    structured = {"gen_ai__input__messages": [QUESTION], "gen_ai__output__messages": [FINAL]}
    yield one("structured-attributes", chat(1, None, None, None, **structured))
    details = (
        "gen_ai.client.inference.operation.details",
        {"gen_ai.input.messages": json.dumps([QUESTION]), "gen_ai.output.messages": json.dumps([FINAL])},
    )
    yield one("details-event", chat(1, None, None, None, events=[details]))
    old = [("gen_ai.system.message", {"gen_ai.system": "openai", "content": "Be short."}), ("gen_ai.user.message", {"content": "Weather in Paris?"}),
           ("gen_ai.assistant.message", {"tool_calls": json.dumps([{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"location":"Paris"}'}}])}),
           ("gen_ai.tool.message", {"id": "call_1", "content": "rainy"}), ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": json.dumps({"role": "assistant", "content": "It is rainy."})})]  # fmt: skip
    yield one("message-events", chat(1, None, None, None, events=old))
    yield one(
        "content-events",
        chat(
            1,
            None,
            None,
            None,
            events=[
                ("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role":"user","content":"Hi"}]'}),
                (
                    "gen_ai.content.completion",
                    {"gen_ai.completion": '[{"role":"assistant","content":"Hello"}]'},
                ),
            ],
        ),
    )
    flat: dict[str, Any] = {"gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be short.", "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "Weather?", "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.finish_reason": "tool_calls", "gen_ai.completion.0.tool_calls.0.id": "call_9", "gen_ai.completion.0.tool_calls.0.name": "get_weather", "gen_ai.completion.0.tool_calls.0.arguments": "{}",
            "llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.prompt_tokens": 30, "gen_ai.usage.completion_tokens": 9, "llm.usage.total_tokens": 39}  # fmt: skip
    yield one(
        "openllmetry",
        span(
            1,
            "travel.workflow",
            traceloop__span__kind="workflow",
            traceloop__entity__name="travel",
            seconds=(0, 3),
        ),
        span(2, "openai.chat", 1, **flat),
        span(
            3,
            "get_weather.tool",
            1,
            traceloop__span__kind="tool",
            gen_ai__tool__name="get_weather",
            traceloop__entity__input="{}",
            traceloop__entity__output="sunny",
            seconds=(1, 2),
        ),
    )
    lines = [otlp(part) for part in agent_run()]
    yield (
        "collector-lines",
        {"traces.jsonl": "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)},
    )
    encoded = json.loads(json.dumps(agent_run()))
    for part in encoded:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in part:
                part[name] = base64.b64encode(bytes.fromhex(part[name])).decode()
    yield one("base64-ids", *encoded)
    snake = json.loads(
        json.dumps(otlp(*agent_run()))
        .replace("resourceSpans", "resource_spans")
        .replace("scopeSpans", "scope_spans")
        .replace("traceId", "trace_id")
        .replace("parentSpanId", "parent_span_id")
        .replace("spanId", "span_id")
        .replace("startTimeUnixNano", "start_time_unix_nano")
        .replace("endTimeUnixNano", "end_time_unix_nano")
    )
    yield "snake-case", {"traces.json": json.dumps(snake, ensure_ascii=False)}
    sub = agent_run(10, parent=3)
    asked = {
        "type": "tool_call",
        "id": "call_sub",
        "name": "ask_forecaster",
        "arguments": {"question": "Weather in Paris?"},
    }
    outer = [
        span(
            1,
            "invoke_agent planner",
            seconds=(0, 20),
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="planner",
        ),
        chat(
            2,
            1,
            [text("user", "Plan a day in Paris.")],
            [{"role": "assistant", "parts": [asked]}],
            seconds=(0.5, 0.8),
        ),
        tool(
            3,
            1,
            gen_ai__tool__name="ask_forecaster",
            gen_ai__tool__call__id="call_sub",
            gen_ai__tool__call__result="It is rainy.",
            seconds=(0.9, 10),
        ),
        chat(
            4,
            1,
            [
                text("user", "Plan a day in Paris."),
                {"role": "assistant", "parts": [asked]},
                {
                    "role": "tool",
                    "parts": [{"type": "tool_call_response", "id": "call_sub", "response": "It is rainy."}],
                },
            ],
            [text("assistant", "Go to the Louvre.")],
            seconds=(11, 12),
        ),
    ]
    yield one("agents-in-agents", *outer, *sub)
    judged = [
        span(
            1,
            "invoke_workflow qa",
            seconds=(0, 9),
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__name="qa",
            gen_ai__input__messages=json.dumps([QUESTION]),
            gen_ai__output__messages=json.dumps([FINAL]),
        ),
        chat(2, 1, [text("system", "You know the weather."), QUESTION], [FINAL], seconds=(1, 2)),
        chat(3, 1, [text("user", "Is this safe: It is rainy.")], [text("assistant", "SAFE")], seconds=(3, 4)),
    ]
    yield one("guard-after-the-answer", *judged)
    yield one(
        "output-that-no-call-said",
        judged[0]
        | {
            "attributes": judged[0]["attributes"][:-1]
            + pairs({"gen_ai.output.messages": json.dumps([text("assistant", "IT IS RAINY.")])})
        },
        *judged[1:],
    )
    failed = (
        "exception",
        {
            "exception.type": "RateLimitError",
            "exception.message": "429 Too Many Requests",
            "exception.stacktrace": "Traceback …",
        },
    )
    yield one(
        "errors",
        span(
            1,
            "invoke_agent a",
            seconds=(0, 5),
            gen_ai__operation__name="invoke_agent",
            error="429 Too Many Requests",
            events=[failed],
        ),
        chat(
            2,
            1,
            [QUESTION],
            None,
            tokens=(None, None),
            error="429 Too Many Requests",
            events=[failed],
            error__type="RateLimitError",
        ),
        tool(3, 1, error="timeout", gen_ai__tool__call__result="", seconds=(2, 3)),
    )
    wrapped = [
        chat(1, None, [QUESTION], [FINAL], seconds=(0, 3)),
        chat(2, 1, [QUESTION], [FINAL], seconds=(1, 2)),
    ]
    yield one("call-around-a-call", *wrapped)
    orphans = [*agent_run()[1:], span(7, "x", 7), span(8, "y", 9), span(9, "z", 8)]
    yield one("orphans-and-circles", *orphans)
    twice = [
        *agent_run(),
        agent_run()[1],
        chat(2, 1, [QUESTION], [text("assistant", "Something else.")], seconds=(7, 8)),
    ]
    yield one("ids-twice", *twice)
    other = json.loads(json.dumps(agent_run()).replace(TRACE, "ffffffffffffffffffffffffffffffff"))
    yield one("two-traces", *agent_run(), *other)
    image = {
        "role": "user",
        "parts": [
            {"type": "text", "content": "What is it?"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": IMAGE},
            {"type": "uri", "modality": "audio", "mime_type": "audio/wav", "uri": "https://x.example/a.wav"},
            {"type": "file", "modality": "image", "file_id": "file_1"},
            {"type": "poll", "options": [1]},
        ],
    }
    thinking = {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "A dot."}, {"type": "text", "content": "A dot."}],
    }
    yield one(
        "parts",
        chat(
            1,
            None,
            [image],
            [thinking],
            gen_ai__tool__definitions=json.dumps(
                [
                    {"type": "function", "name": "look", "parameters": {}},
                    {"type": "function", "function": {"name": "listen"}},
                ]
            ),
        ),
    )
    yield one(
        "secrets",
        chat(1, None, [text("user", f"My key is {KEY}.")], [FINAL]),
        resource={"service.name": "a", "db.password": "hunter2hunter2X9"},
    )
    odd = chat(1, None, [QUESTION], [FINAL], tokens=("many", 2.5))
    odd |= {"startTimeUnixNano": "99999999999999999999999", "endTimeUnixNano": 0}
    broken = [
        odd,
        {"name": "no ids"},
        "text",
        {"traceId": TRACE, "spanId": "0000000000000000", "name": "zero"},
        chat(2, None, "no json {", 5),
    ]
    yield one("odd-values", *broken)
    record = {
        "timeUnixNano": str(START + 5),
        "traceId": TRACE,
        "spanId": span_id(1),
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": pairs({"gen_ai.input.messages": [QUESTION], "gen_ai.output.messages": [FINAL]}),
    }
    stray = {
        "timeUnixNano": str(START + 6),
        "spanId": span_id(99),
        "body": value("hello"),
        "attributes": pairs({"event.name": "gen_ai.user.message"}),
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, stray]}]}]}
    yield (
        "log-records",
        {
            "all.jsonl": json.dumps(otlp(chat(1, None, None, None)))
            + "\n"
            + json.dumps(logs, ensure_ascii=False)
            + "\n"
        },
    )
    printed: dict[str, Any] = {"name": "chat gpt-4.1", "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{span_id(1)}", "trace_state": "[]"}, "kind": "SpanKind.CLIENT", "parent_id": None, "start_time": "2026-03-01T10:00:00.000000Z", "end_time": "2026-03-01T10:00:01.500000Z", "status": {"status_code": "UNSET"},
               "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4.1", "gen_ai.input.messages": json.dumps([QUESTION]), "gen_ai.output.messages": json.dumps([FINAL]), "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4}, "events": [], "links": [], "resource": {"attributes": {"service.name": "printed"}, "schema_url": ""}}  # fmt: skip
    yield (
        "printed-by-the-sdk",
        {
            "spans.jsonl": json.dumps(printed)
            + "\n"
            + json.dumps(
                {
                    **printed,
                    "name": "HTTP POST",
                    "context": {**printed["context"], "span_id": f"0x{span_id(2)}"},
                    "parent_id": f"0x{span_id(1)}",
                    "attributes": {"http.status_code": 200},
                }
            )
            + "\n"
        },
    )
    yield one(
        "web-service-around",
        span(1, "POST /ask", seconds=(0, 30), http__route="/ask"),
        *agent_run(2, parent=1),
        span(20, "SELECT", 3, db__system="postgresql", seconds=(1.2, 1.3)),
    )
    yield (
        "cut-off",
        {
            "traces.jsonl": json.dumps(otlp(*agent_run()), ensure_ascii=False)
            + "\n"
            + json.dumps(otlp(chat(9, None, None, None)))[:200]
            + "\n"
        },
    )
