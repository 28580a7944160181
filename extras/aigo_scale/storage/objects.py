"""Objects of a storage: listing, reading, writing and deleting, with retries.

Every write is one request, or a multipart upload that ends with one. So an object is always complete, in its
old or new version. The storage libraries also retry, but not after all temporary errors.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from aigo_bridge.access.object_addresses import (
    Address,
    ObjectStorage,
    Scheme,
    StorageError,
    StoredObject,
    require_package,
)
from aigo_bridge.errors import BridgeError
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.text.plurals import plural

T = TypeVar("T")

TRIES = 6
LONGEST_WAIT = 20.0
"""Maximum seconds between two attempts."""

_PART = 16 << 20
"""Size in bytes of a part of a large object. A few parts are in memory at the same time."""
_MOST_PARTS = 10_000

_FINAL = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)
_FINAL_NAMES = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "ProfileNotFound"}
)
"""Errors for which a retry is useless."""


@cache
def _filesystem(scheme: Scheme) -> Any:
    require_package(scheme)
    import fsspec  # type: ignore[import-untyped]  # untyped

    # A cached listing would not show new objects.
    return fsspec.filesystem(scheme.protocol, use_listings_cache=False, skip_instance_cache=True)


def tried(address: Address, what: str, work: Callable[[Any], T]) -> T:
    """Send a request to a storage, with retries after temporary errors.

    Args:
        address: address of the request.
        what: participle for messages, for example `read` or `written`.
        work: function that gets the file system.

    Raises:
        FileNotFoundError: the object does not exist.
        StorageError: the request failed.
    """
    filesystem = _filesystem(address.scheme)
    for number in range(TRIES):
        try:
            return work(filesystem)
        except FileNotFoundError:
            raise
        except Exception as error:
            # Each library has its own errors, and many are not an `OSError`.
            if is_final(error) or number == TRIES - 1:
                raise StorageError(_explained(address, what, error, number + 1)) from error
            time.sleep(min(LONGEST_WAIT, 0.25 * 3**number) * random.uniform(0.5, 1))  # noqa: S311  # random waits spread the retries of many processes
    raise AssertionError("a try returns or raises")


def is_final(error: BaseException) -> bool:
    """Return whether a retry is useless."""
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__name__ in _FINAL_NAMES or isinstance(cause, ImportError | TypeError | BridgeError):
            return True
        status = getattr(cause, "response", None)
        if isinstance(status, dict):
            code = status.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(code, int):
                return 400 <= code < 500 and code not in (408, 425, 429)
        cause = cause.__cause__
    return isinstance(error, _FINAL)


def _explained(address: Address, what: str, error: Exception, tries: int) -> str:
    text = redact(str(error).strip() or type(error).__name__)
    name = type(error).__name__
    hint = ""
    if "Credential" in name or isinstance(error, PermissionError):
        hint = (
            "; credentials are read from the environment or the storage's own configuration"
            f"{' (AWS_ACCESS_KEY_ID, AWS_PROFILE, ~/.aws …)' if address.scheme.name == 's3' else ''}"
        )
    often = f" ({plural(tries, 'try', 'tries')})" if tries > 1 else ""
    return f"{address} cannot be {what}{often}: {text}{hint}"


def find(address: Address, *, depth: int | None = None) -> list[StoredObject]:
    """Return all objects in a folder, or all that match a pattern, sorted by key.

    Only listings are used. Empty objects that some programs create for folders are omitted.

    Args:
        address: folder or pattern.
        depth: maximum folder depth; `None`: no limit.

    Raises:
        StorageError: the storage cannot be listed.
    """

    def listed(filesystem: Any) -> list[StoredObject]:
        filesystem.invalidate_cache()
        entries: Iterable[dict[str, Any]]
        if address.is_pattern and "**" not in address.key:
            entries = _matches(filesystem, address.key)
        elif address.is_pattern:
            entries = filesystem.glob(address.key, detail=True).values()
        elif depth is not None:
            entries = _below(filesystem, address.key, depth)
        else:
            entries = filesystem.find(address.key, detail=True).values()
        return [_stored(entry) for entry in entries if entry.get("type") == "file"]

    try:
        objects = tried(address, "listed", listed)
    except FileNotFoundError:
        return []
    objects = [one for one in objects if not (one.key.endswith("/") and one.size == 0)]
    if not address.is_pattern:
        objects = [one for one in objects if one.key.startswith(f"{address.key}/")]
    return sorted(objects, key=lambda one: one.key)


def _below(filesystem: Any, folder: str, depth: int) -> Iterator[dict[str, Any]]:
    """Yield the content of a folder down to a depth, level by level. `find` with a depth fails for an empty
    folder.
    """
    folders = [folder]
    for _ in range(depth):
        deeper = list[str]()
        for name in folders:
            try:
                entries = filesystem.ls(name, detail=True)
            except FileNotFoundError:
                continue
            deeper += [
                entry["name"].rstrip("/")
                for entry in entries
                if entry.get("type") == "directory" and entry["name"].rstrip("/") != name
            ]
            yield from entries
        folders = deeper


def _matches(filesystem: Any, pattern: str) -> list[dict[str, Any]]:
    """Return the entries that match a pattern without `**`."""
    from fsspec.utils import glob_translate  # type: ignore[import-untyped]  # untyped

    first = min(pattern.index(sign) for sign in "*?[" if sign in pattern)
    folder, _, below = pattern[:first].rpartition("/")
    if not folder:
        return list(filesystem.glob(pattern, detail=True).values())
    depth = f"{below}{pattern[first:]}".count("/") + 1
    regex = re.compile(glob_translate(pattern))
    return [entry for entry in _below(filesystem, folder, depth) if regex.match(entry["name"])]


def look(address: Address) -> StoredObject | None:
    """Return one object; `None` if it does not exist.

    Raises:
        StorageError: the storage does not answer.
    """

    def asked(filesystem: Any) -> StoredObject | None:
        filesystem.invalidate_cache()
        entry = filesystem.info(address.key)
        return _stored(entry) if entry.get("type") == "file" else None

    try:
        return tried(address, "looked at", asked)
    except FileNotFoundError:
        return None


def take(address: Address, target: Path) -> StoredObject:
    """Copy an object into a new file.

    Raises:
        FileNotFoundError: the object does not exist.
        StorageError: the object cannot be read, or it changes repeatedly during the copy.
    """

    def copied(filesystem: Any) -> StoredObject:
        filesystem.invalidate_cache()
        begun = _stored(filesystem.info(address.key))
        filesystem.get_file(address.key, str(target))
        filesystem.invalidate_cache()
        stored = _stored(filesystem.info(address.key))
        size = target.stat().st_size
        if stored.mark != begun.mark or size != stored.size:
            raise OSError(f"found {size:,} bytes, expected {stored.size:,}, or the object was replaced")
        return stored

    target.parent.mkdir(parents=True, exist_ok=True)
    return tried(address, "read", copied)


def put(address: Address, source: Path) -> None:
    """Upload a file atomically.

    Raises:
        StorageError: the object cannot be written.
    """
    size = source.stat().st_size
    options: dict[str, Any] = {}
    if address.scheme.name == "s3" and size > _PART:
        options = {"chunksize": max(_PART, -(-size // _MOST_PARTS)), "max_concurrency": 4}
    _write(address, lambda filesystem: filesystem.put_file(str(source), address.key, **options))


def put_bytes(address: Address, content: bytes) -> None:
    """Write a small object.

    Raises:
        StorageError: the object cannot be written.
    """
    _write(address, lambda filesystem: filesystem.pipe_file(address.key, content))


def _write(address: Address, work: Callable[[Any], object]) -> None:
    try:
        tried(address, "written", work)
    except FileNotFoundError as error:
        bucket = address.key.partition("/")[0]
        raise StorageError(f"{address} cannot be written: bucket {bucket!r} does not exist") from error


def remove(address: Address) -> None:
    """Delete an object if it exists.

    Raises:
        StorageError: the object cannot be deleted.
    """
    try:
        tried(address, "removed", lambda filesystem: filesystem.rm_file(address.key))
    except FileNotFoundError:
        return


def _stored(entry: dict[str, Any]) -> StoredObject:
    modified = next(
        (entry[name] for name in ("LastModified", "last_modified", "updated", "mtime") if entry.get(name)), 0
    )
    mark = next(
        (entry[name] for name in ("ETag", "etag", "blob_id", "md5Hash", "generation") if entry.get(name)), ""
    )
    return StoredObject(str(entry["name"]), int(entry.get("size") or 0), _seconds(modified), str(mark))


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        from datetime import datetime

        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    return float(value.timestamp()) if hasattr(value, "timestamp") else float(value)


def forget_connections() -> None:
    """Close cached connections, for tests and forked processes."""
    if "fsspec" in sys.modules:
        _filesystem.cache_clear()


OBJECT_STORAGE = ObjectStorage(look, take)
"""Hook `object storage`."""
