"""Conversion of Claude Code session transcripts to traces.

A session is a JSONL file, `<session id>.jsonl`, below `~/.claude/projects/<folder>/`. Its lines form a tree
through `uuid` and `parentUuid`. A message that the user took back is a separate branch. A model answer has
one line per part, all with the same `message.id`. Tool results are lines of the user.

Sub-agents have separate files, `<session id>/subagents/agent-<id>.jsonl`. Earlier versions wrote
`agent-<id>.jsonl` next to the session. Before version 2, their lines are in the session file with
`isSidechain: true`. The format is not specified. This description is based on transcripts of versions 1.0 to
2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_formats.traces.assembling import (
    Event,
    iso,
    items_of_messages,
    mend_parents,
    ordered,
    seconds,
    span_begin,
    span_end,
    timed,
    total_tokens,
)
from aigo_formats.traces.documents import ReadContext, lines_of, values_of
from aigo_formats.traces.items import ItemMaker, as_text
from aigo_formats.traces.session_calls import (
    SOURCE,
    Agents,
    ModelAnswerConverter,
    ToolResult,
    results_of,
)
from aigo_formats.traces.session_tree import TranscriptLine, Tree, of_messages, record_of, tree_of

_SAME = ("cwd", "version", "gitBranch", "sessionId", "userType", "entrypoint")
"""Fields that almost every line repeats. They are stored once for the session."""
_REPEATING = frozenset({"progress", "file-history-snapshot", "file-history-delta"})
"""Line types that repeat content of tools and sub-agents, or name backup files."""
_TITLES = frozenset({"summary", "custom-title", "ai-title", "agent-name", "agent-color", "tag", "pr-link",
                     "last-prompt", "permission-mode", "mode"})  # fmt: skip
"""Line types that describe the session as a whole."""


@dataclass(frozen=True)
class SessionFiles:
    """Files of one session."""

    main: Path
    agents: tuple[Path, ...] = ()


def find_sessions(location: Path) -> list[SessionFiles]:
    """Return the sessions at a location, a file or a folder, sorted by path.

    Raises:
        EvidenceError: the location does not contain sessions.
    """
    if location.is_file():
        beside = [] if _is_agent(location, location.parent) else sorted(location.parent.glob("agent-*.jsonl"))
        return [SessionFiles(location, (*_own_agents(location), *_by_session(beside).get(location.stem, ())))]
    if not location.is_dir():
        raise EvidenceError(
            f"{str(location)!r} does not exist, expected a transcript (.jsonl) or a folder of transcripts",
            code=Code.NO_LOGS,
        )
    files = sorted(location.rglob("*.jsonl"))
    sessions = [path for path in files if not _is_agent(path, location)]
    if not sessions:
        raise EvidenceError(
            f"{str(location)!r} contains no transcripts of Claude Code (<session id>.jsonl)",
            code=Code.NO_LOGS,
        )
    by_session = _by_session(
        path for path in files if path.name.startswith("agent-") and not _is_inside(path, location)
    )
    return [SessionFiles(path, (*_own_agents(path), *by_session.get(path.stem, ()))) for path in sessions]


def _is_agent(path: Path, folder: Path) -> bool:
    return path.name.startswith("agent-") or _is_inside(path, folder)


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file is in the sub-agent folder of a session."""
    return "subagents" in path.relative_to(folder).parts


def _own_agents(session: Path) -> list[Path]:
    return sorted((session.parent / session.stem / "subagents").rglob("agent-*.jsonl"))


def _by_session(paths: Iterable[Path]) -> dict[str | None, list[Path]]:
    """Return sub-agent files by the session in their first line."""
    sessions: dict[str | None, list[Path]] = {}
    for path in paths:
        sessions.setdefault(_first_session(path), []).append(path)
    return sessions


def _first_session(path: Path) -> str | None:
    """Return the session in the first line of a sub-agent file, without reading the rest."""
    try:
        with path.open("rb") as file:
            match = re.search(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"', file.readline(1 << 20))
    except OSError:
        return None
    return match[1].decode("utf-8", "replace") if match else None


def read_session(files: SessionFiles, reading: ReadContext) -> dict[str, Any] | None:
    """Return the trace of a session; `None` if the file does not contain messages.

    The trace is the main agent's. `spans()` are its sub-agents and abandoned branches of the conversation.

    Raises:
        EvidenceError: a file cannot be read or exceeds the bounds.
    """
    size = files.main.stat().st_size if files.main.exists() else 0
    lines = list(_records(files.main, reading))
    reading.bounds.check_count("lines", len(lines), size, "the session")
    is_agent = all(record.is_side for record in lines if record.type in ("user", "assistant"))
    main = lines if is_agent else [record for record in lines if not record.is_side]
    groups = _inline_agents([] if is_agent else [record for record in lines if record.is_side])
    metas: dict[str, dict[str, Any]] = {}
    for path in files.agents:
        records = list(_records(path, reading))
        key = next((r.value["agentId"] for r in records if isinstance(r.value.get("agentId"), str)), None)
        key = key or path.stem.removeprefix("agent-")
        groups.setdefault(key, []).extend(records)
        metas[key] = _meta(path, reading)
    if not any(record.type in ("user", "assistant") for record in lines):
        return None
    return _Session(main, groups, metas, reading).trace(str(files.main))


def _meta(path: Path, reading: ReadContext) -> dict[str, Any]:
    """Return the content of the metadata file of a sub-agent."""
    file = path.with_name(f"{path.stem}.meta.json")
    if not file.is_file():
        return {}
    values = values_of(file, reading)
    return values[0] if values and isinstance(values[0], dict) else {}


def _records(file: Path, reading: ReadContext) -> Iterator[TranscriptLine]:
    """Yield the lines of a transcript. A line without `type` is damage."""
    for line in lines_of(file, reading):
        record = record_of(line.value, line.number)
        if record is None:
            reading.damaged(
                file, f"line {line.number}: 'type' is missing, which every line of a transcript needs"
            )
        elif isinstance(problem := record.problem, str):
            reading.damaged(file, f"line {line.number}: {problem}")
        else:
            yield record


def _inline_agents(records: Sequence[TranscriptLine]) -> dict[str, list[TranscriptLine]]:
    """Return sub-agents inside the session file, by id or by the first line of each."""
    groups: dict[str, list[TranscriptLine]] = {}
    owner: dict[str, str] = {}
    for record in records:
        key = record.value.get("agentId")
        if not isinstance(key, str):
            key = owner.get(record.parent or "") or record.uuid or f"line-{record.number}"
        if record.uuid is not None:
            owner[record.uuid] = key
        groups.setdefault(key, []).append(record)
    return groups


@dataclass
class _Session:
    """Session that is converted to a trace."""

    main: list[TranscriptLine]
    groups: dict[str, list[TranscriptLine]]
    metas: dict[str, dict[str, Any]]
    """Content of the sub-agents' metadata files."""
    reading: ReadContext
    events: list[Event] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    def trace(self, location: str) -> dict[str, Any]:
        loss = self.reading.loss
        everything = [*self.main, *(record for records in self.groups.values() for record in records)]
        self.constants = _constants(everything)
        self.calls = ModelAnswerConverter(loss, self._rest)
        self.results = results_of(everything, loss)
        self.maker = ItemMaker(loss)
        tree = tree_of(self.main, loss)
        self._conversation(tree, None)
        begins = {key: self._agent(key, records) for key, records in self.groups.items()}
        self.calls.answer(self.results)
        agents = Agents(self.calls, self.results, loss)
        for key, begin in begins.items():
            agents.link(key, begin, self.groups[key], self.metas.get(key, {}))
        mend_parents(self.events, loss)
        loose = [r for key, r in self.results.by_call.items() if key not in self.calls.tools]
        self.events += [self._loose(result) for result in loose]
        events = ordered(self.events, loss)
        loss.kept["line"] += len(everything)
        return {
            "items": items_of_messages(events, None),
            "metadata": self._metadata(location, tree, events),
            "events": events,
        }

    def _agent(self, key: str, records: list[TranscriptLine]) -> Event:
        """Add a sub-agent as a span. It is linked to its call when all calls are known."""
        span_id = f"agent-{key}"
        times = [record.time for record in records if record.time is not None]
        begin = span_begin(span_id, "agent", "agent", parent=None, time=min(times, default=None))
        begin["metadata"] = {SOURCE: {"agentId": key}}
        self.events.append(begin)
        self._conversation(tree_of(records, self.reading.loss), span_id)
        self.events.append(span_end(span_id, max(times, default=None)))
        return begin

    def _conversation(self, tree: Tree, span_id: str | None) -> None:
        self._emit(tree.active, span_id)
        for number, branch in enumerate(tree.branches, 1):
            key = f"branch-{branch[0].uuid or number}" if span_id is None else f"{span_id}-branch-{number}"
            begin = span_begin(key, "branch", "branch", parent=span_id, time=branch[0].time)
            begin["metadata"] = {SOURCE: {"parentUuid": branch[0].parent}}
            self.events.append(begin)
            self._emit(branch, key)
            self.events.append(span_end(key, branch[-1].time))
            self.reading.loss.kept["abandoned branch of the conversation"] += 1

    def _emit(self, records: Iterable[TranscriptLine], span_id: str | None) -> None:
        latest: int | None = None
        for record in records:
            time = record.time
            if time is not None and latest is not None and time < latest:
                # The order of the conversation counts. Clocks can change, and lines can be written late.
                self.reading.loss.changed["time before the previous line: replaced by its time"] += 1
                time = latest
            latest = time if time is not None else latest
            for event in self._events_of(record):
                if span_id is not None:
                    event["span_id"] = span_id
                self.events.append(timed(event, time if time is not None else latest))

    def _events_of(self, record: TranscriptLine) -> list[Event]:
        match record.type:
            case "assistant":
                return self.calls.events_of(record)
            case "user":
                return self._of_user(record)
            case "system":
                return [self._of_system(record)]
            case "attachment":
                return self._of_attachment(record)
        if record.type in _REPEATING and not self.reading.all_events:
            self.reading.loss.dropped[f"{record.type} line: repeats other lines"] += 1
            return []
        if record.type in _TITLES and record.uuid is None:
            return []  # stored in the trace metadata
        return [self._custom(record, record.type)]

    def _of_user(self, record: TranscriptLine) -> list[Event]:
        content = record.message.get("content")
        parts = content if isinstance(content, list) else [] if content is None else [content]
        parts = [p for p in parts if not (isinstance(p, dict) and p.get("type") == "tool_result")]
        if not parts:
            if isinstance(content, list) and content:
                return []  # only tool results, which are stored with their calls
            self.reading.loss.changed["user message without content: custom event"] += 1
            return [self._custom(record, "user")]
        role = "user"
        if record.value.get("isMeta") is True or record.value.get("isCompactSummary") is True:
            role = "developer"
            self.reading.loss.changed["text from Claude Code in the name of the user: role developer"] += 1
        items = self.maker.of_message(role, parts, id=record.uuid or "")
        messages = [item for item in items if item["type"] == "message"]
        if len(messages) < len(items):
            self.reading.loss.changed["tool call in a user message: custom event"] += 1
            return [self._custom(record, "user")]
        return [
            {
                "type": "message_event",
                "id": _numbered(record, n),
                "item": item,
                "metadata": self._rest(record),
            }
            for n, item in enumerate(messages)
        ]

    def _of_system(self, record: TranscriptLine) -> Event:
        subtype = as_text(record.value.get("subtype")) or "system"
        metadata = self._rest(record)
        if subtype in ("compact_boundary", "microcompact_boundary"):
            name = "compactMetadata" if subtype == "compact_boundary" else "microcompactMetadata"
            details = record.value.get(name)
            event: Event = {
                "type": "compaction",
                "id": _numbered(record),
                "strategy": "summary" if subtype == "compact_boundary" else "trim",
                "metadata": metadata,
            }
            tokens = details.get("preTokens") if isinstance(details, dict) else None
            if isinstance(tokens, int) and not isinstance(tokens, bool):
                event["tokens_before"] = tokens
            return event
        if subtype == "api_error":
            text = as_text(record.value.get("error")) or as_text(record.value.get("content")) or "api_error"
            return {"type": "error", "id": _numbered(record), "message": text, "metadata": metadata}
        return self._custom(record, f"system.{subtype}")

    def _of_attachment(self, record: TranscriptLine) -> list[Event]:
        attachment = record.value.get("attachment")
        kind = attachment.get("type") if isinstance(attachment, dict) else None
        if kind == "queued_command" and isinstance(attachment, dict) and attachment.get("prompt"):
            # The user wrote this while the agent worked. The model received it with the next tool results.
            prompt = attachment["prompt"]
            items = self.maker.of_message("user", prompt, id=record.uuid or "")
            if all(item["type"] == "message" for item in items):
                fields = self._rest(record)
                return [
                    {"type": "message_event", "id": _numbered(record, n), "item": item, "metadata": fields}
                    for n, item in enumerate(items)
                ]
        return [self._custom(record, f"attachment.{as_text(kind)}" if kind else "attachment")]

    def _custom(self, record: TranscriptLine, name: str) -> Event:
        return {"type": "custom", "id": _numbered(record), "name": name, "data": record.value}

    def _loose(self, result: ToolResult) -> Event:
        self.reading.loss.changed["tool result without a tool call: custom event"] += 1
        event: Event = {
            "type": "custom",
            "id": f"{_numbered(result.record)}:{result.call_id}",
            "name": "tool_result",
            "data": {"block": result.block, "toolUseResult": result.record.value.get("toolUseResult")},
        }
        return timed(event, result.record.time)

    def _rest(self, record: TranscriptLine) -> dict[str, Any]:
        """Return the fields of a line other than its message and the session's common fields."""
        value = record.value
        fields = {
            name: item
            for name, item in value.items()
            if name not in ("message", "toolUseResult", "type", "timestamp")
            and item is not None
            and not (name in _SAME and self.constants.get(name) == item)
        }
        return {SOURCE: fields}

    def _metadata(self, location: str, tree: Tree, events: list[Event]) -> dict[str, Any]:
        times = [record.time for record in tree.active if record.time is not None]
        models = [e["model"] for e in events if e["type"] == "model_call_event" and "span_id" not in e]
        extra: dict[str, Any] = {name: value for name, value in self.constants.items() if name != "sessionId"}
        versions = sorted({v for r in self.main if isinstance(v := r.value.get("version"), str)})
        if len(versions) > 1:
            extra["versions"] = versions
        if len(set(models)) > 1:
            extra["models"] = sorted(set(models))
        if titles := [record.value for record in self.main if record.type in _TITLES and record.uuid is None]:
            extra["titles"] = titles
        if any(e["type"] == "model_call_event" for e in events):
            extra["input_context"] = "not recorded: the input of a call is the messages before it"
        metadata: dict[str, Any] = {
            "trace_id": self.constants.get("sessionId") or Path(location).stem,
            "source_type": SOURCE,
            "source_uri": location,
            "agent": "Claude Code",
        }
        if models:
            metadata["model"] = models[-1]
        if times:
            metadata["created_at"] = iso(min(times))
            metadata["total_time"] = seconds(min(times), max(times))
        if (tokens := total_tokens(events)) is not None:
            metadata["total_tokens"] = tokens
        metadata["message_count"] = of_messages(tree.active)
        errors = [e for e in events if e["type"] in ("error", "message_event") and "span_id" not in e]
        if errors and errors[-1]["type"] == "error":
            metadata["error"] = errors[-1]["message"]
        metadata["extra"] = {SOURCE: extra}
        return metadata


def _constants(records: Sequence[TranscriptLine]) -> dict[str, Any]:
    """Return the most frequent value of each common field in a session."""
    constants: dict[str, Any] = {}
    for name in _SAME:
        counts: dict[str, int] = {}
        for record in records:
            if isinstance(value := record.value.get(name), str):
                counts[value] = counts.get(value, 0) + 1
        if counts:
            constants[name] = max(counts, key=counts.__getitem__)
    return constants


def _numbered(record: TranscriptLine, part: int = 0) -> str:
    key = record.uuid or f"line-{record.number}"
    return key if part == 0 else f"{key}:{part}"
