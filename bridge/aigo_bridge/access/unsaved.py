"""Texts that stand in an editor and not yet in their files: for a while they are read in the files' place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_TEXTS: ContextVar[Mapping[str, str] | None] = ContextVar("unsaved texts", default=None)


@contextmanager
def editing(texts: Mapping[str, str]) -> Iterator[None]:
    """Read these texts in place of those of files, in this thread or task.

    Args:
        texts: by the files' absolute paths, links resolved; the files need not exist.
    """
    token = _TEXTS.set(texts)
    try:
        yield
    finally:
        _TEXTS.reset(token)


def unsaved(path: str | Path) -> str | None:
    """The text that stands in place of a file's; `None`: the file's own counts."""
    texts = _TEXTS.get()
    return texts.get(os.path.realpath(path)) if texts else None
