"""Rows in object storage, `url: s3://…`, in their current version, from addresses that the user has allowed.

A task from a stranger could otherwise read an address with the user's own credentials. Only addresses that
the user has named on the command line are accessed.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from aigo_bridge.access.addresses import STORAGES, is_object_allowed, require_network
from aigo_bridge.access.existence import is_file
from aigo_bridge.access.grants import granted
from aigo_bridge.access.object_addresses import (
    Address,
    ObjectStorage,
    StorageError,
    parse,
    require_package,
)
from aigo_bridge.codes import Code
from aigo_bridge.datasets.files import file_kind
from aigo_bridge.errors import DatasetError, UsageError
from aigo_bridge.hooks import load_hook


def is_object(url: str) -> bool:
    """Return whether a URL refers to object storage."""
    try:
        return urlsplit(url).scheme in STORAGES
    except ValueError:
        return False


def object_address(url: str) -> Address:
    """Return the address of the object in a URL, without any request.

    Raises `DatasetError` if the URL does not refer to exactly one object.
    """
    try:
        address = parse(url)
    except UsageError as error:
        raise DatasetError(str(error), code=Code.REFUSED_ADDRESS) from error
    if address.is_pattern:
        raise DatasetError(
            f"found the pattern {str(address)!r}, expected the address of one file", code=Code.REFUSED_ADDRESS
        )
    return address


def object_copy(url: str, folder: Path, *, largest: int) -> Path:
    """Return a copy of an object in a cache folder. Each version has a separate copy, so that the rows are
    current.

    Raises `DatasetError` in these cases: its file extension is not supported, network access is not
    allowed, the user has not allowed its address, it does not exist, it cannot be read, or it has more
    than `largest` bytes.
    """
    address = object_address(url)
    file_kind(Path(address.name))
    require_network(f"{str(address)!r}")
    if not is_object_allowed(str(address), granted().addresses):
        raise DatasetError(
            f"{str(address)!r} is in object storage; a task may only read addresses that you allow",
            hint=f"to allow it, use --allow-url {address.parent}",
            code=Code.REFUSED_ADDRESS,
        )
    try:
        return _copy(address, folder, largest)
    except FileNotFoundError as error:
        raise DatasetError(f"{str(address)!r} does not exist", code=Code.FAILED_DOWNLOAD) from error
    except (UsageError, StorageError) as error:
        raise DatasetError(str(error), code=error.code) from error
    except OSError as error:
        raise DatasetError(
            f"the copy cannot be stored: {error}", file=str(folder), code=Code.UNUSABLE_OUTPUT
        ) from error


def _copy(address: Address, folder: Path, largest: int) -> Path:
    require_package(address.scheme)
    storage = load_hook("object storage", ObjectStorage)
    stored = storage.look(address)
    if stored is None:
        raise FileNotFoundError(str(address))
    if stored.size > largest:
        raise DatasetError(
            f"{str(address)!r} has {stored.size:,} bytes, but a download may have at most {largest:,} bytes",
            code=Code.TOO_MANY_ROWS,
        )
    version = f"{address}\0{stored.mark}\0{stored.size}\0{stored.modified}"
    target = folder / f"{hashlib.sha256(version.encode()).hexdigest()[:16]}-{address.name[-100:]}"
    if not is_file(target):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as draft:
            path = Path(draft) / "object"
            storage.take(address, path)
            path.replace(target)
    return target
