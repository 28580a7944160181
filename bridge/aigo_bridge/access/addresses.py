"""Allowed addresses for dataset rows, for all readers."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from aigo_bridge.access.grants import granted
from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, UsageError

SCHEMES = ("http", "https")
"""Allowed schemes of dataset addresses."""

STORAGES = ("s3", "gs", "az", "hf")
"""Schemes of object storage, read with the user's own credentials. The user must allow each place."""

REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(?!\\)|://|::")
"""Text that is an address (or a chain of addresses, as some libraries accept) instead of a path."""


def require_address(url: str) -> None:
    """Check that rows may come from an address.

    Raises `DatasetError` for any other address.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in SCHEMES and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        raise DatasetError(
            f"found the URL {shown_address(url)!r}, expected http:// or https://, or "
            f"{', '.join(f'{scheme}://' for scheme in STORAGES)}",
            code=Code.REFUSED_ADDRESS,
        )


def require_network(what: str, *, hint: str | None = None) -> None:
    """Check that downloads are allowed.

    Raises `DatasetError` if they are not.
    """
    if not granted().network:
        message = f"{what} must be downloaded, and downloads are not allowed"
        raise DatasetError(message, hint=hint or "allow downloads with --network", code=Code.NETWORK_CLOSED)


def check_allowed(address: str) -> None:
    """Check that a value is a host (`data.example`), an origin (`http://127.0.0.1:8000`) or a place in object
    storage (`s3://team/data`).

    Raises:
        UsageError: the value has another form.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if parts.scheme in STORAGES:
            steps = address.partition("://")[2].rstrip("/").split("/")
            if all(step not in ("", ".", "..") and not set(step) & set("@*?[") for step in steps):
                return
            parts = urlsplit("")
        is_known = "://" not in address or parts.scheme in SCHEMES
        is_bare = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
        _ = parts.port
    except ValueError:
        is_known = is_bare = False
        parts = urlsplit("")
    if not (parts.hostname and is_known and is_bare):
        raise UsageError(
            f"--allow-url: found {address!r}, expected a host or an origin, e.g. http://127.0.0.1:8000, or a"
            " place in object storage, e.g. s3://team/data",
            code=Code.WRONG_OPTION,
        )


def is_allowed(url: str, allowed: Iterable[str]) -> bool:
    """Return whether a user has allowed the host of an address, or its origin."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    for entry in allowed:
        if "://" in entry:
            if origin_of(entry) == origin_of(url):
                return True
            continue
        named = urlsplit(f"//{entry}")
        if named.hostname == host and named.port in (None, _port(url)):
            return True
    return False


def is_object_allowed(address: str, allowed: Iterable[str]) -> bool:
    """Return whether a user has allowed an object, or a folder or bucket that contains it."""
    return any(f"{address}/".startswith(f"{entry.rstrip('/')}/") for entry in allowed if "://" in entry)


def origin_of(url: str) -> str:
    """Return the origin, such as `https://data.example:8443`; without the default port of the scheme."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if _port(url) == _PORTS.get(parts.scheme) else f":{_port(url)}"
    return f"{parts.scheme}://{host}{port}"


def shown_address(url: str) -> str:
    """Return an address without its password, for messages."""
    scheme, slashes, location = url.partition("://")
    authority, slash, path = location.partition("/")
    return scheme + slashes + authority.rpartition("@")[2] + slash + path


_PORTS = {"http": 80, "https": 443}


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme)


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""IPv6 network whose addresses end in an IPv4 address. For a local prefix (64:ff9b:1::/48), only its owner
knows the position of the IPv4 address.
"""

_UNICAST = ipaddress.ip_network("2000::/3")
"""IPv6 addresses of the public network; others, such as the former site-local fec0::/10, are not public."""

_OF_CLOUDS = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")})
"""Addresses with public numbers at which clouds (Azure, Oracle) offer secrets to their own machines."""


def is_public(text: str) -> bool:
    """Return whether an address is public: not of this machine, a local network, a cloud's metadata
    service, a multicast group or an unassigned network.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # With a zone: `fe80::1%eth0`.
        return False
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64 or int(address) < 1 << 32:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        embedded = [each for each in inner if each is not None]
        if embedded:
            return all(is_public(str(each)) for each in embedded)
        if address not in _UNICAST:
            return False
    if address in _OF_CLOUDS:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
