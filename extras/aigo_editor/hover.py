"""Hover texts: descriptions from the reference, parameters and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from aigo_editor import fields, parameters
from aigo_editor.completion import VARIABLES, Knowledge, describe, describe_parameter
from aigo_editor.outline import Mapping, Node, Scalar, Spot, data_of, spot_at
from aigo_editor.positions import TextRange
from aigo_editor.project import Project, inner_span

PROMPTED = frozenset(
    {"solver", "input_builder", "input_messages", "message_builders", "template", "content", "user_prompt"}
)
"""Keys with a prompt preview."""

_READ = re.compile(r"""\b(sample|[a-z_]+)(?:\.(\w+)|\[\s*["'](\w+)["']\s*\])?""")


@dataclass(frozen=True)
class Note:
    """Hover text for a part of a document."""

    text: str
    """Description in Markdown."""
    span: TextRange
    has_prompt: bool = False
    """Whether the hover includes the prompt of a row."""


def note_at(
    file: Path, text: str, root: Node, offset: int, knowledge: Knowledge, project: Project
) -> Note | None:
    """Return the hover text at an offset; `None` if missing."""
    used = parameters.parameter_at(file, text, offset, project)
    if used is not None:
        return Note(describe_parameter(used[0]), used[1])
    spot = spot_at(root, offset)
    if spot.pair is not None and isinstance(spot.node, Mapping):
        return _of_key(spot, data_of(root), knowledge)
    if not isinstance(spot.node, Scalar) or spot.node.is_empty:
        return None
    read = read_at(text, spot.node, offset)
    if read is not None:
        return _of_read(*read, knowledge)
    return None if spot.node is root else _of_value(spot, spot.node, data_of(root), knowledge)


def reads_sample(text: str, root: Node, offset: int) -> bool:
    """Return whether the text at an offset reads a column, so that dataset rows are needed."""
    node = spot_at(root, offset).node
    read = read_at(text, node, offset) if isinstance(node, Scalar) else None
    return read is not None and read[0] == "sample"


def _of_key(spot: Spot, data: object, knowledge: Knowledge) -> Note | None:
    assert spot.pair is not None
    note = fields.field_at(knowledge.root, (*spot.path, spot.pair.key), data)
    if note is None:
        return None
    return Note(describe(note), TextRange(spot.pair.start, spot.pair.end), spot.pair.key in PROMPTED)


def _of_value(spot: Spot, node: Scalar, data: object, knowledge: Knowledge) -> Note | None:
    for choice in fields.choices_at(knowledge.root, spot.path, data):
        if choice.text == node.text and choice.meaning:
            return Note(f"**{choice.text}**\n\n{choice.meaning}", inner_span(node))
    titles = {**dict(knowledge.models), **dict(knowledge.datasets), **dict(knowledge.tasks)}
    if node.text in titles and spot.path and str(spot.path[-1]).endswith("key"):
        return Note(f"**{node.text}**: {titles[node.text] or 'declared in this project'}", inner_span(node))
    return None


def read_at(text: str, node: Scalar, offset: int) -> tuple[str, str | None, TextRange] | None:
    """Return the variable and the attribute name of the template expression at an offset of a scalar."""
    opening = max(text.rfind("{{", node.start, offset + 1), text.rfind("{%", node.start, offset + 1))
    if opening < 0:
        return None
    closing = min(
        (end for end in (text.find("}}", opening), text.find("%}", opening)) if end >= 0), default=-1
    )
    if closing < 0:
        closing = node.end
    if not opening <= offset <= closing:
        return None
    for match in _READ.finditer(text, opening + 2, closing):
        if match.start() <= offset <= match.end() and text[match.start() - 1] not in "\"'":
            return match[1], match[2] or match[3], TextRange(*match.span())
    return None


def _of_read(variable: str, name: str | None, span: TextRange, knowledge: Knowledge) -> Note | None:
    if variable not in VARIABLES:
        return None
    if variable != "sample" or name is None:
        return Note(f"**{variable}**: {VARIABLES[variable]}", span)
    if name in knowledge.nested:
        listed = ", ".join(f"`{column}`" for column in knowledge.nested[name])
        return Note(f"**{name}**: the row of this dataset, with {listed}", span)
    if name in knowledge.columns:
        return Note(
            f"**{name}**: column; in the first row that has it:\n\n{_quoted(knowledge.columns[name])}", span
        )
    if not knowledge.columns:
        return Note(f"**{name}**: column; the rows are not at hand", span)
    return Note(f"**{name}**: not a column; there are {', '.join(knowledge.columns)}", span)


def _quoted(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
