"""What the YAML files of a project declare and refer to, valid or not: keys of models, tasks and datasets,
and which file is a part of which.
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
from aigo_editor.positions import Span

MOST_FILES = 500
"""YAML files of a project that are looked into."""
MOST_FOLDERS = 5000
LARGEST_FILE = 1_000_000
"""Bytes of one that is looked into."""
MOST_PARTS = 50_000
"""Lines, brackets and commas of a file that is looked into: 300,000 brackets would stop the editor."""
LISTED_SECONDS = 10.0
"""That a list of files is used for: going through a project's folders at each key stroke takes too long."""
LEFT_OUT = frozenset({"node_modules", "out", "__pycache__", "site-packages"})
"""Folders of a project that hold no source of it."""

_LISTS: Mapping[str, Kind] = {
    "models": "model",
    "model_adapters": "adapter",
    "datasets": "dataset",
    "dataset_generators": "generator",
    "tasks": "task",
}


@dataclass(frozen=True)
class Entity:
    """Something that a key stands for."""

    kind: Kind
    key: str
    file: Path
    span: Span
    """Of the key in the file."""
    title: str = ""


@dataclass(frozen=True)
class Reference:
    """A path in a file that names another file."""

    path: trees.Path
    """Of the value that the other file stands for."""
    target: Path
    span: Span
    """Of the written path."""
    is_text: bool
    """Whether it is an `!include`."""


@dataclass(frozen=True)
class ProjectFile:
    """A YAML file as it stands."""

    file: Path
    text: str
    root: Node
    kind: Kind | None
    entities: tuple[Entity, ...]
    references: tuple[Reference, ...]

    @property
    def data(self) -> object:
        """Its mappings, lists and texts."""
        return data_of(self.root)


@dataclass(frozen=True)
class Project:
    """The files that belong together."""

    folder: Path
    sources: Mapping[Path, ProjectFile] = field(default_factory=dict)

    def entities(self, kind: Kind) -> Iterator[Entity]:
        """What there is of a kind."""
        return (
            entity for source in self.sources.values() for entity in source.entities if entity.kind == kind
        )

    def owners(self, file: Path) -> list[tuple[ProjectFile, Reference]]:
        """The files that a file is a part of, directly."""
        return [
            (source, reference)
            for source in self.sources.values()
            for reference in source.references
            if reference.target == file
        ]

    def holders(self, file: Path) -> list[ProjectFile]:
        """The files of a kind that a file is a part of, at any depth; itself, if it is of one."""
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
    """Return why a text is too large to be analysed while it is written; `None`: it is not."""
    if len(text) > LARGEST_FILE:
        return f"larger than {LARGEST_FILE:,} characters"
    if sum(map(text.count, "\n[{,")) > MOST_PARTS:
        return f"more than {MOST_PARTS:,} lines, brackets and commas"
    return None


def source_of(file: Path, text: str) -> ProjectFile:
    """A file as it stands in an editor, or on the disk."""
    root = outline(text)
    data = data_of(root)
    kind = kind_of(data, file)
    return ProjectFile(
        file, text, root, kind, tuple(_entities(kind, root, file)), tuple(_references(root, file, ()))
    )


@dataclass(frozen=True)
class _Listing:
    """The YAML files of a project, as they were found."""

    folder: Path
    files: tuple[Path, ...]
    until: float
    """By the steady clock: when it is looked again."""


class Projects:
    """Reads the files of projects, each again only when it has changed."""

    def __init__(self) -> None:
        self._sources: dict[Path, tuple[object, ProjectFile]] = {}
        self._listings: dict[Path, _Listing] = {}
        """By the folder of the file that was asked about."""

    def look_again(self) -> None:
        """Forget which files there are: some came or went."""
        self._listings.clear()

    def around(self, file: Path, texts: Mapping[str, str]) -> Project:
        """The project of a file.

        Args:
            file: whose project it is.
            texts: that stand in the editor, by real path; they count in place of what is saved.
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
    """YAML files of a folder, hidden folders and links out of it left out; a number that is bounded."""
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


def _references(node: Node | None, file: Path, path: trees.Path) -> Iterator[Reference]:
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


def _reference(node: Scalar, file: Path, path: trees.Path, *, is_text: bool) -> Reference:
    target = Path(os.path.normpath(file.parent / node.text.strip()))
    return Reference(path, target, inner_span(node), is_text)


def inner_span(node: Scalar) -> Span:
    """Of a scalar without its quotes."""
    if node.style in {'"', "'"}:
        return Span(node.start + 1, max(node.end - 1, node.start + 1))
    return Span(node.start, node.end)
