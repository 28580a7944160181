"""Whether something lies at a path that a text names, whatever the text.

`pathlib` raises where a name is longer than the file system takes, or a folder may not be looked into; in the
texts of strangers both mean that there is nothing to read.
"""

from __future__ import annotations

from os.path import exists, isdir, isfile
from pathlib import Path


def is_present(path: str | Path) -> bool:
    """Whether it is a file, a folder or something else."""
    return exists(path)  # noqa: PTH110  # see above


def is_file(path: str | Path) -> bool:
    """Whether it is a regular file, links followed."""
    return isfile(path)  # noqa: PTH113  # see above


def is_folder(path: str | Path) -> bool:
    """Whether it is a folder, links followed."""
    return isdir(path)  # noqa: PTH112  # see above
