"""Downloads from allowed hosts only: the transport checks every address that it connects to."""

from __future__ import annotations

import socket
import urllib.request

import anyio
import httpx

from aigo_bridge.access.addresses import is_allowed, is_public, origin_of, shown_address
from aigo_bridge.access.grants import granted
from aigo_bridge.codes import Code
from aigo_bridge.errors import DatasetError


async def addresses_of(url: httpx.URL) -> list[str]:
    """Return the addresses of a host.

    Raises `DatasetError` if one of them is not public and the user has not allowed the host;
    `httpx.ConnectError` if there are none.
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
            raise DatasetError(message, hint=hint, code=Code.REFUSED_ADDRESS)
    return addresses


class PublicTransport(httpx.AsyncBaseTransport):
    """Transport that connects only to checked addresses: a host name may later resolve differently."""

    def __init__(self) -> None:
        self._transports: dict[str | None, httpx.AsyncHTTPTransport] = {}

    def _transport(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        if proxy not in self._transports:
            self._transports[proxy] = httpx.AsyncHTTPTransport(proxy=proxy)
        return self._transports[proxy]

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to one of the host's addresses."""
        transport = self._transport(_proxy(request.url))
        addresses = await addresses_of(request.url)
        for address in addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                # The certificate belongs to the name, not to the address.
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
            )
            try:
                return await transport.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise httpx.ConnectError(f"{request.url.host}: no address")


def _proxy(url: httpx.URL) -> str | None:
    """Return the user's proxy for an address from the environment, as other programs do."""
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(url.host):
        return None
    return proxies.get(url.scheme) or proxies.get("all")
