"""Runs exported by LangSmith: LangChain, LangGraph, wrapped clients and `@traceable`, with made-up texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.golden.traces.sessions import IMAGE, KEY


def run_id(number: int) -> str:
    return f"1b64098b-4ab7-43f6-afee-{number:012x}"


TRACE = run_id(1)


def run(
    number: int,
    kind: str,
    name: str,
    parent: Any = None,
    *,
    at: Any = (0, 1),
    inputs: Any = None,
    outputs: Any = None,
    **more: Any,
) -> dict[str, Any]:
    return {
        "id": run_id(number), "name": name, "run_type": kind, "start_time": f"2026-03-01T10:00:{at[0]:02d}.123456", "end_time": f"2026-03-01T10:00:{at[1]:02d}.654321",
        "extra": {"runtime": {"sdk": "langsmith-py"}, "metadata": {}}, "error": None, "serialized": None, "events": [], "inputs": inputs or {}, "outputs": outputs,
        "parent_run_id": None if parent is None else run_id(parent), "trace_id": TRACE, "tags": [], "session_id": "5f0ac8e6-7c69-4cd5-9d0f-2f2bfbb10a4e", "status": "success", **more,
    }  # fmt: skip


def lc(kind: str, content: Any, **kwargs: Any) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {
            "content": content,
            "type": {
                "HumanMessage": "human",
                "AIMessage": "ai",
                "SystemMessage": "system",
                "ToolMessage": "tool",
            }[kind],
            **kwargs,
        },
    }


HUMAN = lc("HumanMessage", "Weather in Zurich?", id="h1")
CALLING = lc(
    "AIMessage",
    "",
    id="run-a1",
    tool_calls=[{"name": "weather", "args": {"city": "Zurich"}, "id": "call_1", "type": "tool_call"}],
    usage_metadata={"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    response_metadata={"model_name": "gpt-4o-2026"},
)
TOOL = lc("ToolMessage", "foggy", tool_call_id="call_1", name="weather", id="t1")
FINAL = lc(
    "AIMessage",
    "It is foggy.",
    id="run-a2",
    usage_metadata={"input_tokens": 40, "output_tokens": 6, "total_tokens": 46},
    response_metadata={"model_name": "gpt-4o-2026"},
)


def generation(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "generations": [
            [
                {
                    "text": message["kwargs"]["content"],
                    "generation_info": {"finish_reason": "stop"},
                    "type": "ChatGeneration",
                    "message": message,
                }
            ]
        ],
        "llm_output": None,
        "type": "LLMResult",
    }


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return dict(message["kwargs"])


PARAMS = {
    "invocation_params": {
        "model": "gpt-4o",
        "tools": [{"type": "function", "function": {"name": "weather"}}],
    },
    "metadata": {"ls_model_name": "gpt-4o", "ls_provider": "openai"},
}


def graph() -> list[dict[str, Any]]:
    """Return a LangGraph agent with a tool."""
    return [
        run(
            1,
            "chain",
            "LangGraph",
            at=(0, 9),
            inputs={"messages": [{"role": "user", "content": "Weather in Zurich?"}]},
            outputs={"messages": [plain(m) for m in (HUMAN, CALLING, TOOL, FINAL)]},
            tags=["prod"],
            extra={"metadata": {"thread_id": "th-1"}},
        ),
        run(
            2,
            "chain",
            "agent",
            1,
            at=(1, 3),
            inputs={"messages": [plain(HUMAN)]},
            outputs={"messages": [plain(CALLING)]},
        ),
        run(
            3,
            "llm",
            "ChatOpenAI",
            2,
            at=(1, 2),
            inputs={"messages": [[HUMAN]]},
            outputs=generation(CALLING),
            extra=PARAMS,
            prompt_tokens=20,
            completion_tokens=5,
            total_tokens=25,
        ),
        run(4, "chain", "tools", 1, at=(4, 5)),
        run(
            5,
            "tool",
            "weather",
            4,
            at=(4, 5),
            inputs={"input": "{'city': 'Zurich'}"},
            outputs={"output": TOOL},
        ),
        run(
            6,
            "chain",
            "agent",
            1,
            at=(6, 8),
            inputs={"messages": [plain(HUMAN)]},
            outputs={"messages": [plain(FINAL)]},
        ),
        run(
            7,
            "llm",
            "ChatOpenAI",
            6,
            at=(6, 7),
            inputs={"messages": [[HUMAN, CALLING, TOOL]]},
            outputs=generation(FINAL),
            extra=PARAMS,
        ),
    ]


def one(name: str, *runs: Any) -> tuple[str, dict[str, str]]:
    return name, {"runs.json": json.dumps(list(runs), ensure_ascii=False)}


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Return the files by name of the case."""
    yield one("langgraph", *graph())
    yield "lines", {"runs.jsonl": "".join(json.dumps(part) + "\n" for part in graph())}
    yield "below-runs", {"runs.json": json.dumps({"runs": graph(), "cursors": {"next": None}})}
    inner = {part["id"]: dict(part) for part in graph()}
    for part in reversed(list(inner.values())):
        if part["parent_run_id"]:
            inner[part["parent_run_id"]].setdefault("child_runs", []).insert(
                0, {k: v for k, v in part.items() if k not in ("parent_run_id", "trace_id")}
            )
    yield one("child-runs", inner[TRACE])
    texts = [
        {**part, **{name: json.dumps(part[name]) for name in ("inputs", "outputs", "extra")}}
        for part in graph()
    ]
    yield "bulk-export-rows", {"runs.jsonl": "".join(json.dumps(part) + "\n" for part in texts)}
    short = [
        {
            "run_id": p["id"],
            **{
                k: p[k]
                for k in (
                    "trace_id",
                    "name",
                    "run_type",
                    "parent_run_id",
                    "inputs",
                    "outputs",
                    "start_time",
                    "end_time",
                )
            },
        }
        for p in graph()
    ]
    yield "skill-export", {f"{TRACE}.jsonl": "".join(json.dumps(part) + "\n" for part in short)}
    by_order = []
    place: dict[str, str] = {}
    for part in graph():
        own = f"20260301T1000{int(part['start_time'][17:19]):02d}123456Z{part['id']}"
        place[part["id"]] = f"{place[part['parent_run_id']]}.{own}" if part["parent_run_id"] else own
        by_order.append(
            {
                **{k: v for k, v in part.items() if k not in ("parent_run_id", "trace_id")},
                "dotted_order": place[part["id"]],
            }
        )
    yield one("dotted-order-alone", *by_order)
    openai = {
        "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}],
        "model": "gpt-4o-mini",
        "tools": [{"type": "function", "function": {"name": "find"}}],
        "temperature": 0,
    }
    answer = {
        "id": "chatcmpl-1",
        "choices": [
            {"finish_reason": "stop", "index": 0, "message": {"role": "assistant", "content": "Hello."}}
        ],
        "model": "gpt-4o-mini-2024-07-18",
        "usage_metadata": {"input_tokens": 12, "output_tokens": 3},
    }
    yield one("wrapped-openai", run(1, "llm", "ChatOpenAI", inputs=openai, outputs=answer))
    anthropic = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Hi"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
                ],
            }
        ],
        "model": "claude-sonnet-4-5",
        "system": "Be kind.",
    }
    said = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A dot.", "signature": "Eq"},
            {"type": "text", "text": "Hello."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"x": 1}},
        ],
        "model": "claude-sonnet-4-5",
        "usage": {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": None,
        },
    }
    yield one("wrapped-anthropic", run(1, "llm", "ChatAnthropic", inputs=anthropic, outputs=said))
    traceable = [
        run(
            1,
            "chain",
            "answer_question",
            at=(0, 9),
            inputs={"question": "What is AI GO?"},
            outputs={"answer": "A platform.", "sources": ["d1"]},
        ),
        run(
            2,
            "retriever",
            "retrieve",
            1,
            at=(1, 2),
            inputs={"query": "What is AI GO?"},
            outputs={
                "documents": [
                    {"page_content": "AI GO is a platform.", "metadata": {"id": "d1"}, "type": "Document"}
                ]
            },
        ),
        run(
            3,
            "llm",
            "call",
            1,
            at=(3, 4),
            inputs={"messages": [["user", "AI GO is a platform. What is AI GO?"]]},
            outputs={"content": "A platform.", "role": "assistant"},
            prompt_tokens=9,
            completion_tokens=2,
        ),
        run(
            4,
            "llm",
            "guard",
            1,
            at=(5, 6),
            inputs={"prompt": "Safe? A platform."},
            outputs={"output": "SAFE"},
            prompt_tokens=4,
            completion_tokens=1,
        ),
    ]
    yield one("retrieval", *traceable)
    yield one(
        "changed-by-a-parser",
        run(
            1,
            "chain",
            "RunnableSequence",
            at=(0, 5),
            inputs={"input": "Name a colour."},
            outputs={"output": {"colour": "blue"}},
        ),
        run(
            2,
            "prompt",
            "ChatPromptTemplate",
            1,
            inputs={"input": "Name a colour."},
            outputs={"output": {"messages": []}},
        ),
        run(
            3,
            "llm",
            "ChatOpenAI",
            1,
            at=(1, 2),
            inputs={"messages": [[HUMAN]]},
            outputs=generation(lc("AIMessage", '{"colour": "blue"}')),
        ),
        run(4, "parser", "JsonOutputParser", 1, at=(3, 4), outputs={"output": {"colour": "blue"}}),
    )
    yield one(
        "completion-model",
        run(
            1,
            "llm",
            "OpenAI",
            inputs={"prompts": ["Once upon"]},
            outputs={
                "generations": [[{"text": " a time", "generation_info": {}, "type": "Generation"}]],
                "llm_output": {
                    "token_usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
                    "model_name": "gpt-3.5-turbo-instruct",
                },
            },
        ),
    )
    yield one(
        "typed-messages",
        run(
            1,
            "llm",
            "model",
            inputs={
                "messages": [
                    {"type": "human", "data": {"content": "Hi", "id": "m1"}},
                    {"type": "SystemMessage", "content": "Be kind."},
                ]
            },
            outputs={
                "message": {
                    "type": "ai",
                    "content": [
                        {"type": "text", "text": "Hello."},
                        {"type": "tool_use", "id": "c9", "name": "f", "input": {}},
                    ],
                    "tool_calls": [
                        {"id": "c9", "name": "f", "args": {}},
                        {"id": "c8", "name": "g", "args": {"x": 1}},
                    ],
                }
            },
        ),
    )
    legacy = lc(
        "AIMessage", "", additional_kwargs={"function_call": {"name": "find", "arguments": '{"q": "x"}'}}
    )
    yield one(
        "function-call",
        run(
            1,
            "chain",
            "AgentExecutor",
            at=(0, 9),
            inputs={"input": "Find x.", "chat_history": []},
            outputs={"output": "Found."},
        ),
        run(
            2,
            "llm",
            "ChatOpenAI",
            1,
            at=(1, 2),
            inputs={"messages": [[lc("HumanMessage", "Find x.")]]},
            outputs=generation(legacy),
        ),
        run(3, "tool", "find", 1, at=(3, 4), inputs={"input": '{"q": "x"}'}, outputs={"output": "Found."}),
    )
    sub = [
        run(
            1,
            "chain",
            "LangGraph",
            at=(0, 20),
            inputs={"messages": [plain(HUMAN)]},
            outputs={"messages": [plain(HUMAN), plain(FINAL)]},
        ),
        run(
            2, "llm", "ChatOpenAI", 1, at=(1, 2), inputs={"messages": [[HUMAN]]}, outputs=generation(CALLING)
        ),
        run(3, "tool", "weather", 1, at=(3, 9), inputs={"city": "Zurich"}, outputs={"output": TOOL}),
        run(
            4,
            "chain",
            "LangGraph",
            3,
            at=(4, 8),
            inputs={"messages": [["user", "Zurich"]]},
            outputs={"messages": [["user", "Zurich"], ["assistant", "foggy"]]},
        ),
        run(
            5,
            "llm",
            "ChatOpenAI",
            4,
            at=(5, 6),
            inputs={"messages": [[lc("HumanMessage", "Zurich")]]},
            outputs=generation(lc("AIMessage", "foggy")),
        ),
        run(
            6,
            "llm",
            "ChatOpenAI",
            1,
            at=(10, 11),
            inputs={"messages": [[HUMAN, CALLING, TOOL]]},
            outputs=generation(FINAL),
        ),
    ]
    yield one("agents-in-agents", *sub)
    error = 'RateLimitError("429")Traceback (most recent call last):\n\n  File "a.py", line 1, in f\n\nopenai.RateLimitError: 429'
    yield one(
        "errors",
        run(1, "chain", "main", error=error, status="error", inputs={"input": "Hi"}),
        run(2, "llm", "ChatOpenAI", 1, error=error, status="error", inputs={"messages": [[HUMAN]]}),
        run(3, "tool", "t", 1, at=(2, 3), status="error", inputs={"x": 1}),
    )
    yield one(
        "unfinished",
        run(1, "chain", "main", inputs={"input": "Hi"}, end_time=None, status="pending"),
        run(2, "tool", "slow", 1, inputs={"x": 1}, end_time=None, status="pending"),
    )
    yield one(
        "streamed",
        run(
            1,
            "llm",
            "ChatOpenAI",
            inputs={"messages": [[HUMAN]]},
            outputs=generation(FINAL),
            events=[
                {"name": "start", "time": "2026-03-01T10:00:00"},
                {"name": "new_token", "time": "2026-03-01T10:00:00.2"},
                {"name": "retry", "time": "2026-03-01T10:00:00.3", "kwargs": {"attempt": 1}},
                {"name": "end", "time": "2026-03-01T10:00:01"},
            ],
        ),
    )
    yield one(
        "hidden",
        run(1, "chain", "main"),
        run(2, "llm", "ChatOpenAI", 1, prompt_tokens=7, completion_tokens=8),
    )
    yield one(
        "orphans-and-circles",
        *graph()[1:],
        {**run(8, "chain", "x", 8), "trace_id": TRACE},
        run(9, "chain", "y", 10),
        run(10, "chain", "z", 9),
    )
    yield one(
        "ids-twice",
        *graph(),
        graph()[2],
        run(
            7,
            "llm",
            "Other",
            6,
            at=(8, 9),
            inputs={"messages": [[HUMAN]]},
            outputs=generation(lc("AIMessage", "Else.")),
        ),
    )
    other = [
        {
            **part,
            "id": part["id"].replace("4ab7", "5ab7"),
            "trace_id": TRACE.replace("4ab7", "5ab7"),
            "parent_run_id": part["parent_run_id"] and part["parent_run_id"].replace("4ab7", "5ab7"),
        }
        for part in graph()
    ]
    yield one("two-traces", *graph(), *other)
    yield one(
        "secrets",
        run(
            1,
            "llm",
            "ChatOpenAI",
            inputs={"messages": [["user", f"key {KEY}"]]},
            outputs=generation(FINAL),
            extra={"invocation_params": {"api_key": "p4ssw0rdp4ssw0rd"}},
        ),
    )
    yield one(
        "odd-values",
        run(
            1,
            "llm",
            "odd",
            inputs={"messages": 5},
            outputs={"generations": [[]]},
            prompt_tokens=-1,
            completion_tokens="x",
            tags=[1, "a"],
            events={"a": 1},
        ),
        5,
        {"name": "no id", "run_type": "llm"},
        run(2, "tool", "t", 1, inputs=[1], outputs="text", start_time=5, extra=7, error={"a": 1}),
    )
    yield (
        "cut-off",
        {
            "runs.jsonl": json.dumps(
                run(1, "chain", "whole", inputs={"input": "Hi"}, outputs={"output": "Hello"})
            )
            + "\n"
            + json.dumps(run(2, "llm", "cut", 1))[:150]
        },
    )
