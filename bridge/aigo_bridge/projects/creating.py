"""Creation of new files next to existing ones: all of them or none, without overwriting."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from aigo_bridge.access.opening import is_below
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError


def create_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files that do not exist yet. If one cannot be written, remove the others.

    Args:
        folder: target folder; it is created if it does not exist.
        files: name, with `/` → content.

    Returns:
        The files, in their order.

    Raises:
        SpecError: some files exist or are outside the folder; all are listed, and nothing was written.
        OSError: a file cannot be written, for example because the disk is full.
    """
    issues = [issue for name in files for issue in _obstacles(folder, name)]
    if issues:
        raise SpecError(issues)
    written: list[Path] = []
    made: list[Path] = []
    try:
        for name, content in files.items():
            path = folder / name
            _make_folder(path.parent, made)
            # Another process may have created the file since the check.
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        for path in reversed(written):
            path.unlink(missing_ok=True)
        for place in reversed(made):
            with contextlib.suppress(OSError):  # The folder is not empty.
                place.rmdir()
        raise
    return written


def _obstacles(folder: Path, name: str) -> list[Issue]:
    path = folder / name
    if os.path.lexists(path):
        return [
            Issue(
                "already exists and is not overwritten",
                file=str(path),
                hint="choose another folder or name",
                code=Code.ALREADY_THERE,
            )
        ]
    if not is_below(path, folder):
        return [Issue("is outside the folder because of a link", file=str(path), code=Code.OUTSIDE_ROOT)]
    for place in path.parents:
        if place.exists():
            return (
                []
                if place.is_dir()
                else [Issue("is not a folder", file=str(place), code=Code.UNUSABLE_OUTPUT)]
            )
        if os.path.lexists(place):
            return [Issue("is a broken link", file=str(place), code=Code.UNUSABLE_OUTPUT)]
    return []


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = [folder, *folder.parents]
    for place in reversed(missing[: next(n for n, place in enumerate(missing) if place.exists())]):
        place.mkdir(exist_ok=True)
        made.append(place)
