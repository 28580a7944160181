"""Object storage addresses: schemes, required packages, and the distinction from paths."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.errors import BridgeError, UsageError
from aigo_bridge.process import install_command


@dataclass(frozen=True)
class Scheme:
    """One kind of storage."""

    name: str
    """Scheme name before `://`."""
    protocol: str
    """Fsspec's protocol name."""
    package: str
    """Module that accesses the storage."""
    extra: str
    """Extra of aigo-bridge that installs the module."""
    keeps_leases: bool = True
    """Whether small objects may be written every few seconds, to save a run in progress and to lock a
    place for one process. Not possible if each write is a commit.
    """


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("s3", "s3", "s3fs", "s3"),
        Scheme("gs", "gs", "gcsfs", "gs"),
        Scheme("az", "abfs", "adlfs", "az"),
        Scheme("hf", "hf", "huggingface_hub", "hf", keeps_leases=False),
    )
}

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_COLLAPSED = re.compile(rf"(?:{'|'.join(SCHEMES)}):/(?!/)")
_PASSWORD = re.compile(r"[^/@]*:[^/@]*@")


@dataclass(frozen=True)
class Address:
    """Location in object storage."""

    scheme: Scheme
    key: str
    """Bucket and key, separated by `/`, without `/` at either end. The key may be empty or a pattern."""

    def __str__(self) -> str:
        return f"{self.scheme.name}://{self.key}"

    @property
    def name(self) -> str:
        """Last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def is_pattern(self) -> bool:
        """Whether the key is a pattern."""
        return any(sign in self.key for sign in "*?[")

    def below(self, name: str) -> Address:
        """Return a location in this folder."""
        return Address(self.scheme, f"{self.key}/{name}")

    @property
    def parent(self) -> Address:
        """Folder that contains the location."""
        return Address(self.scheme, self.key.rpartition("/")[0] or self.key)


def is_address(text: str) -> bool:
    """Return whether a text is an address with any scheme. For a file with such a name, write `./x://y`."""
    return _URL.fullmatch(text) is not None


def is_collapsed(text: str) -> bool:
    """Return whether a text is an address that was treated as a path: `s3:/bucket`."""
    return _COLLAPSED.match(text) is not None


def parse(text: str) -> Address:
    """Parse an address that the user wrote.

    Raises:
        UsageError: the scheme is unknown, or the address contains a password, an empty part or `..`.
    """
    match = _URL.fullmatch(text)
    scheme = SCHEMES.get(match["scheme"].lower()) if match else None
    if match is None or scheme is None:
        schemes = ", ".join(f"{name}://" for name in SCHEMES)
        raise UsageError(
            f"found {text!r}, expected a path, or an address that begins with {schemes}",
            code=Code.WRONG_ADDRESS,
        )
    if _PASSWORD.match(match["rest"]):
        raise UsageError(
            f"found an address {scheme.name}://…@… with a password; put credentials into "
            "environment variables or the configuration of the storage",
            code=Code.WRONG_ADDRESS,
        )
    key = match["rest"].rstrip("/")
    parts = key.split("/")
    if not key or any(part in ("", ".", "..") for part in parts) or "\0" in key:
        raise UsageError(
            f"found {text!r}, expected {scheme.name}://BUCKET/KEY without empty parts, '.' and '..'",
            code=Code.WRONG_ADDRESS,
        )
    return Address(scheme, key)


def require_package(scheme: Scheme) -> None:
    """Check that the package for a storage is installed.

    Raises:
        UsageError: it is not installed; the message contains the install command.
    """
    try:
        is_there = importlib.util.find_spec(scheme.package) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        command = install_command(scheme.extra) or f"pip install {scheme.package}"
        raise UsageError(
            f"{scheme.name}:// needs {scheme.package}, which is not installed (extra {scheme.extra!r} of"
            f" aigo-bridge); run: {command}",
            code=Code.MISSING_PACKAGE,
        )


class StorageError(BridgeError):
    """A request that an object storage refused or did not answer."""

    usual_code = Code.FAILED_STORAGE


@dataclass(frozen=True)
class StoredObject:
    """An object in a listing."""

    key: str
    """Bucket and key."""
    size: int
    modified: float
    """Unix time by the clock of the storage; 0 if unknown."""
    mark: str
    """Version of the content; empty if unknown."""


@dataclass(frozen=True)
class ObjectStorage:
    """Hook `object storage`: access to single objects."""

    look: Callable[[Address], StoredObject | None]
    """Return an object without its content; `None` if it does not exist.

    Raises:
        StorageError: the storage cannot be asked.
    """
    take: Callable[[Address, Path], StoredObject]
    """Copy an object into a new file.

    Raises:
        FileNotFoundError: the object does not exist.
        StorageError: it cannot be read.
    """
