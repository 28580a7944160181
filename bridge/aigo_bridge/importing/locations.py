"""What a user names on the command line, before it is known whose files these are."""

from __future__ import annotations

import glob
import sys
from pathlib import Path


def expanded(location: str) -> list[str]:
    """The files and folders that a local pattern matches, in sorted order; any other location as it is.

    What exists is no pattern, whatever signs its name has. A pattern that matches nothing is returned as it is, for the message about it.
    """
    if "://" in location or not glob.has_magic(location) or Path(location).exists():
        return [location]
    # A pattern may be absolute, which Path.glob refuses.
    return sorted(glob.glob(location, recursive=True)) or [location]  # noqa: PTH207  # as said


_REMOTE = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "httpx": ("HTTPError", "InvalidURL"),
    "google.auth.exceptions": ("GoogleAuthError",),
    "gcsfs.retry": ("HttpError",),
    "azure.core.exceptions": ("AzureError",),
    "paramiko": ("SSHException",),
}
"""What the libraries behind fsspec's file systems raise besides `OSError`: module → its base classes."""


def remote_errors() -> tuple[type[Exception], ...]:
    """What reading at a URL may raise.

    For an `except` clause, which asks only when something was raised: a library that is not loaded has raised nothing.
    """
    found: list[type[Exception]] = [OSError, ValueError, ImportError]
    for module, names in _REMOTE.items():
        loaded = sys.modules.get(module)
        found += [kind for name in names if isinstance(kind := getattr(loaded, name, None), type)]
    return tuple(found)
