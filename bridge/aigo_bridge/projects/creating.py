"""Writing new files beside what is there: all of them or none, and never over another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from aigo_bridge.access.opening import is_below
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError


def create_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files that do not exist yet; where one cannot be written, none is there.

    Args:
        folder: where; it is made when it is missing.
        files: name, with `/` → content.

    Returns:
        The files, in their order.

    Raises:
        SpecError: some of them exist, or lie out of the folder; all are named, and nothing was written.
        OSError: one cannot be written, on a full disk say.
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
            # Not over what somebody has put there since.
            with path.open("xb") as file:
                written.append(path)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        for path in reversed(written):
            path.unlink(missing_ok=True)
        for place in reversed(made):
            with contextlib.suppress(OSError):  # somebody has put something there
                place.rmdir()
        raise
    return written


def _obstacles(folder: Path, name: str) -> list[Issue]:
    path = folder / name
    if os.path.lexists(path):
        return [
            Issue(
                "exists already, and is not written over",
                file=str(path),
                hint="choose another folder or name",
                code=Code.ALREADY_THERE,
            )
        ]
    if not is_below(path, folder):
        return [Issue("lies out of the folder, through a link", file=str(path), code=Code.OUTSIDE_ROOT)]
    for place in path.parents:
        if place.exists():
            return (
                [] if place.is_dir() else [Issue("is no folder", file=str(place), code=Code.UNUSABLE_OUTPUT)]
            )
        if os.path.lexists(place):
            return [Issue("is a link to nothing", file=str(place), code=Code.UNUSABLE_OUTPUT)]
    return []


def _make_folder(folder: Path, made: list[Path]) -> None:
    missing = [folder, *folder.parents]
    for place in reversed(missing[: next(n for n, place in enumerate(missing) if place.exists())]):
        place.mkdir(exist_ok=True)
        made.append(place)
