"""Access control: only this machine's user has access, with the printed URL.

| refused request | attack |
|---|---|
| `Host` with a name other than this machine's | a website whose name resolves to 127.0.0.1 (DNS rebinding) |
| `Origin` of another server, or a fetch from another page | other pages in the same browser |
| missing or wrong token | other users and programs on this machine |

The URL contains the token once. The browser then gets a cookie for paths below a name that only this server
uses. Browsers therefore do not send the cookie to other servers on this machine.
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
"""Values of `Sec-Fetch-Site` in requests from another page. Other ports are `same-site`."""


@dataclass(frozen=True)
class Guard:
    """Requirements for a request."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Token in the printed URL."""
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    """First folder of all other URLs; not secret."""
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Cookie value that the browser sends instead of the token."""

    @property
    def origins(self) -> frozenset[str]:
        """Origins of this server's own pages."""
        return frozenset(f"http://{host}" for host in self.hosts)

    @property
    def hosts(self) -> frozenset[str]:
        """Accepted host names."""
        names = ("127.0.0.1", "localhost")
        return frozenset(f"{name}:{self.port}" for name in names) | (
            frozenset(names) if self.port == 80 else frozenset()
        )

    @property
    def address(self) -> str:
        """URL to open."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def refusal(self, headers: Message) -> str | None:
        """Return why a request is refused, independent of its path; `None` if it is accepted."""
        hosts = headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].strip().lower() not in self.hosts:
            return "this server only accepts requests to 127.0.0.1"
        for origin in headers.get_all("Origin") or []:
            if origin.strip().lower() not in self.origins:
                return "this server only accepts requests from its own pages"
        return None

    def from_elsewhere(self, headers: Message) -> bool:
        """Return whether another website's page sent the request."""
        return any(site.strip().lower() in _ELSEWHERE for site in headers.get_all("Sec-Fetch-Site") or [])

    def has_token(self, query: str) -> bool:
        """Return whether a URL contains the token."""
        try:
            tokens = parse_qs(query, max_num_fields=10).get("token", [])
        except ValueError:
            return False
        return len(tokens) == 1 and _equal(tokens[0], self.token)

    def has_cookie(self, headers: Message) -> bool:
        """Return whether a request has the cookie of this server."""
        cookies = "; ".join(headers.get_all("Cookie") or [])
        return any(
            _equal(value.strip(), self.cookie)
            for name, _, value in (part.partition("=") for part in cookies.split(";"))
            if name.strip() == COOKIE
        )

    @property
    def cookie_header(self) -> str:
        """Return the value of `Set-Cookie`."""
        return f"{COOKIE}={self.cookie}; Path=/{self.session}/; HttpOnly; SameSite=Strict"


def _equal(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


def safe_headers(policy: str) -> Mapping[str, str]:
    """Return the headers of every response."""
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
