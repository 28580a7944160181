"""Temporary folders and draft files. After `kill -9`, the next process removes them.

Each is locked (`flock`) during the lifetime of its process; the kernel releases the lock when the process
ends. A free lock means that the owner is gone. Process IDs are not used because the system reuses them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from aigo_bridge.process.locks import (
    CLOSED_IN_CHILDREN,
    FOLDER,
    NO_LINK,
    NOT_WAITING,
    has_locks,
    lock,
    signals_held_back,
)

_SUFFIX = ".own"
"""Suffix of folders that are locked while in use; other folders are never removed."""

_DRAFT = re.compile(r"\..+\.[0-9a-f]{12}\.draft")

_HELD: dict[str, int] = {}
"""Folder → descriptor that holds its lock."""

_SWEPT: set[str] = set()
_LOCK = threading.Lock()


def make_folder(prefix: str) -> str:
    """Create a new folder, to be removed with `remove_folder`. The first call in a process removes leftovers
    of other processes.

    Raises:
        OSError: the folder cannot be created.
    """
    with _LOCK:
        if prefix not in _SWEPT:
            _SWEPT.add(prefix)
            pattern = re.compile(f"{re.escape(prefix)}.*{re.escape(_SUFFIX)}")
            _sweep_all(Path(tempfile.gettempdir()), pattern, FOLDER)
    while True:
        folder = tempfile.mkdtemp(prefix=prefix, suffix=_SUFFIX)
        if not has_locks():
            return folder
        held = _locked(folder, FOLDER)
        # Another process may have removed it between the two lines above.
        if held is not None and Path(folder).exists():
            _HELD[folder] = held
            return folder
        if held is not None:
            os.close(held)


def remove_folder(folder: str) -> None:
    """Remove a folder and its content as far as possible."""
    _remove_tree(folder)
    held = _HELD.pop(folder, None)
    if held is not None:
        os.close(held)


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Create a folder for the block. If the process is killed, the next one with this prefix removes it.

    Raises:
        OSError: the folder cannot be created.
    """
    folder = make_folder(prefix)
    try:
        yield Path(folder)
    finally:
        remove_folder(folder)


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """Create an empty file next to the target, to be written and moved there. It is removed after the block
    unless it was moved.

    Raises:
        OSError: the file cannot be created.
    """
    _sweep_all(target.parent, _DRAFT, 0)
    with contextlib.ExitStack() as known:
        # Signals are deferred until the block below knows the draft.
        with signals_held_back():
            draft, held = _new_draft(target)
            known.callback(_forget, draft, held)
        with _naming(target):
            yield draft


def _forget(draft: Path, held: int | None) -> None:
    draft.unlink(missing_ok=True)
    if held is not None:
        os.close(held)


@contextlib.contextmanager
def draft_folder_of(target: Path, parent: Path) -> Iterator[Path]:
    """Create a folder in `parent`, to be filled and moved to its target. It is removed after the block unless
    it was moved.

    Raises:
        OSError: the folder cannot be created.
    """
    _sweep_all(parent, _DRAFT, 0)
    draft = parent / f".{target.name}.{secrets.token_hex(6)}.draft"
    draft.mkdir()
    held = _locked(str(draft), FOLDER)
    try:
        with _naming(target):
            yield draft
    finally:
        _remove_tree(str(draft))
        if held is not None:
            os.close(held)


@contextlib.contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Name the target in errors of a full disk: these come from a write, which does not know its file."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = str(target)
        raise


def _new_draft(target: Path) -> tuple[Path, int | None]:
    """Return a draft and a descriptor that holds its lock. The descriptor is `None` on systems without
    locks, which also cannot move open files.
    """
    while True:
        draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.draft")
        try:
            held = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOSED_IN_CHILDREN, 0o666)
        except OSError as error:
            error.filename = str(target)  # Report the name that the user knows instead of the draft's.
            raise
        if not has_locks():
            os.close(held)
            return draft, None
        # Some network file systems have no locks; there, leftovers are never removed.
        with contextlib.suppress(OSError):
            lock(held, wait=True)
        # Another process may have removed it between the lines above.
        if os.fstat(held).st_nlink:
            return draft, held
        os.close(held)


def _sweep_all(place: Path, name: re.Pattern[str], flags: int) -> None:
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(place)):
            if name.fullmatch(entry.name):
                _sweep(Path(entry.path), flags)


def _sweep(path: Path, flags: int) -> None:
    """Remove a file or folder of this user whose owner process has ended."""
    held = _locked(str(path), flags)
    if held is None:
        return
    try:
        status = os.fstat(held)
        if status.st_uid != os.geteuid():
            return
        if stat.S_ISDIR(status.st_mode):
            _remove_tree(str(path))
        elif stat.S_ISREG(status.st_mode):
            path.unlink(missing_ok=True)
    finally:
        os.close(held)


def _remove_tree(folder: str) -> None:
    """Remove a folder with untrusted content, without following links, at any depth.

    Deeper folders are moved up before they are emptied. Therefore neither path length nor recursion depth is
    limited.
    """
    if os.unlink not in os.supports_dir_fd:
        shutil.rmtree(folder, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        top = _usable(folder, None)
        try:
            waiting = [""]
            while waiting:
                with contextlib.suppress(OSError):
                    waiting += _empty(waiting.pop(), top)
        finally:
            os.close(top)
        os.rmdir(folder)  # noqa: PTH106  # like the calls above, which need a descriptor


def _empty(name: str, top: int) -> list[str]:
    """Remove a folder in `top` with its files; move its subfolders to `top` and return their names. `""`
    means `top` itself.
    """
    place = _usable(name, top) if name else os.dup(top)
    folders = []
    try:
        with os.scandir(place) as scan:
            entries = list(scan)
        for entry in entries:
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.name, dir_fd=place)
                    continue
                moved = f"{secrets.token_hex(12)}.moved"
                os.close(_usable(entry.name, place))
                os.rename(entry.name, moved, src_dir_fd=place, dst_dir_fd=top)
                folders.append(moved)
    finally:
        os.close(place)
    if name:
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=top)
    return folders


def _usable(name: str, place: int | None) -> int:
    """Return a descriptor of a folder, and give its owner read and write permission."""
    flags = FOLDER | NO_LINK | CLOSED_IN_CHILDREN
    with contextlib.suppress(PermissionError):
        held = os.open(name, os.O_RDONLY | flags, dir_fd=place)
        if os.fstat(held).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(held, stat.S_IRWXU)
        return held
    seen = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | flags, dir_fd=place)
    try:
        Path(f"/proc/self/fd/{seen}").chmod(stat.S_IRWXU)
    finally:
        os.close(seen)
    return os.open(name, os.O_RDONLY | flags, dir_fd=place)


def _locked(path: str, flags: int) -> int | None:
    """Return a descriptor that holds the lock of a file or folder; `None` if it is locked or missing."""
    if not has_locks():
        return None
    try:
        held = os.open(path, os.O_RDONLY | CLOSED_IN_CHILDREN | NO_LINK | NOT_WAITING | flags)
    except OSError:
        return None
    try:
        lock(held, wait=False)
    except OSError:
        os.close(held)
        return None
    return held


@contextlib.contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Yield whether the lock was acquired; it is held for the block and released by the kernel when the
    process ends. The file stays, because removing it could invalidate the lock of another process.

    Raises:
        OSError: the file cannot be created.
    """
    held = os.open(path, os.O_RDWR | os.O_CREAT | CLOSED_IN_CHILDREN | NO_LINK, 0o666)
    try:
        lock(held, wait=False)
    except BlockingIOError:
        os.close(held)
        yield False
        return
    except OSError:
        pass  # Some network file systems have no locks.
    try:
        yield True
    finally:
        os.close(held)
