"""Local mirror of object storage for the duration of a command.

Every address has one path below a temporary folder, `…/s3/bucket/key`. Inputs are copied there. New and
changed files below an opened target are uploaded in the order in which they were written. So a file appears
after the files it refers to.

Storage content is untrusted. A key that is not a path inside its folder is refused, and objects never become
links.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.access.display_paths import MIRRORS
from aigo_bridge.access.object_addresses import SCHEMES, Address, StorageError, StoredObject
from aigo_bridge.access.opening import Bound, in_words
from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_scale.storage.leases import LEASE, is_lease
from aigo_scale.storage.objects import find, look, put, remove, take

PREFIX = ".aigo-bridge-storage-"
"""Prefix of the temporary folder. It is hidden, so that projects are never searched for above it."""

MOST_OBJECTS = 10_000
"""Maximum number of objects in a folder that is copied."""

LARGEST = Bound("AIGO_BRIDGE_MAX_STORAGE_MIB", 64 * 1024)
"""Maximum bytes that a command copies from a storage."""

_OURS_ALONE = re.compile(r"\..+\.[0-9a-f]{12}\.draft|.*\.lock|.*\.moved")
"""Names of local drafts and locks."""

_GROWING = (".jsonl",)
"""Extensions of files that only grow, so that a partial copy is also valid."""


@dataclass(frozen=True)
class _Seen:
    """Properties of a file that is already in the storage."""

    size: int
    modified: int
    inode: int

    @staticmethod
    def of(path: Path) -> _Seen:
        """Return the current properties of a file."""
        status = path.stat()
        return _Seen(status.st_size, status.st_mtime_ns, status.st_ino)


class StorageMirror:
    """Mirror for the addresses of one command. It is deleted when it is closed."""

    def __init__(self) -> None:
        self.folder = Path(os.path.realpath(make_folder(PREFIX)))
        MIRRORS.append(str(self.folder))
        self._seen: dict[Path, _Seen] = {}
        self._targets: list[Path] = []
        self._taken = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Delete the local copies."""
        remove_folder(str(self.folder))
        if str(self.folder) in MIRRORS:
            MIRRORS.remove(str(self.folder))

    def path(self, address: Address) -> Path:
        """Return the local path of an address, even if it does not exist."""
        return self.folder / address.scheme.name / address.key

    def address(self, path: Path) -> Address:
        """Return the address of a local path."""
        scheme, *parts = path.relative_to(self.folder).parts
        return Address(SCHEMES[scheme], "/".join(parts))

    def take_file(self, address: Address) -> bool:
        """Copy one object. Return whether it exists.

        Raises:
            StorageError: the object cannot be read.
        """
        stored = look(address)
        if stored is not None:
            self._take(stored, address)
        return stored is not None

    def take_folder(
        self,
        address: Address,
        *,
        wanted: Callable[[str], bool] | None = None,
        besides: tuple[str, ...] = (),
        depth: int | None = None,
    ) -> int:
        """Copy the objects in a folder, or all objects that match a pattern. Create the local folder.

        Args:
            address: folder or pattern.
            wanted: filter for keys; `None`: all.
            besides: keys (with bucket) of folders that are not copied.
            depth: maximum folder depth; `None`: no limit.

        Returns:
            Number of copied objects.

        Raises:
            StorageError: an object cannot be read or cannot be stored here, or the limits are exceeded.
        """
        objects = [
            one
            for one in find(address, depth=depth)
            if not is_lease(one.key)
            and not any(one.key.startswith(f"{place}/") for place in besides)
            and (wanted is None or wanted(one.key))
        ]
        if len(objects) > MOST_OBJECTS:
            raise StorageError(
                f"{address} has more than {MOST_OBJECTS:,} objects, the maximum for one copy;"
                " name a subfolder"
            )
        if not address.is_pattern:
            self.path(address).mkdir(parents=True, exist_ok=True)
        for one in objects:
            self._take(one, Address(address.scheme, one.key))
        return len(objects)

    def _take(self, stored: StoredObject, address: Address) -> None:
        self._taken += stored.size
        if self._taken > LARGEST.bytes:
            raise StorageError(
                f"{address}: together with it, more than {in_words(LARGEST.bytes)} would be copied to this"
                f" machine; {LARGEST.hint}"
            )
        if any(part in ("", ".", "..") or "\0" in part for part in address.key.split("/")):
            raise StorageError(f"{address} is not a path in its folder and is skipped; rename the object")
        target = self.path(address)
        try:
            stored = take(address, target)
        except FileNotFoundError:
            return  # deleted after the listing
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            raise StorageError(f"{address} is both an object and a folder: {error.strerror}") from error
        if stored.modified:
            # The newest file is found by this time, and folders are copied in any order.
            os.utime(target, (stored.modified, stored.modified))
        self._seen[target] = _Seen.of(target)

    def open_target(self, path: Path) -> None:
        """Upload files at or below a path with the next `publish`."""
        self._targets.append(path)

    def publish(self, *, growing: bool = False) -> list[Address]:
        """Upload new and changed files, and delete objects whose files were deleted. Return the uploaded
        addresses.

        Args:
            growing: whether files may still be written. A file that changes during the copy is uploaded
                next time.

        Raises:
            StorageError: an object cannot be uploaded.
        """
        with self._lock:
            done: list[Address] = []
            for path, seen in self._changed():
                address = self.address(path)
                if growing:
                    copied = self._copied(path, seen)
                    if copied is None:
                        continue
                    try:
                        put(address, copied)
                    finally:
                        copied.unlink()
                else:
                    put(address, path)
                self._seen[path] = seen
                done.append(address)
            for path in self._gone():
                remove(self.address(path))
                del self._seen[path]
            return done

    @property
    def has_changes(self) -> bool:
        """Return whether local files and the storage differ."""
        return bool(self._changed() or self._gone())

    def _gone(self) -> list[Path]:
        return [path for path in self._seen if self._is_target(path) and not path.exists()]

    def _changed(self) -> list[tuple[Path, _Seen]]:
        files: dict[Path, _Seen] = {}
        for path in dict.fromkeys(file for target in self._targets for file in _files(target)):
            try:
                files[path] = _Seen.of(path)
            except FileNotFoundError:
                continue
        changed = [(path, seen) for path, seen in files.items() if self._seen.get(path) != seen]
        return sorted(changed, key=lambda one: one[1].modified)

    def _is_target(self, path: Path) -> bool:
        return any(path == target or path.is_relative_to(target) for target in self._targets)

    def _copied(self, path: Path, seen: _Seen) -> Path | None:
        """Return a consistent copy of a file; `None` if it was being written."""
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        copy = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as target, path.open("rb") as source:
                shutil.copyfileobj(source, target, 1 << 20)
            is_whole = path.name.endswith(_GROWING) or _Seen.of(path) == seen
        except FileNotFoundError:
            is_whole = False
        if not is_whole:
            copy.unlink(missing_ok=True)
            return None
        return copy

    def keep(self) -> Path | None:
        """Move files that are not uploaded to a permanent folder; `None` without such files."""
        changed = [path for path, _ in self._changed()]
        if not changed:
            return None
        rescue = Path(tempfile.mkdtemp(prefix="aigo-bridge-unsent-"))
        for path in changed:
            target = rescue / path.relative_to(self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
        return rescue


def _files(target: Path) -> Iterator[Path]:
    if target.is_file():
        yield target
    for place, folders, names in os.walk(target):
        folders[:] = [name for name in folders if not _OURS_ALONE.fullmatch(name)]
        for name in names:
            path = Path(place, name)
            if not (_OURS_ALONE.fullmatch(name) or path.is_symlink() or name.startswith(LEASE)):
                yield path
