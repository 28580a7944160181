"""Task parameters: declarations, uses and renaming, including the texts and parts that a task includes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.access.opening import is_below
from aigo_editor import outline as trees
from aigo_editor.outline import Node, Scalar, Sequence
from aigo_editor.positions import TextRange
from aigo_editor.project import Project, ProjectFile, inner_span

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*\Z")
"""Pattern of a valid parameter name, usable in `<< config.… >>`."""

_MARKER = re.compile(r"<<\s*config\s*\.\s*([^\W\d][\w\-]*)((?:\.[\w\-]+)*)\s*>>")


class RenameError(ValueError):
    """Invalid new name; the message contains the reason."""


@dataclass(frozen=True)
class Parameter:
    """Parameter declared in a file."""

    key: str
    file: Path
    span: TextRange
    """Span of its key."""
    fields: Mapping[str, str]
    """Text fields of the declaration: `type`, `display_name`, `description`, `default_value`."""


@dataclass(frozen=True)
class Replacement:
    """Replacement of a text."""

    file: Path
    span: TextRange
    text: str


ReadText = Callable[[Path], str | None]
"""Function that returns the text of a file, open or saved; `None` if it cannot be read."""


def declared(source: ProjectFile) -> tuple[Parameter, ...]:
    """Return the parameters of a file in order."""
    root = source.root
    listed = root.get("config_spec") if isinstance(root, trees.Mapping) else None
    parameters = []
    for item in listed.items if isinstance(listed, Sequence) else ():
        key = item.get("key") if isinstance(item, trees.Mapping) else None
        if isinstance(key, Scalar) and key.text and isinstance(item, trees.Mapping):
            fields = {pair.key: pair.value.text for pair in item.pairs if isinstance(pair.value, Scalar)}
            parameters.append(Parameter(key.text, source.file, inner_span(key), fields))
    return tuple(parameters)


def visible(file: Path, project: Project) -> tuple[Parameter, ...]:
    """Return the parameters that a file may use: its own, or those of the files that include it."""
    every = (parameter for source in project.holders(file) for parameter in declared(source))
    return tuple({parameter.key: parameter for parameter in every}.values())


def markers(text: str) -> Iterator[tuple[str, TextRange]]:
    """Yield the name and the span of each parameter that a text uses."""
    for match in _MARKER.finditer(text):
        yield match[1], TextRange(*match.span(1))


def at(source_text: str, offset: int) -> tuple[str, TextRange] | None:
    """Return the parameter name in `<< config.NAME >>` at an offset."""
    near = source_text.rfind("<<", max(offset - 300, 0), offset + 2)
    if near < 0:
        return None
    match = _MARKER.match(source_text, near)
    if match is None or not match.start() <= offset <= match.end():
        return None
    return match[1], TextRange(*match.span(1))


def parameter_at(file: Path, text: str, offset: int, project: Project) -> tuple[Parameter, TextRange] | None:
    """Return the declared parameter at an offset of its use or declaration, with the span of its name."""
    source = project.sources.get(file)
    for parameter in declared(source) if source is not None else ():
        if parameter.span.start <= offset <= parameter.span.end:
            return parameter, parameter.span
    used = at(text, offset)
    if used is None:
        return None
    name, span = used
    return next(((candidate, span) for candidate in visible(file, project) if candidate.key == name), None)


def renamed(parameter: Parameter, name: str, project: Project, read: ReadText) -> list[Replacement]:
    """Return all edits that rename a parameter: its declaration, its uses, and its values in run files.

    Raises:
        RenameError: the name is invalid or already used, or a text that uses the parameter is shared with
            other tasks.
    """
    source = project.sources[parameter.file]
    if NAME.fullmatch(name) is None:
        raise RenameError(
            f"{name!r} is not a parameter name: expected letters, digits, '_' and '-', without a digit first"
        )
    if any(peer.key == name for peer in declared(source)):
        raise RenameError(f"{source.file.name} already has a parameter {name!r}")
    edits = [Replacement(parameter.file, parameter.span, name)]
    for file in _parts(source, project):
        text = source.text if file == source.file else read(file)
        uses = [span for key, span in markers(text or "") if key == parameter.key]
        if uses and file != source.file:
            _require_no_other_owner(file, source, project)
        edits += [Replacement(file, span, name) for span in uses]
    key = _key_of(source)
    if key is not None:
        for peer in project.sources.values():
            edits += [Replacement(peer.file, span, name) for span in _values(peer.root, key, parameter.key)]
    return edits


def _parts(source: ProjectFile, project: Project) -> list[Path]:
    """Return a file and all files of its project that it includes or refers to."""
    waiting, seen = [source.file], [source.file]
    while waiting:
        part = project.sources.get(waiting.pop())
        for reference in part.references if part is not None else ():
            if reference.target not in seen and is_below(reference.target, project.folder):
                seen.append(reference.target)
                waiting.append(reference.target)
    return seen


def _require_no_other_owner(file: Path, source: ProjectFile, project: Project) -> None:
    owners = {owner.file for owner in project.holders(file)} - {source.file}
    if owners:
        names = ", ".join(sorted(peer.relative_to(project.folder).as_posix() for peer in owners))
        raise RenameError(f"{file.name} also uses it and belongs to {names}; rename it there yourself")


def _key_of(source: ProjectFile) -> str | None:
    key = source.root.get("key") if isinstance(source.root, trees.Mapping) else None
    return key.text if isinstance(key, Scalar) and key.text else None


def _values(node: Node | None, task: str, parameter: str) -> Iterator[TextRange]:
    """Yield the positions where specifications of a task set a parameter."""
    if isinstance(node, Sequence):
        for item in node.items:
            yield from _values(item, task, parameter)
    elif isinstance(node, trees.Mapping):
        key, config = node.get("task_key"), node.get("task_config")
        if isinstance(key, Scalar) and key.text == task and isinstance(config, trees.Mapping):
            yield from (TextRange(pair.start, pair.end) for pair in config.pairs if pair.key == parameter)
        for pair in node.pairs:
            if isinstance(pair.value, trees.Mapping | Sequence):
                yield from _values(pair.value, task, parameter)
