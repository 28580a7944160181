"""YAML files next to a file, or in the folders of its project, and the keys that they declare.

A task names its dataset by a key, and a run file names its tasks. The top level of each file is read one
time for each state of the file. While a snapshot is active, each folder is listed a single time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from aigo_bridge.access.existence import is_folder
from aigo_bridge.access.grants import record_file
from aigo_bridge.access.in_memory import unsaved
from aigo_bridge.access.opening import YAML_SUFFIXES, is_below, project_of, read_regular
from aigo_bridge.access.private import refusal
from aigo_bridge.access.snapshot import remembered
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.nodes import TooLarge, compose

MARKS = frozenset({"source", "generator_specification", "file_path", "definition"})
"""Top-level keys that distinguish datasets, tasks and generators from other files."""

MOST_NAMED = 10
"""Maximum number of files to name in a message."""

LONGEST_ENTITY = 1_000_000
"""Maximum bytes of a YAML file to read."""


@dataclass(frozen=True)
class Neighbours:
    """Folders in which an entity is searched by its key."""

    folders: tuple[Path, ...]
    """Folders, nearest first."""
    reach: tuple[Path, ...]
    """Folders; a found file must be in one of them after links are followed."""

    own: Path
    """Folder of the file that names the key."""

    @property
    def looked(self) -> str:
        """Description of the folders and the skipped files, for a message."""
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
        """Return the skipped files of a folder by reason, if they are known without reading them."""
        own = self.own if folder.is_relative_to(self.own) else None
        reach = self.reach
        if not _listing(folder).links:
            reach = tuple(root for root in reach if is_below(folder, root)) or reach[-1:]
        return _left_out(folder, reach, own)

    def refusal(self, path: str | Path) -> Issue | None:
        """Return why a file may not be read; `None` if it may."""
        return _refusal(Path(path), self.reach, self.own)

    def entities(self, folder: Path) -> Iterator[YamlOutline]:
        """Yield the top levels of the readable YAML files in one folder."""
        listing = _listing(folder)
        files = sorted((*listing.own, *listing.links))
        return _read_outlines(path for path in files if self.refusal(path) is None)

    def declaring(self, folder: Path, key: str) -> list[YamlOutline]:
        """Return the files that declare a key, sorted. Other files are only read if necessary."""
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
        """Return a file that may be read.

        Raises:
            SpecError: the file may not be read.
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
    """Return the folders in which an entity is searched by its key, never outside the file's project.

    Args:
        file: file that names the key.
        name: subfolder for this kind of entity, for example `datasets`.
        root: additional folder whose files may be read.
    """
    folder = file.absolute().parent
    project = project_of(folder)
    wider = () if root is None else (root,)
    if project is None:
        # Use the folder next to the task's own folder, not the target of a link.
        real = Path(os.path.realpath(folder))
        near = Path(os.path.realpath(folder.parent)) / name
        return Neighbours((folder, folder / name, folder.parent / name), (*wider, near, real), folder)
    above = [place / name for place in (folder, *folder.parents) if is_below(place, project)]
    return Neighbours((folder, *above), (*wider, project), folder)


@dataclass(frozen=True)
class _Listing:
    """Paths of the YAML files in a folder, sorted. They are texts, because a folder may contain thousands."""

    own: tuple[str, ...] = ()
    """Files in the folder (or below it) after following links. They may be read if the folder may."""
    links: tuple[str, ...] = ()
    """Links to other folders. Each is checked separately."""


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
    except OSError:  # The folder is missing or not readable.
        return _Listing()
    return _Listing(tuple(sorted(own)), tuple(sorted(links)))


@remembered
def _own_entities(folder: Path) -> Mapping[str | None, Sequence[YamlOutline]]:
    """Return key → files in the folder itself that declare it."""
    by_key: dict[str | None, list[YamlOutline]] = {}
    for outline in _read_outlines(_listing(folder).own):
        by_key.setdefault(outline.key, []).append(outline)
    return by_key


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more


@dataclass(frozen=True)
class YamlOutline:
    """Top level of a YAML file."""

    path: Path
    marks: frozenset[str] = frozenset()
    """Keys that determine the kind of the file."""
    key: str | None = None
    source: str | None = None
    """Type of the dataset source."""


def _read_outlines(files: Iterable[str]) -> Iterator[YamlOutline]:
    return filter(None, map(_outline_of, files))


def _outline_of(path: str) -> YamlOutline | None:
    """Return the top level of a YAML file. Return `None` for an unreadable file, which is irrelevant unless
    the task names it.
    """
    if (edited := unsaved(path)) is not None:
        return _outline(path, edited)
    try:
        status = os.stat(path)  # noqa: PTH116  # thousands of names; faster than pathlib
        return _outline_as_of(path, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)
    except (OSError, UnicodeDecodeError):
        return None


@lru_cache(10_000)
def _outline_as_of(
    path: str, _node: int, _modified_ns: int, _changed_ns: int, _size: int
) -> YamlOutline | None:
    """Return the top level of a file. The file is read again when it has changed.

    Without the cache, each call reads all neighbours of a task again (`make bench`: neighbours).
    """
    return _outline(path, read_regular(Path(path), LONGEST_ENTITY).decode("utf-8"))


def _outline(path: str, text: str) -> YamlOutline | None:
    try:
        top = _fields(compose(text, ""))
    except (yaml.YAMLError, TooLarge):
        return None
    marks = MARKS.intersection(top)
    source = _fields(top.get("source")).get("type")
    return YamlOutline(Path(path), frozenset(marks), _scalar(top.get("key")), _scalar(source))


def _fields(node: object) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _scalar(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None
