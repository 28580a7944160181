"""Spans in the OpenInference conventions, as exported by Phoenix, with made-up texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.golden.traces.sessions import IMAGE, KEY

TRACE = "a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4"


def span(
    number: int,
    kind: str,
    name: str,
    parent: Any = None,
    *,
    at: Any = (0, 1),
    status: Any = ("OK", ""),
    events: Any = (),
    **attributes: Any,
) -> dict[str, Any]:
    given = {key.replace("__", "."): part for key, part in attributes.items()}
    return {
        "id": f"U3Bhbjo{number}", "name": name, "context": {"trace_id": TRACE, "span_id": f"{number:016x}"}, "span_kind": kind,
        "parent_id": None if parent is None else f"{parent:016x}", "start_time": f"2026-03-01T10:00:{at[0]:02d}.500000+00:00", "end_time": f"2026-03-01T10:00:{at[1]:02d}.750000+00:00",
        "status_code": status[0], "status_message": status[1], "attributes": {"openinference.span.kind": kind, **given}, "events": list(events),
    }  # fmt: skip


def messages(side: str, *given: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for n, message in enumerate(given):
        start = f"llm.{side}_messages.{n}.message"
        for key, part in message.items():
            if key == "tool_calls":
                for m, (call_id, name, arguments) in enumerate(part):
                    call = f"{start}.tool_calls.{m}.tool_call"
                    if call_id is not None:
                        flat[f"{call}.id"] = call_id
                    flat[f"{call}.function.name"], flat[f"{call}.function.arguments"] = name, arguments
            else:
                flat[f"{start}.{key}"] = part
    return flat


def llm(
    number: int,
    parent: int | None,
    heard: list[dict[str, Any]],
    said: list[dict[str, Any]],
    *,
    tokens: Any = (40, 8),
    **more: Any,
) -> dict[str, Any]:
    fields: dict[str, Any] = {
        **messages("input", *heard),
        **messages("output", *said),
        "llm.model_name": "gpt-4o",
        "llm.provider": "openai",
        "llm.system": "openai",
    }
    if tokens[0] is not None:
        fields |= {
            "llm.token_count.prompt": tokens[0],
            "llm.token_count.completion": tokens[1],
            "llm.token_count.total": sum(tokens),
        }
    return span(number, "LLM", "ChatCompletion", parent, **{**fields, **more})


USER = {"role": "user", "content": "Where is my order?"}
CALLS = {"role": "assistant", "tool_calls": [("call_1", "find_order", '{"id": 7}')]}
TOOL = {"role": "tool", "content": "shipped", "tool_call_id": "call_1"}
FINAL = {"role": "assistant", "content": "It was shipped."}
SYSTEM = {"role": "system", "content": "You help."}


def run() -> list[dict[str, Any]]:
    return [
        span(
            1,
            "AGENT",
            "support",
            at=(0, 9),
            input__value="Where is my order?",
            output__value="It was shipped.",
            session__id="s-1",
            user__id="u-1",
            metadata='{"stage": "test"}',
            tag__tags=["demo", "ci"],
        ),
        llm(2, 1, [SYSTEM, USER], [CALLS], at=(1, 2)),
        span(
            3,
            "TOOL",
            "find_order",
            1,
            at=(3, 4),
            tool__name="find_order",
            tool__parameters='{"id": 7}',
            input__value='{"id": 7}',
            output__value="shipped",
            tool_call__id="call_1",
        ),
        llm(4, 1, [SYSTEM, USER, CALLS, TOOL], [FINAL], at=(5, 6)),
    ]


def wide(given: dict[str, Any]) -> dict[str, Any]:
    """Return a span as a row of a Phoenix data frame: lists nested, all else in columns."""
    row = {
        "context.trace_id": given["context"]["trace_id"],
        "context.span_id": given["context"]["span_id"],
        **{k: v for k, v in given.items() if k not in ("context", "attributes", "id")},
    }
    for side in ("input", "output"):
        start = f"llm.{side}_messages."
        lists: dict[str, dict[str, Any]] = {}
        for key, part in given["attributes"].items():
            if key.startswith(start):
                index, rest = key.removeprefix(start).split(".", 1)
                lists.setdefault(index, {})[rest] = part
        nested = []
        for flat in lists.values():
            calls: dict[str, dict[str, Any]] = {}
            entry = {}
            for key, part in flat.items():
                if key.startswith("message.tool_calls."):
                    index, rest = key.removeprefix("message.tool_calls.").split(".", 1)
                    calls.setdefault(index, {})[rest] = part
                else:
                    entry[key] = part
            if calls:
                entry["message.tool_calls"] = list(calls.values())
            nested.append(entry)
        if nested:
            row[f"attributes.llm.{side}_messages"] = nested
    row |= {f"attributes.{k}": v for k, v in given["attributes"].items() if "_messages." not in k}
    return row


def one(name: str, *spans: Any) -> tuple[str, dict[str, str]]:
    return name, {"spans.json": json.dumps(list(spans), ensure_ascii=False)}


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Return the files by name of the case."""
    yield one("agent-with-tool", *run())
    yield "pages-of-the-service", {"spans.json": json.dumps({"data": run(), "next_cursor": None})}
    yield "lines", {"spans.jsonl": "".join(json.dumps(part) + "\n" for part in run())}
    yield "data-frame-records", {"spans.json": json.dumps([wide(part) for part in run()])}
    rows = [wide(part) for part in run()]
    names = sorted({name for row in rows for name in row})
    yield (
        "data-frame-columns",
        {
            "spans.json": json.dumps(
                {name: {row["context.span_id"]: row.get(name) for row in rows} for name in names}
            )
        },
    )
    frame = [
        {**row, "start_time": 1772359200500 + n, "end_time": 1772359201500 + n} for n, row in enumerate(rows)
    ]
    yield "data-frame-lines", {"spans.jsonl": "".join(json.dumps(row) + "\n" for row in frame)}
    yield (
        "command-line-traces",
        {"traces.json": json.dumps([{"traceId": TRACE, "spans": run(), "rootSpan": None, "status": "OK"}])},
    )
    nested = run()[3]
    nested["attributes"] = {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {
            "model_name": "gpt-4o",
            "token_count": {"prompt": 5, "completion": 6},
            "input_messages": [{"message": USER}],
            "output_messages": [{"message": FINAL}],
        },
        "input": {"value": "{}", "mime_type": "application/json"},
    }
    yield one("nested-attributes", {**nested, "parent_id": None})
    yield one("question", llm(1, None, [USER], [FINAL]))
    rag = [
        span(1, "CHAIN", "query", at=(0, 9), input__value="What is AI GO?", output__value="A platform."),
        span(
            2,
            "RETRIEVER",
            "retrieve",
            1,
            at=(1, 2),
            input__value="What is AI GO?",
            **{
                "retrieval.documents.0.document.content": "AI GO is a platform.",
                "retrieval.documents.0.document.score": 0.9,
                "retrieval.documents.0.document.id": "d1",
            },
        ),
        span(
            3,
            "EMBEDDING",
            "embed",
            2,
            at=(1, 2),
            **{
                "embedding.model_name": "ada",
                "embedding.embeddings.0.embedding.text": "What is AI GO?",
                "embedding.embeddings.0.embedding.vector": [0.1, 0.2],
            },
        ),
        span(
            4, "RERANKER", "rerank", 1, at=(3, 4), **{"reranker.query": "What is AI GO?", "reranker.top_k": 1}
        ),
        llm(
            5,
            1,
            [{"role": "user", "content": "Context: AI GO is a platform.\nWhat is AI GO?"}],
            [{"role": "assistant", "content": "A platform."}],
            at=(5, 6),
        ),
        span(6, "GUARDRAIL", "guard", 1, at=(7, 8), input__value="A platform.", output__value="pass"),
        llm(
            7,
            6,
            [{"role": "user", "content": "Harmful? A platform."}],
            [{"role": "assistant", "content": "no"}],
            at=(7, 8),
        ),
    ]
    yield one("retrieval", *rag)
    yield one(
        "judged-afterwards",
        *run(),
        span(9, "EVALUATOR", "judge", 1, at=(7, 8)),
        llm(
            10,
            9,
            [{"role": "user", "content": "Right?"}],
            [{"role": "assistant", "content": "yes"}],
            at=(7, 8),
        ),
    )
    sub = [
        span(1, "AGENT", "boss", at=(0, 9), agent__name="boss"),
        llm(
            2,
            1,
            [USER],
            [{"role": "assistant", "tool_calls": [("call_s", "helper", '{"q": "order"}')]}],
            at=(1, 1),
        ),
        span(3, "TOOL", "helper", 1, at=(2, 5), input__value='{"q": "order"}', output__value="shipped"),
        span(4, "AGENT", "helper_agent", 3, at=(2, 5)),
        llm(
            5,
            4,
            [{"role": "user", "content": "order"}],
            [{"role": "assistant", "content": "shipped"}],
            at=(3, 4),
        ),
        llm(
            6,
            1,
            [
                USER,
                {"role": "assistant", "tool_calls": [("call_s", "helper", '{"q": "order"}')]},
                {"role": "tool", "content": "shipped", "tool_call_id": "call_s"},
            ],
            [FINAL],
            at=(6, 7),
        ),
    ]
    yield one("agents-in-agents", *sub)
    multimodal = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.contents.0.message_content.type": "text", "llm.input_messages.0.message.contents.0.message_content.text": "What is it?", "llm.input_messages.0.message.contents.1.message_content.type": "image", "llm.input_messages.0.message.contents.1.message_content.image.image.url": f"data:image/png;base64,{IMAGE}",
                  "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.contents.0.message_content.type": "reasoning", "llm.output_messages.0.message.contents.0.message_content.text": "A dot.", "llm.output_messages.0.message.contents.0.message_content.signature": "Eq", "llm.output_messages.0.message.contents.1.message_content.type": "text", "llm.output_messages.0.message.contents.1.message_content.text": "A dot.", "llm.output_messages.0.message.contents.2.message_content.type": "tool_use", "llm.output_messages.0.message.contents.2.tool_call.id": "c1", "llm.output_messages.0.message.contents.2.tool_call.function.name": "zoom", "llm.output_messages.0.message.contents.2.tool_call.function.arguments": "{}"}  # fmt: skip
    yield one("parts", span(1, "LLM", "vision", **multimodal, **{"llm.model_name": "gpt-4o"}))
    yield one(
        "without-call-ids",
        llm(
            1,
            None,
            [USER],
            [
                {
                    "role": "assistant",
                    "tool_calls": [(None, "find_order", '{"id": 7}'), (None, "find_user", "{}")],
                }
            ],
        ),
        span(
            2,
            "TOOL",
            "find_order",
            1,
            at=(2, 3),
            tool__name="find_order",
            input__value='{"id":7}',
            output__value="shipped",
        ),
    )
    old = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.function_call_name": "find",
        "llm.output_messages.0.message.function_call_arguments_json": "{}",
    }
    yield one("function-call", span(1, "LLM", "old", **old))
    yield one(
        "completion",
        span(
            1,
            "LLM",
            "completion",
            **{
                "llm.prompts.0.prompt.text": "Once upon",
                "llm.choices.0.completion.text": " a time",
                "llm.model_name": "davinci",
            },
        ),
    )
    yield one(
        "raw-values",
        span(
            1,
            "LLM",
            "raw",
            input__value='{"messages": [{"role": "user", "content": "Hi"}], "model": "x"}',
            input__mime_type="application/json",
            output__value="Hello",
            llm__tools=[{"tool.json_schema": '{"type": "function", "function": {"name": "find"}}'}],
        ),
    )
    failed = {
        "name": "exception",
        "timestamp": "2026-03-01T10:00:02+00:00",
        "attributes": {
            "exception.type": "TimeoutError",
            "exception.message": "too slow",
            "exception.stacktrace": "Traceback …",
        },
    }
    yield one(
        "errors",
        span(1, "CHAIN", "main", at=(0, 5), status=("ERROR", "TimeoutError: too slow"), events=[failed]),
        llm(2, 1, [USER], [], tokens=(None, None), status=("ERROR", ""), events=[failed], at=(1, 2)),
        span(3, "TOOL", "t", 1, status=("ERROR", "broken"), at=(3, 4)),
    )
    yield one(
        "no-content",
        span(1, "AGENT", "masked", input__value="__REDACTED__", output__value="__REDACTED__"),
        span(
            2,
            "LLM",
            "masked",
            1,
            **{"llm.model_name": "gpt-4o", "llm.token_count.prompt": 3, "llm.token_count.completion": 4},
        ),
    )
    yield one("hidden", span(1, "LLM", "hidden", **{"llm.model_name": "gpt-4o"}))
    yield one(
        "orphans-and-circles",
        *run()[1:],
        span(8, "CHAIN", "x", 8),
        span(9, "CHAIN", "y", 10),
        span(10, "CHAIN", "z", 9),
    )
    yield one(
        "ids-twice",
        *run(),
        run()[1],
        llm(4, 1, [USER], [{"role": "assistant", "content": "Else."}], at=(7, 8)),
    )
    yield one("secrets", llm(1, None, [{"role": "user", "content": f"key {KEY}"}], [FINAL]))
    sparse = {
        "llm.input_messages.999999999.message.role": "user",
        "llm.input_messages.999999999.message.content": "far",
        "llm.input_messages.3.message.role": "robot",
        "llm.input_messages.3.message.content": "who?",
        "llm.input_messages.x": 1,
        "llm.input_messages": "text",
        "llm.token_count.prompt": -5,
        "llm.token_count.completion": True,
    }
    yield one(
        "odd-values",
        span(1, "LLM", "sparse", **sparse),
        7,
        {"name": "no ids"},
        {
            **span(2, "CHAIN", "times"),
            "start_time": "yesterday",
            "end_time": {"a": 1},
            "events": [1, {"name": 5}],
        },
    )
    yield "cut-off", {"spans.json": json.dumps(run())[:700]}
