"""What a user names on the command line, before it is known whose files these are."""

from __future__ import annotations

import glob
from pathlib import Path


def expanded(location: str) -> list[str]:
    """The files and folders that a local pattern matches, in sorted order; any other location as it is.

    What exists is no pattern, whatever signs its name has. A pattern that matches nothing is returned as it is, for the message about it.
    """
    if "://" in location or not glob.has_magic(location) or Path(location).exists():
        return [location]
    # A pattern may be absolute, which Path.glob refuses.
    return sorted(glob.glob(location, recursive=True)) or [location]  # noqa: PTH207  # as said
