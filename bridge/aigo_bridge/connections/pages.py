"""Pages for people where an answer for programs was expected: a wrong address, a proxy, a login."""

from __future__ import annotations

import html
import re

HINT = "is the address right? Of servers that speak OpenAI's protocol it usually ends in /v1"
"""What to do about a page."""

_PAGE = re.compile(r"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_LONGEST = 100
_LOOKED_AT = 20_000
"""Characters of a page that are looked at."""


def page_text(text: str) -> str | None:
    """What a page of HTML says in a few words; `None` for a text that is no page."""
    start = text[:_LOOKED_AT]
    if not _PAGE.match(start):
        return None
    title = _TITLE.search(start)
    words = " ".join(html.unescape(title[1] if title is not None else _UNSEEN.sub(" ", start)).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def page_message(text: str, status: int, address: str | None = None) -> str | None:
    """That an endpoint has answered with a page; `None` for a text that is none."""
    words = page_text(text)
    if words is None:
        return None
    where = "" if address is None else f" at {address}"
    said = f": {words!r}" if words else ""
    return f"the endpoint{where} answered {status} with a page of HTML, not with JSON{said}"
