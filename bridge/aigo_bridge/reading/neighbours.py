"""YAML files next to a file, or in the folders of its project: which of them declare a key.

A task names its dataset by a key, a run file its tasks. The top level of each neighbour is read once for each
state of the file; while a snapshot is active, each folder is listed a single time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from aigo_bridge.access.grants import record_file
from aigo_bridge.access.opening import YAML_SUFFIXES, is_below, project_of, read_regular
from aigo_bridge.access.presence import is_folder
from aigo_bridge.access.private import refusal
from aigo_bridge.access.snapshot import remembered
from aigo_bridge.access.unsaved import unsaved
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.nodes import TooLarge, compose

MARKS = frozenset({"source", "generator_specification", "file_path", "definition"})
"""Top-level keys that tell datasets, tasks and generators from other files."""

MOST_NAMED = 10
"""Files that a message names."""

LONGEST_ENTITY = 1_000_000
"""Bytes of a YAML file that is looked into."""


@dataclass(frozen=True)
class Neighbours:
    """Folders in which an entity is looked for by its key."""

    folders: tuple[Path, ...]
    """Nearest first."""
    reach: tuple[Path, ...]
    """Folders; a file that is found must be inside one of them after links are followed."""

    own: Path
    """Folder of the file that names the key."""

    @property
    def looked(self) -> str:
        """The folders, and the files in them that were left out, for a message."""
        existing = [folder for folder in self.folders if is_folder(folder)]
        left_out: dict[str, list[str]] = {reason: [] for reason in _REASONS}
        for folder in existing:
            for reason, paths in self._left_out(folder).items():
                left_out[reason] += paths
        notes = [
            f" (skipped, because {reason}: {_some(paths)})" for reason, paths in left_out.items() if paths
        ]
        return ", ".join(map(str, existing)) + "".join(notes)

    def _left_out(self, folder: Path) -> Mapping[str, Sequence[str]]:
        """The same for each file that looks into the folder, as far as it is known without a look."""
        own = self.own if folder.is_relative_to(self.own) else None
        reach = self.reach
        if not _listing(folder).links:
            reach = tuple(root for root in reach if is_below(folder, root)) or reach[-1:]
        return _left_out(folder, reach, own)

    def refusal(self, path: str | Path) -> Issue | None:
        """Return why a file may not be read; `None`: it may."""
        return _refusal(Path(path), self.reach, self.own)

    def entities(self, folder: Path) -> Iterator[Outline]:
        """Top levels of the YAML files of one folder that may be read."""
        listing = _listing(folder)
        files = sorted((*listing.own, *listing.links))
        return _read_outlines(path for path in files if self.refusal(path) is None)

    def declaring(self, folder: Path, key: str) -> list[Outline]:
        """Those with a key, in the order of their names; without a look at all the others."""
        listing = _listing(folder)
        is_held = any(is_below(folder, root) for root in self.reach)
        of_folder = _own_entities(folder).get(key, ()) if is_held else ()
        others = listing.links if is_held else (*listing.own, *listing.links)
        found = [
            *(outline for outline in of_folder if self.refusal(outline.path) is None),
            *_read_outlines(path for path in others if self.refusal(path) is None),
        ]
        return sorted((outline for outline in found if outline.key == key), key=lambda outline: outline.path)

    def require(self, path: Path) -> Path:
        """A file that was found.

        Raises:
            SpecError: it may not be read.
        """
        if (issue := self.refusal(path)) is not None:
            raise SpecError([issue])
        record_file(path)
        return path


def _refusal(path: Path, reach: tuple[Path, ...], own: Path | None) -> Issue | None:
    found = [refusal(path, root, repr(path.name), own=own, file=str(path)) for root in reach]
    return None if None in found else found[-1]


_OUTSIDE, _PRIVATE, _UNREADABLE = _REASONS = (
    "they are outside the root folder",
    "they are private; allow them with --allow-file",
    "they are not valid YAML",
)


@remembered
def _left_out(folder: Path, reach: tuple[Path, ...], own: Path | None) -> dict[str, list[str]]:
    left_out: dict[str, list[str]] = {reason: [] for reason in _REASONS}
    listing = _listing(folder)
    for path in sorted((*listing.own, *listing.links)):
        if (issue := _refusal(Path(path), reach, own)) is not None:
            left_out[_OUTSIDE if issue.code == Code.OUTSIDE_ROOT else _PRIVATE].append(path)
        elif _outline_of(path) is None:
            left_out[_UNREADABLE].append(path)
    return left_out


def neighbours_of(file: Path, name: str, root: Path | None) -> Neighbours:
    """Return the folders in which an entity is looked for by its key, never outside the file's project.

    Args:
        file: file that names the key.
        name: subfolder for this kind of entity, e.g. `datasets`.
        root: another folder whose files may be read.
    """
    folder = file.absolute().parent
    project = project_of(folder)
    wider = () if root is None else (root,)
    if project is None:
        # The folder next to the task's own, and not the target of a link in its place.
        real = Path(os.path.realpath(folder))
        near = Path(os.path.realpath(folder.parent)) / name
        return Neighbours((folder, folder / name, folder.parent / name), (*wider, near, real), folder)
    above = [place / name for place in (folder, *folder.parents) if is_below(place, project)]
    return Neighbours((folder, *above), (*wider, project), folder)


@dataclass(frozen=True)
class _Listing:
    """Paths of the YAML files of a folder, sorted; texts, since a folder may have thousands."""

    own: tuple[str, ...] = ()
    """Files that are in the folder (or below it) after all links: they may be read when the folder may."""
    links: tuple[str, ...] = ()
    """Links to other folders: each is looked at by itself."""


@remembered
def _listing(folder: Path) -> _Listing:
    own: list[str] = []
    links: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(YAML_SUFFIXES):
                    is_own = not entry.is_symlink() or is_below(Path(entry.path), folder)
                    (own if is_own else links).append(entry.path)
    except OSError:  # missing, or not readable
        return _Listing()
    return _Listing(tuple(sorted(own)), tuple(sorted(links)))


@remembered
def _own_entities(folder: Path) -> Mapping[str | None, Sequence[Outline]]:
    """Key → the folder's own files that declare it."""
    by_key: dict[str | None, list[Outline]] = {}
    for outline in _read_outlines(_listing(folder).own):
        by_key.setdefault(outline.key, []).append(outline)
    return by_key


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more


@dataclass(frozen=True)
class Outline:
    """Top level of a YAML file."""

    path: Path
    marks: frozenset[str] = frozenset()
    """Fields by which the kind of the file is recognised."""
    key: str | None = None
    source: str | None = None
    """Type of its source."""


def _read_outlines(files: Iterable[str]) -> Iterator[Outline]:
    return filter(None, map(_outline_of, files))


def _outline_of(path: str) -> Outline | None:
    """The top level of a YAML file; `None` for a file that cannot be read: it belongs to another program, and
    does not matter to a task that does not name it.
    """
    if (edited := unsaved(path)) is not None:
        return _outline(path, edited)
    try:
        status = os.stat(path)  # noqa: PTH116  # thousands of texts, no paths
        return _outline_as_of(path, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    except (OSError, UnicodeDecodeError):
        return None


@lru_cache(10_000)
def _outline_as_of(path: str, _node: int, _modified_ns: int, _changed_ns: int, _size: int) -> Outline | None:
    """The top level of a file, which is read again when the file has changed.

    Without it each call reads all the neighbours of a task again (`make bench`: neighbours).
    """
    return _outline(path, read_regular(Path(path), LONGEST_ENTITY).decode("utf-8"))


def _outline(path: str, text: str) -> Outline | None:
    try:
        top = _fields(compose(text, ""))
    except (yaml.YAMLError, TooLarge):
        return None
    marks = MARKS.intersection(top)
    source = _fields(top.get("source")).get("type")
    return Outline(Path(path), frozenset(marks), _scalar(top.get("key")), _scalar(source))


def _fields(node: object) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _scalar(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None
