"""Project files: keys of models, tasks and datasets in YAML files, and references between files. Files may be
invalid.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.access.opening import is_below, read_regular, root_of
from aigo_bridge.models.connections.entity import provider_key
from aigo_bridge.process import steady_time
from aigo_bridge.reading.kinds import Kind
from aigo_bridge.reading.loading import with_line_feeds
from aigo_editor import outline as trees
from aigo_editor.fields import kind_of
from aigo_editor.outline import Node, Scalar, Sequence, data_of, outline
from aigo_editor.positions import TextRange

MOST_FILES = 500
"""Maximum number of YAML files of a project to read."""
MOST_FOLDERS = 5000
LARGEST_FILE = 1_000_000
"""Maximum size in bytes of a file to read."""
MOST_PARTS = 50_000
"""Maximum number of lines, brackets and commas in a file. Parsing 300,000 brackets would block the editor."""
LISTED_SECONDS = 10.0
"""Seconds to reuse a file list. Searching the project's folders at each keystroke would be too slow."""
LEFT_OUT = frozenset({"node_modules", "out", "__pycache__", "site-packages"})
"""Folders without source files of a project."""

_LISTS: Mapping[str, Kind] = {
    "models": "model",
    "model_adapters": "adapter",
    "datasets": "dataset",
    "dataset_generators": "generator",
    "tasks": "task",
}


@dataclass(frozen=True)
class Entity:
    """Item that a key identifies."""

    kind: Kind
    key: str
    file: Path
    span: TextRange
    """Span of the key in the file."""
    title: str = ""


@dataclass(frozen=True)
class FileReference:
    """Path in a file that names another file."""

    path: trees.Path
    """Path of the value that the other file provides."""
    target: Path
    span: TextRange
    """Span of the written path."""
    is_text: bool
    """Whether the reference is an `!include`."""


@dataclass(frozen=True)
class ProjectFile:
    """Current content of a YAML file."""

    file: Path
    text: str
    root: Node
    kind: Kind | None
    entities: tuple[Entity, ...]
    references: tuple[FileReference, ...]

    @property
    def data(self) -> object:
        """Mappings, lists and texts of the file."""
        return data_of(self.root)


@dataclass(frozen=True)
class Project:
    """Files that belong together."""

    folder: Path
    sources: Mapping[Path, ProjectFile] = field(default_factory=dict)

    def entities(self, kind: Kind) -> Iterator[Entity]:
        """Yield all items of a kind."""
        return (
            entity for source in self.sources.values() for entity in source.entities if entity.kind == kind
        )

    def owners(self, file: Path) -> list[tuple[ProjectFile, FileReference]]:
        """Return the files that directly include or reference a file."""
        return [
            (source, reference)
            for source in self.sources.values()
            for reference in source.references
            if reference.target == file
        ]

    def holders(self, file: Path) -> list[ProjectFile]:
        """Return the task and run files that include a file at any depth, or the file itself if it has a
        kind.
        """
        waiting, seen, holders = [file], {file}, []
        while waiting:
            part = waiting.pop()
            source = self.sources.get(part)
            if source is not None and source.kind is not None:
                holders.append(source)
                continue
            for owner, _ in self.owners(part):
                if owner.file not in seen:
                    seen.add(owner.file)
                    waiting.append(owner.file)
        return holders


def too_large(text: str) -> str | None:
    """Return why a text is too large to be analysed while it is edited; `None` if it is not."""
    if len(text) > LARGEST_FILE:
        return f"larger than {LARGEST_FILE:,} characters"
    if sum(map(text.count, "\n[{,")) > MOST_PARTS:
        return f"more than {MOST_PARTS:,} lines, brackets and commas"
    return None


def source_of(file: Path, text: str) -> ProjectFile:
    """Return the content of a file, either open or saved."""
    root = outline(text)
    data = data_of(root)
    kind = kind_of(data, file)
    return ProjectFile(
        file, text, root, kind, tuple(_entities(kind, root, file)), tuple(_references(root, file, ()))
    )


@dataclass(frozen=True)
class _Listing:
    """Last list of YAML files of a project."""

    folder: Path
    files: tuple[Path, ...]
    until: float
    """Monotonic time when the list expires."""


class Projects:
    """Cache of project files. Each file is read again only after a change."""

    def __init__(self) -> None:
        self._sources: dict[Path, tuple[object, ProjectFile]] = {}
        self._listings: dict[Path, _Listing] = {}
        """File lists, by the folder of the requested file."""

    def look_again(self) -> None:
        """Discard the file lists, because files were created or deleted."""
        self._listings.clear()

    def around(self, file: Path, texts: Mapping[str, str]) -> Project:
        """Return the project of a file.

        Args:
            file: path of the file.
            texts: open texts by real path, used instead of the saved files.
        """
        listing = self._listing(file)
        folder = listing.folder
        sources: dict[Path, ProjectFile] = {}
        for path in listing.files:
            text = texts.get(os.path.realpath(path))
            source = self._source(path, text)
            if source is not None:
                sources[path] = source
        for name, text in texts.items():
            path = Path(name)
            if path.suffix in {".yaml", ".yml"} and path not in sources and is_below(path, folder):
                source = self._source(path, text)
                if source is not None:
                    sources[path] = source
        return Project(folder, sources)

    def _listing(self, file: Path) -> _Listing:
        listing = self._listings.get(file.parent)
        if listing is None or steady_time() >= listing.until:
            folder = root_of(file)
            listing = _Listing(folder, tuple(_files(folder)), steady_time() + LISTED_SECONDS)
            self._listings[file.parent] = listing
        return listing

    def _source(self, path: Path, text: str | None) -> ProjectFile | None:
        state: object = text
        if text is None:
            try:
                status = path.stat()
            except OSError:
                return None
            state = (status.st_mtime_ns, status.st_size)
        stored = self._sources.get(path)
        if stored is not None and stored[0] == state:
            return stored[1]
        if text is None:
            try:
                text = read_regular(path, LARGEST_FILE).decode("utf-8")
            except (OSError, UnicodeDecodeError):
                return None
        if too_large(text) is not None:
            return None
        source = source_of(path, with_line_feeds(text))
        self._sources[path] = (state, source)
        return source


def _files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of a folder up to a maximum. Hidden folders and links out of the folder are
    skipped.
    """
    number = 0
    for num_folders, (place, folders, names) in enumerate(os.walk(folder)):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in LEFT_OUT)
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith((".yaml", ".yml")) and not (path.is_symlink() and not is_below(path, folder)):
                yield path
                number += 1
                if number >= MOST_FILES:
                    return
        if num_folders >= MOST_FOLDERS:
            return


def _entities(kind: Kind | None, root: Node, file: Path) -> Iterator[Entity]:
    if not isinstance(root, trees.Mapping):
        return
    if kind is not None and kind not in {"run", "plan"}:
        yield from _entity(kind, root, file)
    for name, listed in _LISTS.items() if kind == "run" else ():
        items = root.get(name)
        for item in items.items if isinstance(items, Sequence) else ():
            yield from _entity(listed, item, file)


def _entity(kind: Kind, node: Node, file: Path) -> Iterator[Entity]:
    if not isinstance(node, trees.Mapping):
        return
    key, title, provider = node.get("key"), node.get("display_name"), node.get("$provider")
    if kind == "model" and isinstance(provider, Scalar) and "/" in provider.text:
        yield Entity(kind, provider_key(provider.text), file, inner_span(provider), provider.text)
    if isinstance(key, Scalar) and key.text:
        words = title.text if isinstance(title, Scalar) else ""
        yield Entity(kind, key.text, file, inner_span(key), words)


def _references(node: Node | None, file: Path, path: trees.Path) -> Iterator[FileReference]:
    if isinstance(node, Scalar):
        if node.tag == "!include" and node.text.strip():
            yield _reference(node, file, path, is_text=True)
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from _references(item, file, (*path, index))
    elif isinstance(node, trees.Mapping):
        for pair in node.pairs:
            if pair.key == "$ref" and isinstance(pair.value, Scalar) and pair.value.text:
                yield _reference(pair.value, file, path, is_text=False)
            else:
                yield from _references(pair.value, file, (*path, pair.key))


def _reference(node: Scalar, file: Path, path: trees.Path, *, is_text: bool) -> FileReference:
    target = Path(os.path.normpath(file.parent / node.text.strip()))
    return FileReference(path, target, inner_span(node), is_text)


def inner_span(node: Scalar) -> TextRange:
    """Return the span of a scalar without its quotes."""
    if node.style in {'"', "'"}:
        return TextRange(node.start + 1, max(node.end - 1, node.start + 1))
    return TextRange(node.start, node.end)
