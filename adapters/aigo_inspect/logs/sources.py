"""Sources of log data: local files, and all locations that fsspec can open."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from aigo_bridge.access.file_kinds import (
    EMPTY,
    HEAD,
    LOG_SUFFIXES,
    Head,
    head_of,
    is_foreign,
    is_result_log,
    other_file,
    remote_errors,
)
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError


class UnreachableError(UsageError):
    """A URL cannot be searched for logs: no access, no network, or an unknown scheme."""

    usual_code = Code.UNREADABLE_LOG


class ByteSource(Protocol):
    """Random access to the bytes of one log."""

    name: str
    """Location as given by the user."""
    size: int
    """Length in bytes."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`, fewer at the end of the file. Raise `EvidenceError` if
        reading fails.
        """

    def close(self) -> None:
        """Close the file."""


class _LocalSource:
    def __init__(self, name: str, path: str):
        self.name = name
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self.size = os.fstat(self._fd).st_size

    def read_at(self, offset: int, length: int) -> bytes:
        try:
            return self._read_at(offset, length)
        except OSError as error:
            raise EvidenceError(
                f"cannot read {self.name!r} at byte {offset}: {error.strerror}", code=Code.UNREADABLE_LOG
            ) from error

    def _read_at(self, offset: int, length: int) -> bytes:
        data = os.pread(self._fd, length, offset)
        if len(data) == length or not data:
            return data
        # One pread call returns at most 2 GiB.
        parts = [data]
        got = len(data)
        while got < length and (more := os.pread(self._fd, length - got, offset + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _RemoteSource:
    def __init__(self, name: str):
        import fsspec  # type: ignore[import-untyped]  # untyped

        self.name = name
        self._file: Any = fsspec.open(name, "rb").open()
        self._file.seek(0, os.SEEK_END)
        self.size = int(self._file.tell())

    def read_at(self, offset: int, length: int) -> bytes:
        try:
            self._file.seek(offset)
            data: bytes = self._file.read(length)
        except remote_errors() as error:
            raise EvidenceError(
                f"cannot read {self.name!r} at byte {offset}: {error}", code=Code.UNREADABLE_LOG
            ) from error
        return data

    def close(self) -> None:
        self._file.close()


class BytesSource:
    """A log in memory."""

    def __init__(self, data: bytes, name: str = "<bytes>"):
        self.name = name
        self.size = len(data)
        self._data = data

    def read_at(self, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`; see `ByteSource.read_at`."""
        return self._data[offset : offset + length]

    def close(self) -> None:
        """Do nothing, because no file is open."""


def local_path(location: str | os.PathLike[str]) -> str | None:
    """Return the local path of `location`; `None` for a URL with a scheme other than `file`."""
    text = os.fspath(location)
    if "://" not in text:
        return text
    parts = urlsplit(text)
    return unquote(parts.path) if parts.scheme == "file" else None


def open_source(location: str | os.PathLike[str]) -> ByteSource:
    """Open a local path or fsspec URL for random access.

    Raises:
        EvidenceError: the location cannot be opened. The message contains the reason.
    """
    name = os.fspath(location)
    path = local_path(name)
    try:
        if path is None:
            return _RemoteSource(name)
        if Path(path).is_dir():
            raise EvidenceError(f"{name!r} is a folder, expected a log file", code=Code.NOT_A_LOG)
        return _LocalSource(name, path)
    except FileNotFoundError as error:
        raise EvidenceError(f"no such log: {name!r}", code=Code.NO_LOGS) from error
    except remote_errors() as error:
        raise EvidenceError(f"cannot open {name!r}: {error}", code=Code.UNREADABLE_LOG) from error


def is_log_file(path: Path) -> bool:
    """Return whether a local file is an Inspect log, based on its content, or on its name if the content is
    damaged.
    """
    if path.is_symlink() and not path.exists():
        # A broken link is kept, so that reading it reports an error.
        return _is_log_name(path.name)
    if not path.is_file():
        return False
    head = head_of(path)
    return _is_log_name(path.name) if head is None else is_log(head, path.name)


def is_log(head: Head, name: str) -> bool:
    """Return whether a file with these first bytes and this name is an Inspect log."""
    if head.data[:2] == b"PK":
        return True
    members = head.members or ()
    if "config_general" in members or is_result_log(head) or is_foreign(head):
        return False
    file_kind = other_file(head, name)
    return "eval" in members or (file_kind in (None, EMPTY) and _is_log_name(name))


def _is_log_name(name: str) -> bool:
    # Names that Inspect uses: any `.eval`; a `.json` whose name starts with an ISO timestamp.
    if name.endswith(".eval"):
        return True
    return name.endswith(".json") and name[:4].isdigit() and name[4:5] == "-"


def find_logs(locations: Sequence[str | os.PathLike[str]], *, recursive: bool = True) -> list[str]:
    """Expand files, folders and glob patterns (local or fsspec URLs) to the logs that they match, in sorted
    order.

    A file given by its exact name is accepted with any name. A file with several names (a link, `x` and
    `./x`) is returned once, with the first name.

    Raises:
        UsageError: a location does not match any log.
        UnreachableError: a location cannot be searched.
    """
    logs: dict[str, str] = {}
    for location in locations:
        text = os.fspath(location)
        path = local_path(text)
        matches = _find_remote(text, recursive) if path is None else _find_local(path, recursive)
        if not matches:
            raise UsageError(
                f"no logs at {text!r} (expected a log file, a folder with logs or a pattern)",
                code=Code.NO_LOGS,
            )
        for match in matches:
            local = local_path(match)
            logs.setdefault(match if local is None else os.path.realpath(local), match)
    return list(logs.values())


def _find_local(path: str, recursive: bool) -> list[str]:
    if Path(path).is_file():
        return [path]
    if Path(path).is_dir():
        pattern = Path(path).rglob("*") if recursive else Path(path).glob("*")
        return sorted(str(file) for file in pattern if file.name.endswith(LOG_SUFFIXES) and is_log_file(file))
    # A pattern may be absolute, which Path.glob rejects.
    return sorted(name for name in glob.glob(path, recursive=True) if _is_named(Path(name)))  # noqa: PTH207  # see above


def _is_remote_log(fs: Any, path: str) -> bool:
    """Return whether a remote file is a log. Its content is only read if its name is ambiguous."""
    name = path.rsplit("/", 1)[-1]
    if _is_log_name(name) or not name.endswith(LOG_SUFFIXES):
        return name.endswith(LOG_SUFFIXES)
    try:
        data = bytes(fs.cat_file(path, start=0, end=HEAD))
    except remote_errors():
        return False
    return is_log(Head(data, len(data) < HEAD), name)


def _is_named(path: Path) -> bool:
    """Return whether a path is a file or a broken link, which reports an error when it is read."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _find_remote(url: str, recursive: bool) -> list[str]:
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(url)
        if any(sign in path for sign in "*?["):
            names = fs.glob(path)
        elif fs.isdir(path):
            below = fs.find(path) if recursive else fs.ls(path, detail=False)
            names = [name for name in below if _is_remote_log(fs, name)]
        else:
            names = [path] if fs.exists(path) else []
    except FileNotFoundError:
        return []
    except remote_errors() as error:
        raise UnreachableError(f"cannot look for logs at {url!r}: {error}") from error
    return sorted(fs.unstrip_protocol(name) for name in names)
