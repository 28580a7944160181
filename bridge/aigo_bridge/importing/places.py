"""Where files of logs lie: on this machine, or in any file system that fsspec knows."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.bounds import TooLargeError
from aigo_bridge.access.file_kinds import HEAD, Head, head_of, remote_errors
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError


@dataclass(frozen=True)
class FileLocation:
    """A location on a file system, local or any that fsspec knows."""

    fs: Any
    """The file system; `None`: the local one."""
    path: str

    @classmethod
    def of(cls, location: str) -> FileLocation:
        """The place that a path, or a URL, names.

        Raises:
            UsageError: there is no such kind of URL, or what it takes is not installed.
        """
        if "://" not in location:
            return cls(None, location)
        import fsspec  # type: ignore[import-untyped]  # has no types

        try:
            fs, path = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError, OSError) as error:
            raise UsageError(f"cannot open {location!r}: {error}", code=Code.UNREADABLE_LOG) from error
        return cls(None if "file" in _protocols(fs) else fs, path)

    def name(self, path: str) -> str:
        """A path of this file system as the user would write it."""
        return path if self.fs is None else str(self.fs.unstrip_protocol(path))

    def files(self) -> list[str]:
        """The files here: the file itself, all below a folder, or what a pattern matches; sorted."""
        if self.fs is not None:
            paths = (
                self.fs.glob(self.path)
                if any(sign in self.path for sign in "*?[")
                else self.fs.find(self.path)
            )
            return sorted(map(str, paths))
        # A name of lighteval's may look like a pattern: what exists is no pattern.
        if os.path.lexists(self.path):
            return list(_local_files(self.path))
        return sorted(file for name in glob.glob(self.path, recursive=True) for file in _local_files(name))  # noqa: PTH207  # patterns may be absolute

    def absolute(self, path: str) -> str:
        """A path of which all folders are known."""
        return os.path.abspath(path) if self.fs is None else path  # noqa: PTH100  # as written, without following links

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return Path(path).is_file() if self.fs is None else bool(self.fs.isfile(path))

    def below(self, folder: str) -> list[str]:
        """The files directly in a folder; none when there is no such folder."""
        if self.fs is not None:
            return sorted(map(str, self.fs.ls(folder, detail=False))) if self.fs.isdir(folder) else []
        path = Path(folder)
        return sorted(str(entry) for entry in path.iterdir()) if path.is_dir() else []

    def read(self, most: int) -> bytes:
        """The whole file.

        Raises:
            OSError: it cannot be read.
            TooLargeError: it has more than `most` bytes.
        """
        size = self.check_size(most)
        with self.open() as file:
            return bytes(file.read(size))

    def check_size(self, most: int) -> int:
        """Bytes of the file.

        Raises:
            OSError: there is none.
            TooLargeError: it has more than `most` bytes.
        """
        size = self.size()
        if size > most:
            raise TooLargeError(
                f"{self.path!r} has {size:,} bytes, the limit is {most:,} (raise the bound 'member_bytes'"
                " if it is yours)"
            )
        return size

    def open(self) -> Any:
        """The file, open for reading bytes.

        Raises:
            OSError: it cannot be opened.
        """
        return Path(self.path).open("rb") if self.fs is None else self.fs.open(self.path, "rb")

    def size(self) -> int:
        """Bytes of the file."""
        return Path(self.path).stat().st_size if self.fs is None else int(self.fs.size(self.path))

    def head(self, path: str) -> Head:
        """The beginning of a file; nothing when it cannot be read."""
        if self.fs is None:
            return head_of(path) or Head(b"", whole=True)
        try:
            data = bytes(self.fs.cat_file(path, start=0, end=HEAD))
        except remote_errors():
            return Head(b"", whole=True)
        return Head(data, len(data) < HEAD)


def _local_files(path: str) -> Iterator[str]:
    if not Path(path).is_dir():
        yield path
        return
    for folder, names, files in os.walk(path):
        names.sort()
        yield from (str(Path(folder) / name) for name in sorted(files))


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
