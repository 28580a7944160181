"""Tree of the lines in a Claude Code session: the final conversation, and abandoned branches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aigo_bridge.importing.log_import import LossReport
from aigo_formats.traces.assembling import nanoseconds

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, eq=False)
class TranscriptLine:
    """Line of a transcript."""

    value: dict[str, Any]
    number: int
    """Line number from 1."""
    type: str
    uuid: str | None
    parent: str | None
    """Id of the previous line. After a compaction, it is the previous line of the conversation."""
    time: int | None
    """Time in nanoseconds since 1970."""
    problem: str | None = None
    """Reason why the line cannot be read."""

    @property
    def is_side(self) -> bool:
        """Return whether the line belongs to a sub-agent."""
        return self.value.get("isSidechain") is True

    @property
    def message(self) -> dict[str, Any]:
        """Return the message."""
        message = self.value.get("message")
        return message if isinstance(message, dict) else {}

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """Return the parts of the message that are objects."""
        content = self.message.get("content")
        return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []

    @property
    def is_summary(self) -> bool:
        """Return whether the line is the summary of a compaction."""
        return self.value.get("isCompactSummary") is True

    @property
    def is_prompt(self) -> bool:
        """Return whether the line can be a message of the user."""
        return self.type == "user" and not any(part.get("type") == "tool_result" for part in self.blocks)


def record_of(value: dict[str, Any], number: int) -> TranscriptLine | None:
    """Convert a line to a record; `None` if it does not have a type."""
    kind = value.get("type")
    if not isinstance(kind, str) or not kind:
        return None
    uuid = value.get("uuid")
    parent = value.get("parentUuid")
    logical = value.get("logicalParentUuid")
    parent = parent if isinstance(parent, str) else logical if isinstance(logical, str) else None
    problem = None
    if kind in _SPOKEN:
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(message, dict):
            problem = f"its 'message' is not an object, but a {type(message).__name__}"
        elif content is not None and not isinstance(content, str | list):
            problem = (
                f"the 'content' of its message is neither text nor a list, but a {type(content).__name__}"
            )
    return TranscriptLine(
        value,
        number,
        kind,
        uuid if isinstance(uuid, str) else None,
        parent,
        nanoseconds(value.get("timestamp")),
        problem,
    )


@dataclass(frozen=True)
class Tree:
    """Lines of an agent."""

    active: list[TranscriptLine]
    """Lines of the final conversation, and other lines that belong to it."""
    branches: list[list[TranscriptLine]]
    """Abandoned branches."""


def tree_of(records: Sequence[TranscriptLine], loss: LossReport) -> Tree:
    """Return the tree of an agent's lines."""
    lines = _with_own_ids(records, loss)
    places = {record.uuid: place for place, record in enumerate(lines) if record.uuid is not None}
    if not any(record.parent in places for record in lines if record.parent is not None):
        if any(record.type in _SPOKEN for record in lines[1:]):
            loss.changed["lines without parents: kept in file order"] += 1
        return Tree(lines, [])
    active = _chain(lines, places, loss)
    _add_parts(lines, active)
    branches: list[list[int]] = []
    branch_of: dict[int, int] = {}
    for place, record in enumerate(lines):
        if place in active:
            continue
        above = places.get(record.parent or "")
        if above in branch_of:
            branch_of[place] = branch_of[above]
        elif record.type in _SPOKEN and not record.is_summary:
            branch_of[place] = len(branches)
            branches.append([])
        else:
            active.add(place)
            continue
        branches[branch_of[place]].append(place)
    return Tree(
        [lines[place] for place in sorted(active)],
        [[lines[place] for place in branch] for branch in branches],
    )


def _with_own_ids(records: Sequence[TranscriptLine], loss: LossReport) -> list[TranscriptLine]:
    """Return the lines with unique ids. A repeated line is dropped."""
    lines: list[TranscriptLine] = []
    earlier: dict[str, TranscriptLine] = {}
    for record in records:
        if record.uuid is None or record.uuid not in earlier:
            lines.append(record)
        elif _bare(earlier[record.uuid]) == _bare(record):
            loss.dropped["duplicate line"] += 1
            continue
        else:
            loss.changed["line with a duplicate uuid: made unique"] += 1
            lines.append(replace(record, uuid=f"{record.uuid}~{record.number}"))
        if record.uuid is not None:
            earlier.setdefault(record.uuid, record)
    return lines


def _bare(record: TranscriptLine) -> dict[str, Any]:
    """Return a line without its parent. Compactions repeat lines that they keep, after their summary."""
    return {name: value for name, value in record.value.items() if name != "parentUuid"}


def _chain(lines: Sequence[TranscriptLine], places: dict[str, int], loss: LossReport) -> set[int]:
    """Return the positions of the lines from the last message back to the first."""
    spoken = [place for place, record in enumerate(lines) if record.type in _SPOKEN]
    place: int | None = spoken[-1] if spoken else len(lines) - 1
    active: set[int] = set()
    while place is not None:
        active.add(place)
        record = lines[place]
        previous = place - 1 if place > 0 and place - 1 not in active else None
        if record.parent is None:
            # A prompt without a parent starts a conversation. Any other line must follow one.
            begins = record.is_prompt and not record.is_summary
            place = None if begins else previous
        elif record.parent not in places:
            loss.changed["line whose parent is not in the transcript: attached to the previous line"] += 1
            place = previous
        elif places[record.parent] in active:
            # After a compaction that kept messages, they follow its summary, which in turn follows them.
            loss.changed["line inside its own ancestry: attached to the previous line"] += 1
            place = previous
        else:
            place = places[record.parent]
    return active


def _add_parts(lines: Sequence[TranscriptLine], active: set[int]) -> None:
    """Add lines of the conversation outside the chain.

    These lines are further parts of an answer, and results of parallel tool calls, which follow their own
    calls.
    """
    answers = {_key(lines[place]) for place in active if lines[place].type == "assistant"} - {None}
    for place, record in enumerate(lines):
        if record.type == "assistant" and _key(record) in answers:
            active.add(place)
    called = {
        part["id"]
        for place in active
        if lines[place].type == "assistant"
        for part in lines[place].blocks
        if part.get("type") == "tool_use" and isinstance(part.get("id"), str)
    }
    for place, record in enumerate(lines):
        if record.type == "user" and any(
            part.get("type") == "tool_result" and _text(part.get("tool_use_id")) in called
            for part in record.blocks
        ):
            active.add(place)


def _key(record: TranscriptLine) -> str | None:
    key = record.message.get("id")
    return key if isinstance(key, str) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def of_messages(records: Iterable[TranscriptLine]) -> int:
    """Return the number of messages. An answer on several lines counts once, and tool results do not
    count.
    """
    messages = set()
    for record in records:
        if record.type == "assistant":
            messages.add(_key(record) or f"line {record.number}")
        elif record.is_prompt:
            messages.add(f"line {record.number}")
    return len(messages)
