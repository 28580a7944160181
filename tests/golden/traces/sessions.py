"""Claude Code transcripts in the shapes of versions 1.0 to 2.1, with made-up texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

ID = "7c1d2f5e-0000-4000-8000-0000000000{:02d}"
KEY = "sk-ant-api03-" + "Ab3dE6gH9jK2mN5pQ8sT1vW4" * 4
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

Line = dict[str, Any]


class Session:
    """Lines of a session in order."""

    def __init__(self, number: int, *, version: str = "2.1.40", side: str | None = None, minute: int = 0):
        self.id = ID.format(number)
        self.lines: list[Line] = []
        self.version = version
        self.side = side
        self.minute = minute
        self.parent: str | None = None

    def line(self, kind: str, *, parent: Any = ..., **fields: Any) -> str:
        number = len(self.lines) + 1
        uuid = f"{self.side or 'u'}-{number:04d}"
        line: Line = {
            "parentUuid": self.parent if parent is ... else parent,
            "isSidechain": self.side is not None,
            "userType": "external",
            "cwd": "/srv/app",
            "sessionId": self.id,
            "version": self.version,
            "gitBranch": "main",
            "type": kind,
            "uuid": uuid,
            "timestamp": f"2026-03-01T10:{self.minute + number // 60:02d}:{number % 60:02d}.{number:03d}Z",
            **({"agentId": self.side} if self.side else {}),
            **fields,
        }
        self.lines.append({key: value for key, value in line.items() if value is not ...})
        self.parent = uuid
        return uuid

    def user(self, content: Any, **fields: Any) -> str:
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def says(
        self,
        *blocks: Any,
        key: str | None = None,
        used: Any = ...,
        stop: str | None = "end_turn",
        model: str = "claude-opus-4-6",
        **fields: Any,
    ) -> str:
        parts = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 1000,
            "output_tokens": 20,
            "service_tier": "standard",
        }
        message = {
            "id": key or f"msg_{self.side or ''}{len(self.lines) + 1:03d}", "type": "message", "role": "assistant", "model": model,
            "content": parts, "stop_reason": stop, "stop_sequence": None, "usage": usage if used is ... else used,
        }  # fmt: skip
        return self.line(
            "assistant",
            message={k: v for k, v in message.items() if v is not None or k != "usage"},
            requestId=f"req_{len(self.lines)}",
            **fields,
        )

    def result(
        self, call: str, content: Any, *, error: bool | None = None, details: Any = ..., **fields: Any
    ) -> str:
        block = {
            "tool_use_id": call,
            "type": "tool_result",
            "content": content,
            **({} if error is None else {"is_error": error}),
        }
        return self.line(
            "user", message={"role": "user", "content": [block]}, toolUseResult=details, **fields
        )

    def other(self, **line: Any) -> None:
        self.lines.append(line)

    def text(self) -> str:
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)

    @property
    def file(self) -> str:
        return f"{self.id}.jsonl"


def use(key: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": name, "input": arguments}


def thought(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "EqQBCkYIARgCKkA"}


def cases() -> Iterator[tuple[str, dict[str, str]]]:
    """Return the files by name of the case."""
    s = Session(1)
    s.user("What is 2 + 2?")
    s.says("4.")
    yield "question", {s.file: s.text()}

    s = Session(2)
    s.other(type="summary", summary="Fix the failing test", leafUuid="u-0006")
    s.user("Fix the failing test.")
    s.says(thought("Look first."), key="msg_a", stop=None)
    s.says("I look at the test.", key="msg_a", stop=None)
    s.says(
        use("toolu_1", "Bash", command="pytest -q"),
        key="msg_a",
        stop="tool_use",
        used={"input_tokens": 10, "output_tokens": 60},
    )
    s.result(
        "toolu_1", "1 failed", error=True, details={"stdout": "1 failed", "stderr": "", "interrupted": False}
    )
    s.says("It fails in `add`.", key="msg_b")
    yield "answer-in-lines", {s.file: s.text()}

    s = Session(3)
    s.user([{"type": "text", "text": "Read both files."}])
    a = s.says(use("toolu_a", "Read", file_path="a.py"), key="msg_p", stop=None)
    b = s.says(use("toolu_b", "Read", file_path="b.py"), key="msg_p", stop="tool_use")
    s.result(
        "toolu_b",
        "b = 2",
        parent=b,
        details={"type": "text", "file": {"filePath": "b.py", "content": "b = 2"}, "durationMs": 12},
    )
    s.result(
        "toolu_a",
        "a = 1",
        parent=a,
        details={"type": "text", "file": {"filePath": "a.py", "content": "a = 1"}},
    )
    s.parent = "u-0004"
    s.says("a is 1 and b is 2.")
    yield "tools-at-once", {s.file: s.text()}

    s = Session(4)
    first = s.user("Write a poem.")
    s.says("Roses are red.")
    s.user("Longer.", parent="u-0002")
    s.says("Roses are red, violets are blue.")
    s.user("In German.", parent="u-0002")
    s.says("Rosen sind rot.")
    assert first == "u-0001"
    yield "taken-back", {s.file: s.text()}

    s = Session(5)
    s.user("Find the bug.")
    s.says(
        use("toolu_t", "Task", description="Search", prompt="Search for the bug.", subagent_type="Explore"),
        stop="tool_use",
    )
    s.result(
        "toolu_t",
        [{"type": "text", "text": "In main.py."}],
        details={
            "status": "completed",
            "prompt": "Search for the bug.",
            "agentId": "a17",
            "totalDurationMs": 5118,
            "totalTokens": 900,
            "totalToolUseCount": 1,
            "content": [{"type": "text", "text": "In main.py."}],
        },
    )
    s.says("The bug is in main.py.")
    g = Session(5, side="a17")
    g.user("Search for the bug.")
    g.says(use("toolu_g", "Grep", pattern="bug"), stop="tool_use", model="claude-haiku-4-5")
    g.result("toolu_g", "main.py:3", details={"mode": "content", "numFiles": 1})
    g.says("In main.py.", model="claude-haiku-4-5")
    yield (
        "sub-agent",
        {
            s.file: s.text(),
            f"{s.id}/subagents/agent-a17.jsonl": g.text(),
            f"{s.id}/subagents/agent-a17.meta.json": '{"agentType": "Explore", "description": "Search", "toolUseId": "toolu_t"}',
        },
    )

    s = Session(6, version="1.0.62")
    s.user("Review it.")
    s.says(
        use(
            "toolu_r", "Task", description="Review", prompt="Review the diff.", subagent_type="code-reviewer"
        ),
        stop="tool_use",
    )
    main = s.parent
    side = Session(6, version="1.0.62", side="s")
    side.user("Review the diff.", agentId=...)
    side.says("Looks good.", agentId=...)
    s.lines += side.lines
    s.parent = main
    s.result("toolu_r", [{"type": "text", "text": "Looks good."}], details="Looks good.")
    s.says("The review found nothing.")
    yield "sidechain-inline", {s.file: s.text()}

    s = Session(7)
    s.user("Refactor everything.")
    s.says("Done with the first half.")
    last = s.parent
    s.line(
        "system",
        parent=None,
        logicalParentUuid=last,
        subtype="compact_boundary",
        content="Conversation compacted",
        level="info",
        isMeta=False,
        compactMetadata={"trigger": "auto", "preTokens": 155025},
    )
    s.user(
        "This session is being continued from a previous conversation. Half is done.",
        isCompactSummary=True,
        isVisibleInTranscriptOnly=True,
    )
    s.user("Go on.")
    s.says("All done.")
    yield "compaction", {s.file: s.text()}

    s = Session(25)
    s.user("Start.")
    s.says("Ready.")
    s.user("First attempt.")
    s.says("First answer.")
    s.user("Second attempt.", parent="u-0002")
    s.says("Second answer.")
    s.user("Keep going.")
    s.line(
        "system",
        parent=None,
        logicalParentUuid="u-0010",
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={
            "trigger": "auto",
            "preTokens": 150000,
            "preservedSegment": {"headUuid": "u-0006", "anchorUuid": "u-0009", "tailUuid": "u-0010"},
        },
    )
    s.user("This session is being continued. The user asked for a plan.", isCompactSummary=True)
    s.says("Kept going.")
    s.user("After compaction.")
    s.says("Final answer.")
    yield "compaction-that-keeps-messages", {s.file: s.text()}

    s = Session(26)
    s.user("Start.")
    s.says("Ready.")
    s.line(
        "system",
        parent=None,
        logicalParentUuid="u-0002",
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={"trigger": "manual"},
    )
    s.user("This session is being continued.", isCompactSummary=True)
    s.lines.append({**s.lines[1], "parentUuid": "u-0004"})
    s.user("Go on.", parent="u-0002")
    s.says("Done.")
    yield "compaction-that-writes-lines-again", {s.file: s.text()}

    s = Session(8)
    s.user("Hello?")
    s.line(
        "system",
        subtype="api_error",
        level="error",
        error={"status": 529, "error": {"type": "overloaded_error"}},
        retryAttempt=1,
        maxRetries=10,
        retryInMs=500.5,
    )
    s.says(
        "API Error: Repeated 529 Overloaded errors",
        model="<synthetic>",
        used=None,
        isApiErrorMessage=True,
        error="server_error",
        stop="stop_sequence",
    )
    yield "api-error", {s.file: s.text()}

    s = Session(9)
    s.user("Caveat: The messages below were generated by the user while running local commands.", isMeta=True)
    s.user(
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args></command-args>"
    )
    s.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    s.user("Start.")
    s.says("No response requested.", model="<synthetic>", used=None)
    s.says("Started.")
    yield "local-commands", {s.file: s.text()}

    s = Session(10)
    s.user(
        [
            {"type": "text", "text": "What is in the picture?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
        ]
    )
    s.says(use("toolu_i", "Read", file_path="x.png"), stop="tool_use")
    s.result(
        "toolu_i",
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}],
        details={"type": "image", "file": {"base64": IMAGE, "type": "image/png"}},
    )
    s.user(
        [
            {
                "type": "document",
                "title": "notes.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            }
        ],
        isMeta=True,
    )
    s.says("A dot.")
    yield "images-and-documents", {s.file: s.text()}

    s = Session(11)
    s.user("Work on it.")
    s.says(use("toolu_w", "Bash", command="sleep 60"), stop="tool_use")
    s.line(
        "progress",
        data={"type": "bash_progress", "output": "…", "elapsedTimeSeconds": 30},
        toolUseID="bash-progress-1",
        parentToolUseID="toolu_w",
    )
    s.other(
        type="queue-operation",
        operation="enqueue",
        timestamp="2026-03-01T10:00:03.500Z",
        sessionId=s.id,
        content="Also fix the docs.",
    )
    s.result(
        "toolu_w",
        "",
        parent="u-0002",
        details={"stdout": "", "stderr": "", "interrupted": False, "isImage": False},
    )
    s.line(
        "attachment",
        attachment={"type": "queued_command", "prompt": "Also fix the docs.", "commandMode": "prompt"},
    )
    s.line("attachment", attachment={"type": "todo_reminder", "content": [], "itemCount": 0})
    s.says("Both are done.")
    yield "queued-prompt", {s.file: s.text()}

    s = Session(12)
    s.user("Count to a million.")
    s.says("1, 2, 3", stop=None)
    s.user([{"type": "text", "text": "[Request interrupted by user]"}])
    s.user("Stop at ten.")
    s.says(use("toolu_x", "Bash", command="seq 10"), stop="tool_use")
    yield "interrupted", {s.file: s.text()}

    s = Session(13)
    s.user(f"My key is {KEY}.")
    s.says(use("toolu_k", "Bash", command=f"curl -H 'x-api-key: {KEY}' https://api.example"), stop="tool_use")
    s.result("toolu_k", "ok", details={"stdout": f"ANTHROPIC_API_KEY={KEY}", "stderr": ""})
    s.says("I did not keep it.")
    yield "secrets", {s.file: s.text()}

    s = Session(14)
    s.other(type="permission-mode", permissionMode="default", sessionId=s.id)
    s.other(
        type="file-history-snapshot",
        messageId="u-0001",
        snapshot={"messageId": "u-0001", "trackedFileBackups": {}, "timestamp": "2026-03-01T10:00:00.000Z"},
        isSnapshotUpdate=False,
    )
    s.user("Tell me a joke.", permissionMode="default", todos=[])
    s.says(thought(""), {"type": "redacted_thinking", "data": "EmwK"}, "Why did the chicken cross the road?")
    s.line(
        "system",
        subtype="stop_hook_summary",
        hookCount=1,
        hookInfos=[{"command": "notify.sh"}],
        hookErrors=[],
        preventedContinuation=False,
        stopReason="",
        hasOutput=False,
        level="suggestion",
        toolUseID="t",
    )
    s.line("system", subtype="turn_duration", durationMs=88947, isMeta=False)
    s.other(type="ai-title", aiTitle="A joke", sessionId=s.id)
    s.other(type="last-prompt", lastPrompt="Tell me a joke.", sessionId=s.id)
    yield "hooks-and-titles", {s.file: s.text()}

    s = Session(15)
    s.user("Search the web.")
    s.says(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "url": "https://weather.example",
                    "title": "Weather",
                    "encrypted_content": "Eo8B",
                }
            ],
        },
        "It is sunny.",
    )
    yield "web-search", {s.file: s.text()}

    s = Session(16)
    s.user("Use two helpers.")
    s.says(
        use("toolu_o", "Agent", description="Outer", prompt="Ask the inner one.", subagent_type="outer"),
        stop="tool_use",
    )
    s.result(
        "toolu_o",
        [{"type": "text", "text": "7"}],
        details={"status": "completed", "agentId": "outer1", "totalDurationMs": 9000},
    )
    s.says("7.")
    o = Session(16, side="outer1")
    o.user("Ask the inner one.")
    o.says(use("toolu_n", "Agent", description="Inner", prompt="Say 7."), stop="tool_use")
    o.result(
        "toolu_n",
        [{"type": "text", "text": "7"}],
        details={"status": "completed", "agentId": "inner1", "agentType": "inner"},
    )
    o.says("7")
    i = Session(16, side="inner1")
    i.user("Say 7.")
    i.says("7")
    yield (
        "agents-in-agents",
        {
            s.file: s.text(),
            f"{s.id}/subagents/agent-outer1.jsonl": o.text(),
            f"{s.id}/subagents/agent-inner1.jsonl": i.text(),
        },
    )

    s = Session(17)
    s.user("Hello.")
    s.says("Hi.")
    g = Session(17, side="beside")
    g.user("Warm up.")
    g.says("Warm.")
    yield "agent-beside", {s.file: s.text(), "agent-beside.jsonl": g.text()}

    one, two = Session(18), Session(19)
    one.user("First session.")
    one.says("One.")
    two.user("Second session.")
    two.says("Two.")
    yield (
        "two-sessions",
        {
            one.file: one.text(),
            two.file: two.text(),
            "ffffffff-0000-4000-8000-000000000000.jsonl": '{"type":"summary","summary":"Nothing yet","leafUuid":"x"}\n',
        },
    )

    s = Session(20)
    s.user("No counts.")
    s.says("None.", used={"input_tokens": "many", "output_tokens": 5})
    s.says("And none again.", used=None)
    s.says("Negative.", used={"input_tokens": -1, "output_tokens": 2.5})
    yield "odd-usage", {s.file: s.text()}

    s = Session(21)
    s.user("Tidy up.")
    s.says("Tidied.")
    s.lines.append(dict(s.lines[0]))
    s.lines.append(
        {
            **s.lines[1],
            "message": {
                **s.lines[1]["message"],
                "id": "msg_other",
                "content": [{"type": "text", "text": "Another."}],
            },
        }
    )
    s.lines.append(
        {
            **s.lines[0],
            "uuid": "u-0009",
            "parentUuid": "u-nowhere",
            "message": {"role": "user", "content": "Who am I?"},
        }
    )
    yield "ids-twice", {s.file: s.text()}

    s = Session(22)
    s.user("Round and round.", parent="u-0003")
    s.says("Round.")
    s.user("Again.")
    yield "circle", {s.file: s.text()}

    s = Session(23)
    s.user("Fine.")
    s.says("Fine, too.")
    good = s.text()
    bad = '{"type": "user", "message": "text"}\nno json\n[1]\n{"uuid": "x"}\n{"type":"assistant","uuid":"u-0003","parentUuid":"u-0002","timestamp":"2026-03-01T10:00:09Z","message":{"role":"assistant","content":[{"type":"text","text":"cut'
    yield "damaged-lines", {s.file: good + bad}

    s = Session(24)
    s.user("Numbers.")
    s.says(use("toolu_n", "Calc", value=1), stop="tool_use")
    text = s.text().replace(
        '"value": 1', '"value": NaN, "large": 123456789012345678901234567890, "exp": 1e999'
    )
    yield "odd-numbers", {s.file: text}
