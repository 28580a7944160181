"""Pages of HTML where a provider expects JSON: clients raise whatever comes of that; here it is told what came."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from inspect_ai.model import ModelAPI

from aigo_bridge.connections.pages import HINT, page_message

_PAGE: ContextVar[str | None] = ContextVar("page", default=None)
"""What is to be said of the page that the last request of this call has brought; `None`: it was none."""
_WATCHED: WeakSet[Any] = WeakSet()


class ProviderError(Exception):
    """What a provider met, in our words."""


def watch_pages(api: ModelAPI) -> None:
    """Take note of pages that the client of a provider gets from now on, where it is one of httpx, or of its kind."""
    _PAGE.set(None)
    client = getattr(api, "http_client", None)
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and "response" in hooks and client not in _WATCHED:
        _WATCHED.add(client)
        hooks["response"].append(_note)


async def _note(response: Any) -> None:
    _PAGE.set(None)
    if not response.headers.get("content-type", "").lower().startswith("text/html"):
        return
    await response.aread()
    url = response.request.url
    address = str(url.copy_with(username=None, password=None, query=None))
    _PAGE.set(page_message(response.text, response.status_code, address))


def page_error(error: Exception) -> Exception:
    """The error to raise: of a page an own one, but where its status decides whether the call is made again."""
    page = _PAGE.get()
    if page is None:
        return error
    message = f"{page} ({HINT})"
    if not isinstance(getattr(error, "status_code", None), int):
        return ProviderError(message)
    said: Any = error
    said.args = (message, *error.args[1:])
    if hasattr(said, "message"):
        said.message = message
    return error
