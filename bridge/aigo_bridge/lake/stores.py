"""Where a lake lies: a folder of this machine, or one in object storage; whatever appears there is whole."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.storage.addresses import Address, is_address, parse
from aigo_bridge.storage.mirrored import address_of

_DRAFT = re.compile(r"\.lake\.json\..*\.draft")
_TO_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_SMALL = 1 << 16
_AT_ONCE = 500
"""Small objects that are read together."""


@dataclass(frozen=True)
class Named:
    """A file of a lake, as a listing has it."""

    name: str
    """Its path below the lake, with `/`."""
    size: int
    modified: float


class Store(Protocol):
    """The files of a lake, by their names below it."""

    def __str__(self) -> str: ...

    def list(self, folder: str) -> list[Named]:
        """The files below a folder, by their names; those that are being written are none."""
        ...

    def names(self, folder: str) -> Sequence[str]:
        """The names of `list` alone, which cost less."""
        ...

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The contents of small files; those that are not there are left out."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is there."""
        ...

    def new(self, name: str, *, clean: bool = False) -> Any:
        """A block with a file to write, which appears when the block ends well, in place of an earlier one.

        `clean`: it is text, of which secrets are taken out; of others they were before.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def for_arrow(self, name: str) -> tuple[str, Any]:
        """A file's path, and the file system of Arrow that has it."""
        ...


@dataclass(frozen=True)
class Folder:
    """A lake on this machine."""

    root: Path

    def __str__(self) -> str:
        return str(self.root)

    def list(self, folder: str) -> list[Named]:
        found: list[Named] = []
        for name in self.names(folder):
            with suppress(FileNotFoundError):
                status = (self.root / name).stat()
                found.append(Named(name, status.st_size, status.st_mtime))
        return found

    def names(self, folder: str) -> Sequence[str]:
        # Texts and not paths, and no file is looked at: a driver does this for each log of the lake.
        found: list[str] = []
        for place, folders, names in os.walk(self.root / folder):
            folders.sort()
            below = Path(place).relative_to(self.root).as_posix()
            found += [f"{below}/{name}" for name in sorted(names) if not name.startswith(".")]
        return found

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        for name in names:
            with suppress(FileNotFoundError):
                handle = os.open(f"{self.root}{os.sep}{name}", _TO_READ)
                try:
                    parts = [os.read(handle, _SMALL)]
                    while len(parts[-1]) == _SMALL:
                        parts.append(os.read(handle, _SMALL))
                finally:
                    os.close(handle)
                contents[name] = parts[0] if len(parts) == 1 else b"".join(parts)
        return contents

    def exists(self, name: str) -> bool:
        return (self.root / name).is_file()

    @property
    def is_empty(self) -> bool:
        if not self.root.exists():
            return True
        # A draft is what an import leaves that was killed before the lake was one.
        return not any(not _DRAFT.fullmatch(path.name) for path in self.root.iterdir())

    @contextmanager
    def new(self, name: str, *, clean: bool = False) -> Iterator[BinaryIO]:
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_for_replacing(target, clean=clean) as file:
            yield file

    def remove(self, name: str) -> None:
        path = self.root / name
        path.unlink(missing_ok=True)
        for folder in path.parents:
            if folder == self.root:
                return
            try:
                folder.rmdir()
            except OSError:  # others have files there
                return

    def for_arrow(self, name: str) -> tuple[str, Any]:
        from pyarrow import fs  # type: ignore[import-untyped]  # has no types

        return str(self.root / name), fs.LocalFileSystem()


@dataclass(frozen=True)
class Bucket:
    """A lake in object storage."""

    root: Address

    def __str__(self) -> str:
        return str(self.root)

    def list(self, folder: str) -> list[Named]:
        from aigo_bridge.storage.objects import find

        cut = len(self.root.key) + 1
        return [Named(one.key[cut:], one.size, one.modified) for one in find(self.root.below(folder))]

    def names(self, folder: str) -> Sequence[str]:
        return [one.name for one in self.list(folder)]

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        from aigo_bridge.storage.objects import tried

        contents: dict[str, bytes] = {}
        cut = len(self.root.key) + 1
        for begin in range(0, len(names), _AT_ONCE):
            keys = [self.root.below(name).key for name in names[begin : begin + _AT_ONCE]]

            def together(filesystem: Any, keys: list[str] = keys) -> dict[str, Any]:
                found: dict[str, Any] = filesystem.cat(keys, on_error="return")
                for value in found.values():
                    if isinstance(value, Exception) and not isinstance(value, FileNotFoundError):
                        raise value
                return found

            found = tried(self.root, "read", together)
            contents |= {key[cut:]: value for key, value in found.items() if isinstance(value, bytes)}
        return contents

    def exists(self, name: str) -> bool:
        from aigo_bridge.storage.objects import look

        return look(self.root.below(name)) is not None

    @property
    def is_empty(self) -> bool:
        from aigo_bridge.storage.objects import find

        return not find(self.root, depth=2)

    @contextmanager
    def new(self, name: str, *, clean: bool = False) -> Iterator[BinaryIO]:
        from aigo_bridge.storage.objects import put

        with tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
            file = Path(folder, "file")
            with open_for_replacing(file, clean=clean) as content:
                yield content
            put(self.root.below(name), file)

    def remove(self, name: str) -> None:
        from aigo_bridge.storage.objects import remove

        remove(self.root.below(name))

    def for_arrow(self, name: str) -> tuple[str, Any]:
        from pyarrow import fs

        from aigo_bridge.storage.objects import tried

        filesystem = tried(self.root, "read", lambda filesystem: filesystem)
        return self.root.below(name).key, fs.PyFileSystem(fs.FSSpecHandler(filesystem))


def store_at(location: str | os.PathLike[str]) -> Store:
    """The files at a path, or at an address.

    Raises:
        UsageError: it is an address that is none.
    """
    text = os.fspath(location)
    address = text if is_address(text) else address_of(text)
    return Folder(Path(text)) if address is None else Bucket(parse(address))
