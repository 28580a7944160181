"""Which addresses the rows of a dataset may come from: one place for every reader."""

from __future__ import annotations

import ipaddress
import re
import socket
import urllib.request
from collections.abc import Iterable
from urllib.parse import urlsplit

import anyio
import httpx

from aigo_bridge.access.grants import granted
from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError, Issue, UsageError

SCHEMES = ("http", "https")
"""What the address of a dataset may begin with."""

STORAGES = ("s3", "gs", "az", "hf")
"""… or with, where the user allows the place: object storage, which is read with the user's own keys."""

REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:(?!\\)|://|::")
"""What makes a text an address (or a chain of them, as some libraries take) and no path."""


def require_address(url: str) -> None:
    """An address that rows may come from.

    Raises `DatasetError` for any other.
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
    """Fetching was allowed.

    Raises `DatasetError` when it was not.
    """
    if not granted().network:
        message = f"{what} must be downloaded, and downloads are not allowed"
        raise DatasetError(
            [Issue(message, hint=hint or "allow downloads with --network", code=Code.NETWORK_CLOSED)]
        )


def check_allowed(address: str) -> None:
    """Whether what a user allows is a host (`data.example`), an origin (`http://127.0.0.1:8000`) or a place
    in object storage (`s3://team/data`).

    Raises:
        UsageError: it is none of them.
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
    """Whether a user has allowed the host of an address, or its origin."""
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
    """Whether a user has allowed an object, or a folder or bucket that it lies in."""
    return any(f"{address}/".startswith(f"{entry.rstrip('/')}/") for entry in allowed if "://" in entry)


def origin_of(url: str) -> str:
    """`https://data.example:8443`; the port only where it is not the scheme's own."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if _port(url) == _PORTS.get(parts.scheme) else f":{_port(url)}"
    return f"{parts.scheme}://{host}{port}"


def shown_address(url: str) -> str:
    """An address for messages, without a password."""
    scheme, slashes, location = url.partition("://")
    authority, slash, path = location.partition("/")
    return scheme + slashes + authority.rpartition("@")[2] + slash + path


_PORTS = {"http": 80, "https": 443}


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    return parts.port or _PORTS.get(parts.scheme)


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Network of IPv6 whose addresses end in one of IPv4. Of a local one (64:ff9b:1::/48) only its owner knows
where it has them."""

_UNICAST = ipaddress.ip_network("2000::/3")
"""All of IPv6 that is given out for the public network: what lies elsewhere (such as the former site-local
fec0::/10) is nobody's there."""

_OF_CLOUDS = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("192.0.0.192")})
"""Addresses that are public by their numbers, and behind which clouds give secrets to their own machines
(Azure, Oracle)."""


def is_public(text: str) -> bool:
    """Whether an address belongs to the public network: not to this machine, a local network, a cloud's
    metadata, a group or nobody.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:  # with a zone: `fe80::1%eth0`
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


async def addresses_of(url: httpx.URL) -> list[str]:
    """The addresses of a host.

    Raises `DatasetError` when one of them is not public, and the user has not allowed the host;
    `httpx.ConnectError` when there is none.
    """
    host = url.raw_host.decode("ascii")
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        infos = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx.ConnectError(f"{host}: {error}") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    if not is_allowed(str(url), granted().addresses):
        inner = [address for address in addresses if not is_public(address)]
        if inner or not addresses:
            shown = f"{shown_address(str(url))!r} leads to {', '.join(inner)}"
            message = f"{shown}, which is not a public address"
            hint = f"to allow it, use --allow-url {origin_of(str(url))}"
            raise DatasetError([Issue(message, hint=hint, code=Code.REFUSED_ADDRESS)])
    return addresses


class PublicTransport(httpx.AsyncBaseTransport):
    """Connects to addresses that it has looked at itself: a name may mean another one a moment later."""

    def __init__(self) -> None:
        self._transports: dict[str | None, httpx.AsyncHTTPTransport] = {}

    def _transport(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        if proxy not in self._transports:
            self._transports[proxy] = httpx.AsyncHTTPTransport(proxy=proxy)
        return self._transports[proxy]

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Ask the host at one of its addresses."""
        transport = self._transport(_proxy(request.url))
        addresses = await addresses_of(request.url)
        for address in addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                # The certificate is that of the name, not of the address.
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
            )
            try:
                return await transport.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise httpx.ConnectError(f"{request.url.host}: no address")


def _proxy(url: httpx.URL) -> str | None:
    """The user's own proxy for an address, as other programs take it from the environment."""
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(url.host):
        return None
    return proxies.get(url.scheme) or proxies.get("all")
