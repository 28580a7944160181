"""Locations of log files: local, or on any file system that fsspec supports."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.bounds import LogTooLargeError
from aigo_bridge.access.file_kinds import HEAD, Head, head_of, remote_errors
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError


@dataclass(frozen=True)
class FileLocation:
    """Location on a local file system or one that fsspec supports."""

    fs: Any
    """File system; `None` for the local one."""
    path: str

    @classmethod
    def of(cls, location: str) -> FileLocation:
        """Return the location of a path or a URL.

        Raises:
            UsageError: the URL scheme is unknown, or its package is not installed.
        """
        if "://" not in location:
            return cls(None, location)
        import fsspec  # type: ignore[import-untyped]  # untyped

        try:
            fs, path = fsspec.core.url_to_fs(location)
        except (ImportError, ValueError, OSError) as error:
            raise UsageError(f"cannot open {location!r}: {error}", code=Code.UNREADABLE_LOG) from error
        return cls(None if "file" in _protocols(fs) else fs, path)

    def name(self, path: str) -> str:
        """Return a path of this file system in the form that the user would type."""
        return path if self.fs is None else str(self.fs.unstrip_protocol(path))

    def files(self) -> list[str]:
        """Return the sorted files at this location: the file, all below a folder, or a pattern's matches."""
        if self.fs is not None:
            paths = (
                self.fs.glob(self.path)
                if any(sign in self.path for sign in "*?[")
                else self.fs.find(self.path)
            )
            return sorted(map(str, paths))
        # The name of a lighteval file may look like a pattern, so existing files take precedence.
        if os.path.lexists(self.path):
            return list(_local_files(self.path))
        return sorted(file for name in glob.glob(self.path, recursive=True) for file in _local_files(name))  # noqa: PTH207  # patterns may be absolute

    def absolute(self, path: str) -> str:
        """Return the absolute path."""
        return os.path.abspath(path) if self.fs is None else path  # noqa: PTH100  # as written, without following links

    def exists(self, path: str) -> bool:
        """Return whether a file exists."""
        return Path(path).is_file() if self.fs is None else bool(self.fs.isfile(path))

    def below(self, folder: str) -> list[str]:
        """Return the files directly in a folder; an empty list if it does not exist."""
        if self.fs is not None:
            return sorted(map(str, self.fs.ls(folder, detail=False))) if self.fs.isdir(folder) else []
        path = Path(folder)
        return sorted(str(entry) for entry in path.iterdir()) if path.is_dir() else []

    def read(self, most: int) -> bytes:
        """Return the content of the file.

        Raises:
            OSError: the file cannot be read.
            TooLargeError: the file has more than `most` bytes.
        """
        size = self.check_size(most)
        with self.open() as file:
            return bytes(file.read(size))

    def check_size(self, most: int) -> int:
        """Return the size of the file in bytes.

        Raises:
            OSError: the file does not exist.
            TooLargeError: the file has more than `most` bytes.
        """
        size = self.size()
        if size > most:
            raise LogTooLargeError(
                f"{self.path!r} has {size:,} bytes, the limit is {most:,} (raise the bound 'member_bytes'"
                " if it is yours)"
            )
        return size

    def open(self) -> Any:
        """Open the file for reading bytes.

        Raises:
            OSError: the file cannot be opened.
        """
        return Path(self.path).open("rb") if self.fs is None else self.fs.open(self.path, "rb")

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return Path(self.path).stat().st_size if self.fs is None else int(self.fs.size(self.path))

    def head(self, path: str) -> Head:
        """Return the first bytes of a file; empty if it cannot be read."""
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
