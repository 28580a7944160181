"""Files of a lake in a local folder or in object storage, and checks of their names."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from aigo_bridge.access.display_paths import address_of, display_path
from aigo_bridge.access.object_addresses import Address, is_address, parse
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError

DELTA_LOG = "_delta_log"
"""Folder of a Delta table that contains the list of its files."""
MAX_LOG_BYTES = 256 << 20
"""Maximum size in bytes of a log file that is opened."""
_UNUSABLE = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]|^\\\x00-\x1f\x7f]")
"""Parts of a local path that the Delta library would misinterpret."""


def is_plain(name: str) -> bool:
    """Return whether a relative file name stays inside its folder.

    A Delta log percent-encodes file names, so the decoded name is also checked.
    """
    return _stays_inside(name) and ("%" not in name or _stays_inside(unquote(name)))


def _stays_inside(name: str) -> bool:
    is_relative = {"", ".", ".."}.isdisjoint(name.split("/"))
    return is_relative and name.isprintable() and ":" not in name and "\\" not in name


def damaged(place: str, message: str, hint: str | None = None) -> EvidenceError:
    """Return the error for an unusable part of a lake."""
    return EvidenceError(message, file=place, hint=hint, code=Code.DAMAGED_RESULT)


@dataclass(frozen=True)
class LakeFiles:
    """Files of a lake by their relative names."""

    root: Path | Address

    def __str__(self) -> str:
        return display_path(str(self.root))

    def uri(self, table: str) -> str:
        """Return the location of a table for the Delta library."""
        return str(self.root.below(table) if isinstance(self.root, Address) else self.root.resolve() / table)

    def entries(self) -> list[str]:
        """Return the names in the lake's folder, without the tables' own files.

        Raises:
            StorageError: the storage cannot be listed.
        """
        if isinstance(self.root, Address):
            from aigo_scale.storage.objects import find

            keys = (stored.key[len(self.root.key) + 1 :] for stored in find(self.root, depth=2))
            return sorted({key.partition("/")[0] for key in keys})
        return sorted(os.listdir(self.root)) if self.root.exists() else []  # noqa: PTH208  # only names are needed

    def has_table(self, table: str) -> bool:
        """Return whether a Delta table with this name exists.

        Raises:
            StorageError: the storage cannot be listed.
        """
        if isinstance(self.root, Address):
            from aigo_scale.storage.objects import find

            return bool(find(self.root.below(f"{table}/{DELTA_LOG}"), depth=1))
        return next((self.root / table / DELTA_LOG).glob("*.json"), None) is not None

    def may_become(self, table: str) -> bool:
        """Return whether the folder of a table is free or contains a Delta table.

        It is empty for a moment if another import starts at the same time.
        """
        if self.has_table(table):
            return True
        if isinstance(self.root, Address) or not (self.root / table).is_dir():
            return False
        return all(path.name == DELTA_LOG for path in (self.root / table).iterdir())

    def check_log(self, table: str) -> None:
        """Check that the log of a table contains only regular files within the size limit.

        Raises:
            EvidenceError: a file is too large, or is a link, a pipe or a device.
            StorageError: the storage cannot be listed.
        """
        if isinstance(self.root, Address):
            from aigo_scale.storage.objects import find

            folder = self.root.below(f"{table}/{DELTA_LOG}")
            sizes = {stored.key[len(self.root.key) + 1 :]: stored.size for stored in find(folder, depth=1)}
        else:
            sizes = dict(self._local_sizes(table))
        for name, size in sizes.items():
            if size > MAX_LOG_BYTES:
                text = f"found {size:,} bytes, expected at most {MAX_LOG_BYTES:,} in a file of a table's log"
                raise damaged(f"{self}/{name}", text)

    def _local_sizes(self, table: str) -> Iterator[tuple[str, int]]:
        assert isinstance(self.root, Path)
        self.check_file(f"{table}/{DELTA_LOG}", is_folder=True)
        for path in (self.root / table / DELTA_LOG).iterdir():
            name = f"{table}/{DELTA_LOG}/{path.name}"
            try:
                status = path.lstat()
            except FileNotFoundError:  # draft of a commit
                continue
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
                raise damaged(f"{self}/{name}", "found a link, a pipe or a device, expected a regular file")
            yield name, status.st_size

    def check_file(self, name: str, *, is_folder: bool = False) -> None:
        """Check that a name leads to a regular file of the lake or does not exist.

        Raises:
            EvidenceError: the name is not allowed, or the path contains a link.
        """
        if not is_plain(name):
            text = f"found the file name {name!r}, expected one inside the lake"
            raise damaged(
                str(self), text, "the lake was changed by another program; no data file was read or deleted"
            )
        if isinstance(self.root, Address):
            return
        # Strings are faster than paths, and a lake has thousands of files.
        path = str(self.root)
        parts = name.split("/")
        for number, part in enumerate(parts, 1):
            path = f"{path}/{part}"
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                return
            expects_folder = is_folder or number < len(parts)
            if not (stat.S_ISDIR(mode) if expects_folder else stat.S_ISREG(mode)):
                kind = "folder" if expects_folder else "regular file"
                raise damaged(f"{self}/{name}", f"found a link or a special file, expected a {kind}")

    @contextmanager
    def new(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file. In object storage it appears when the block ends."""
        self.check_file(name)
        if isinstance(self.root, Path):
            with (self.root / name).open("xb") as file:
                yield file
            return
        from aigo_scale.storage.objects import put

        with tempfile.TemporaryDirectory(prefix="aigo-lake-") as folder:
            path = Path(folder, "file")
            with path.open("xb") as file:
                yield file
            put(self.root.below(name), path)

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: the file does not exist.
            StorageError: the storage cannot be read.
        """
        self.check_file(name)
        if isinstance(self.root, Path):
            return (self.root / name).read_bytes()
        from aigo_scale.storage.objects import tried

        address = self.root.below(name)
        content: bytes = tried(address, "read", lambda filesystem: filesystem.cat_file(address.key))
        return content

    def remove(self, name: str) -> None:
        """Delete a file if it exists.

        Raises:
            EvidenceError: the name leads out of the lake.
        """
        self.check_file(name)
        if isinstance(self.root, Path):
            (self.root / name).unlink(missing_ok=True)
            return
        from aigo_scale.storage.objects import remove

        remove(self.root.below(name))


def files_at(location: str | os.PathLike[str]) -> LakeFiles:
    """Return the files at a path or an address.

    Raises:
        UsageError: the address is not valid, or the location does not support lakes.
    """
    text = os.fspath(location)
    address = text if is_address(text) else address_of(text)
    if address is None:
        found = _UNUSABLE.search(str(Path(text).resolve()))
        if found:
            raise UsageError(
                f"{text!r} cannot contain a lake: Delta tables do not support {found[0]!r} in "
                "the path; use another folder name",
                code=Code.WRONG_OPTION,
            )
        return LakeFiles(Path(text))
    root = parse(address)
    if root.scheme.name == "hf":
        raise UsageError(
            (f"{root} cannot contain a lake: expected a local folder, or s3://, gs:// or az://"),
            code=Code.WRONG_ADDRESS,
        )
    return LakeFiles(root)
