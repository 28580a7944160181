"""Existence checks for paths from any text.

`pathlib` raises an error if a name is too long for the file system, or if a folder is not readable. In
untrusted texts, both mean that there is no readable file.
"""

from __future__ import annotations

from os.path import exists, isdir, isfile
from pathlib import Path


def is_present(path: str | Path) -> bool:
    """Return whether a file, a folder or anything else exists at a path."""
    return exists(path)  # noqa: PTH110  # see above


def is_file(path: str | Path) -> bool:
    """Return whether a path is a regular file, with links followed."""
    return isfile(path)  # noqa: PTH113  # see above


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder, with links followed."""
    return isdir(path)  # noqa: PTH112  # see above
