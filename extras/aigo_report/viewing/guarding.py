"""Who may ask: this machine's user alone, by the address that the command printed.

| refused | what for |
|---|---|
| another name in `Host` than that of this machine itself | pages whose name was made to point to 127.0.0.1 |
| an `Origin` that is not this server, a fetch that another page began | pages that are open beside it |
| no token, or a wrong one | other users and programs of this machine |

The token stands in the address once. In exchange the browser gets a cookie, for paths below a name that only
this server has, so that no other server of this machine is sent it.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import parse_qs

COOKIE = "aigo-bridge-view"
_ELSEWHERE = frozenset({"cross-site", "same-site"})
"""Values of `Sec-Fetch-Site` of a request that another page began; other ports are `same-site`."""


@dataclass(frozen=True)
class Guard:
    """What a request must have."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """In the address that is printed."""
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    """First folder of all other addresses; no secret."""
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """What the browser shows instead of the token."""

    @property
    def origins(self) -> frozenset[str]:
        """Of this server's own pages."""
        return frozenset(f"http://{host}" for host in self.hosts)

    @property
    def hosts(self) -> frozenset[str]:
        """Names by which it is asked."""
        names = ("127.0.0.1", "localhost")
        return frozenset(f"{name}:{self.port}" for name in names) | (
            frozenset(names) if self.port == 80 else frozenset()
        )

    @property
    def address(self) -> str:
        """To be opened."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def refusal(self, headers: Message) -> str | None:
        """Why a request is refused, whatever it asks for; `None`: it is not."""
        hosts = headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.hosts:
            return "this server answers to 127.0.0.1 alone"
        for origin in headers.get_all("Origin") or []:
            if origin.strip().lower() not in self.origins:
                return "this server only answers its own pages"
        return None

    def from_elsewhere(self, headers: Message) -> bool:
        """Whether a page of somebody else began the request."""
        return any(site.strip().lower() in _ELSEWHERE for site in headers.get_all("Sec-Fetch-Site") or [])

    def has_token(self, query: str) -> bool:
        """Whether an address has the token."""
        try:
            tokens = parse_qs(query, max_num_fields=10).get("token", [])
        except ValueError:
            return False
        return len(tokens) == 1 and _equal(tokens[0], self.token)

    def has_cookie(self, headers: Message) -> bool:
        """Whether a request comes from a browser that had the token."""
        cookies = "; ".join(headers.get_all("Cookie") or [])
        return any(
            _equal(value.strip(), self.cookie)
            for name, _, value in (part.partition("=") for part in cookies.split(";"))
            if name.strip() == COOKIE
        )

    @property
    def cookie_header(self) -> str:
        """The value of `Set-Cookie`."""
        return f"{COOKIE}={self.cookie}; Path=/{self.session}/; HttpOnly; SameSite=Strict"


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


def safe_headers(policy: str) -> Mapping[str, str]:
    """Headers of every answer."""
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
