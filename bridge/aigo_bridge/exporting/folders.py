"""A folder that appears when it is complete, and what an export may replace in one that is there already.

An exported task is `<module>.py` and a folder `<module>/`; beside them stand a README.md and a requirements.txt for all exported tasks
of the folder. Whatever an export has not written stays untouched, also with `--force`.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aigo_bridge.errors import UsageError
from aigo_bridge.exporting.manifest import FILE, Manifest, read_manifest

MARK = "aigo-bridge export"
"""Stands near the top of every file that an export writes beside the tasks' folders."""


@contextmanager
def new_content(out: Path, *, force: bool) -> Iterator[Path]:
    """A folder to fill; its content is moved to `out` when the block ends well, and is gone otherwise.

    A folder that does not exist appears at once. In one that exists the task's file goes first and comes last, so that what an
    interruption leaves cannot run on half of the data.

    Raises:
        UsageError: `out` cannot be made, is a file, has content (without `force`), or has files of those names that no
            export wrote.
    """
    target = Path(os.path.realpath(out))
    check_free(target, force=force)
    with draft_near(target) as draft:
        yield draft
        if target.exists():
            _refuse_foreign(draft, target)
            _move_in(draft, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.rename(target)


@contextmanager
def draft_near(target: Path) -> Iterator[Path]:
    """A folder on the file system where `target` is to be, gone at the end unless it was moved; nothing else is made.

    Raises:
        UsageError: nothing can be made there.
    """
    near = target.parent
    while not near.exists():
        near = near.parent
    draft = near / f".{target.name}.{secrets.token_hex(6)}.tmp"
    try:
        draft.mkdir()
    except OSError as error:
        raise UsageError(f"--out: {str(target)!r} cannot be made: {error.strerror}") from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def check_free(out: Path, *, force: bool) -> None:
    """Refuse a place where nothing can be exported to.

    Raises:
        UsageError: it is a file, or a folder with content (without `force`).
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {str(out)!r} is a file, expected a folder")
    if out.is_dir() and not force and any(out.iterdir()):
        raise UsageError(
            f"--out: folder {str(out)!r} is not empty; choose another, or replace what an earlier export wrote there with --force"
        )


def manifests(out: Path) -> list[Manifest]:
    """The tasks that are exported in a folder, by module name."""
    folders = sorted(path.parent for path in out.glob(f"*/{FILE}")) if out.is_dir() else []
    return [read_manifest(folder) for folder in folders]


def _refuse_foreign(draft: Path, target: Path) -> None:
    foreign = [entry.name for entry in sorted(draft.iterdir()) if not _is_ours(target / entry.name)]
    if foreign:
        names = ", ".join(map(repr, foreign))
        raise UsageError(
            f"--out: {names} in folder {str(target)!r} come from no export, so they are not replaced; choose another folder"
        )


def _is_ours(path: Path) -> bool:
    """Whether there is nothing, or what an export wrote."""
    if not path.exists():
        return True
    if path.is_dir():
        return (path / FILE).is_file()
    with path.open("rb") as file:
        return MARK.encode() in file.read(2000)


def _move_in(draft: Path, target: Path) -> None:
    entries = sorted(draft.iterdir())
    tasks = [entry for entry in entries if entry.suffix == ".py"]
    for entry in tasks:
        (target / entry.name).unlink(missing_ok=True)
    for entry in (*(entry for entry in entries if entry not in tasks), *tasks):
        place = target / entry.name
        if place.is_dir():
            place.rename(draft / f".{entry.name}.old")
        entry.replace(place)
