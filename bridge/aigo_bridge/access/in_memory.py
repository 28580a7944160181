"""Unsaved texts of an editor, which are read instead of their files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_TEXTS: ContextVar[Mapping[str, str] | None] = ContextVar("unsaved texts", default=None)


@contextmanager
def editing(texts: Mapping[str, str]) -> Iterator[None]:
    """Read texts instead of files in this thread or task: real path → text. The files need not exist."""
    token = _TEXTS.set(texts)
    try:
        yield
    finally:
        _TEXTS.reset(token)


def unsaved(path: str | Path) -> str | None:
    """Return the unsaved text of a file; `None` without one."""
    texts = _TEXTS.get()
    return texts.get(os.path.realpath(path)) if texts else None
