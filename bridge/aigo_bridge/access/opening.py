"""Opening of untrusted files: project roots, regular files only, size limits, and hints about files that are
not UTF-8.

Files that a task (dataset, run file …) references must be below a root folder. By default, this is the
project: the nearest folder upwards that contains `.git`, `pyproject.toml`, `aigo-bridge.toml`, `app.yaml` or
a run file. A run file is recognized by its content: YAML with `evaluation`, `evaluations`,
`evaluation_specifications` or `task_specifications` at the top level.

Run files in a folder `evaluations` (or `evaluation`) mark its parent folder as the project. Run files further
below mark their own folder, unless the parent of `evaluations` is also marked. Without a project, a folder
that the user has named (`validate FOLDER`) is the root of the files in it; otherwise the root is the file's
own folder.

The file system root, the home folder and its parents, and folders that everyone may write to (`/tmp`) are
never projects. The search stops at a mount point, a hidden folder or installed packages.

A file name may refer to a pipe, a device, a socket or a link to one of them, and reading it may never end.
Therefore kind and location are checked before a file is opened, and again for its descriptor.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from aigo_bridge.access.snapshot import remembered
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, UsageError

PROJECT_FILES = (".git", "pyproject.toml", "aigo-bridge.toml", "app.yaml", "app.yml")
EVALUATION_FOLDERS = ("evaluations", "evaluation")
YAML_SUFFIXES = (".yaml", ".yml")

LONGEST_RUN_FILE = 1_000_000
"""Maximum size in bytes of a YAML file that is searched."""

_RUN_FILE = re.compile(
    rb"^(?:evaluations?|evaluation_specifications|task_specifications)[ \t]*:(?:[ \t\r\n]|$)", re.MULTILINE
)


def root_of(file: Path) -> Path:
    """Return the project of a file, otherwise its folder; absolute, with links resolved."""
    return root_of_folder(file.parent)


def root_of_folder(folder: Path) -> Path:
    """Return the root of all files in a folder."""
    project = project_of(folder)
    return real_path(folder) if project is None else project


def project_of(folder: Path) -> Path | None:
    """Return the project of a folder with links resolved; `None` without a project."""
    return _project_of(real_path(folder))


_NAMED: ContextVar[tuple[Path, ...]] = ContextVar("folders that the user has named", default=())


@contextmanager
def naming(folders: Iterable[Path]) -> Iterator[None]:
    """Treat folders that the user has named as projects, unless a file marks another project."""
    token = _NAMED.set(tuple(map(real_path, folders)))
    try:
        yield
    finally:
        _NAMED.reset(token)


@remembered
def _project_of(folder: Path) -> Path | None:
    named: Path | None = None
    for place in _upwards(folder):
        if place in _NAMED.get():
            named = place  # The outermost one.
        if _is_marked(place):
            return place if _has_project_file(place) else _around_evaluations(place) or place
        if any(_holds_run_file(place / name) for name in EVALUATION_FOLDERS):
            return place
    return named


def _upwards(folder: Path) -> Iterator[Path]:
    """Yield a folder and its parents, as long as they can be projects."""
    for place in (folder, *folder.parents):
        if _is_shared(place):
            return
        yield place
        if place.name.startswith(".") or place.name == "site-packages" or os.path.ismount(place):
            return


def _around_evaluations(folder: Path) -> Path | None:
    """Return the folder around `evaluations` to which run files in (or below) it belong."""
    places = list(_upwards(folder))
    for place, above in itertools.pairwise(places):
        if place.name in EVALUATION_FOLDERS:
            return above if place == folder or _is_marked(above) or _holds_run_file(place) else None
    return None


def is_below(path: Path, root: Path) -> bool:
    """Return whether a path is below a root folder, with all links resolved."""
    return real_path(path).is_relative_to(real_path(root))


def outside(shown: str, path: Path, root: Path, file: str | None = None) -> Issue:
    """Return the issue of a path outside the root folder, displayed as `shown`, in a file."""
    base = real_path(root)
    around = Path(os.path.commonpath([real_path(path).parent, base]))
    wider = "DIR" if _is_shared(around) else from_here(around)
    hint = f"to allow it, use a wider root: --root {wider}"
    if wider != "DIR":
        hint += f"; to allow it permanently, create a run file, app.yaml, pyproject.toml or .git in {wider}"
    return Issue(
        f"{shown} is outside the root folder {str(base)!r}", file=file, hint=hint, code=Code.OUTSIDE_ROOT
    )


def from_here(path: Path) -> str:
    """Return a path as a user would type it in the current folder: relative if that is shorter and the
    path is below or above that folder.
    """
    plain = os.path.normpath(path.absolute())
    relative = os.path.relpath(plain)
    parts = Path(relative).parts
    is_apart = ".." in parts and set(parts) != {".."}
    return shlex.quote(plain if is_apart else min(relative, plain, key=len))


def real_path(path: Path) -> Path:
    """Return an absolute path with links resolved; circular links remain."""
    return Path(os.path.realpath(path))


def _is_shared(folder: Path) -> bool:
    """Return whether a folder can never be a project."""
    try:
        home = real_path(Path.home())
    except RuntimeError:  # There is no user or no home folder.
        home = Path(folder.anchor)
    if home.is_relative_to(folder) or folder == folder.parent:
        return True
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_ISVTX and mode & stat.S_IWOTH)


def _is_marked(folder: Path) -> bool:
    return _has_project_file(folder) or _holds_run_file(folder)


def _has_project_file(folder: Path) -> bool:
    return any((folder / name).exists() for name in PROJECT_FILES)


@remembered
def _holds_run_file(folder: Path) -> bool:
    return any(map(_is_run_file, _yaml_files(folder)))


def _yaml_files(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            files = sorted(
                (entry for entry in entries if entry.name.endswith(YAML_SUFFIXES)),
                key=lambda entry: entry.name,
            )
    except OSError:  # The folder does not exist or is not readable.
        return
    # Most run files have these names; if one matches, the other files need not be read.
    yield from sorted(files, key=lambda entry: not entry.name.startswith(("run", "eval")))


def _is_run_file(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LONGEST_RUN_FILE:
            return False
        return _is_run_file_as_of(entry.path, status.st_ino, status.st_ctime_ns, status.st_size)
    except OSError:
        return False


@lru_cache(10_000)
def _is_run_file_as_of(path: str, _node: int, _changed_ns: int, _size: int) -> bool:
    """Return whether the content of a file is a run file's; the arguments change with the file.

    The cache prevents a thousand tasks in a folder from being read a thousand times each (`make bench`:
    reading).
    """
    return _RUN_FILE.search(Path(path).read_bytes()) is not None


MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Bound:
    """Limit in bytes that an environment variable can change, in MiB."""

    variable: str
    """Name of the environment variable."""
    mebibytes: float
    """Default value."""

    @property
    def bytes(self) -> int:
        """Limit in bytes.

        Raises:
            UsageError: the value of the variable is not a positive number.
        """
        text = os.environ.get(self.variable)
        if not text:
            return int(self.mebibytes * MEBIBYTE)
        try:
            wanted = float(text)
        except ValueError:
            wanted = math.nan
        if not (wanted > 0 and math.isfinite(wanted)):
            raise UsageError(
                f"{self.variable}: found {text!r}, expected a number of MiB, e.g. 64", code=Code.WRONG_LIMIT
            )
        return int(wanted * MEBIBYTE)

    @property
    def hint(self) -> str:
        """Hint on how to raise the limit."""
        return f"raise the limit: set the environment variable {self.variable} to a number of MiB"


def in_words(count: int) -> str:
    """Return a number of bytes for people."""
    if count < MEBIBYTE:
        return f"{count:,} bytes"
    return f"{count / MEBIBYTE:,.1f}".removesuffix(".0") + " MiB"


# Without O_NONBLOCK, a pipe that replaces the file between two checks would wait for its other end.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


class IrregularFileError(OSError):
    """A folder, pipe, socket or device where a file is expected."""

    def __init__(self, path: Path, mode: int):
        what = "is a folder, expected a file" if stat.S_ISDIR(mode) else "is not a regular file"
        super().__init__(errno.EINVAL, what, str(path))


class OutsideRootError(OSError):
    """File outside the root folder, with links resolved; `issue` contains the message."""

    def __init__(self, path: Path, root: Path):
        self.issue = outside(repr(str(path)), path, root, str(path))
        super().__init__(errno.EACCES, self.issue.message, str(path))


class FileTooLargeError(OSError):
    """File that exceeds the size limit."""

    def __init__(self, path: Path, largest: int):
        super().__init__(errno.EFBIG, f"is larger than {_size(largest)}", str(path))


def open_regular(path: Path, root: Path | None = None) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: path of the file.
        root: folder that must contain the file, with links resolved; `None`: any folder.

    Raises:
        IrregularFileError: it is not a regular file.
        OutsideRootError: it is outside the root.
        OSError: it does not exist or is not readable.
    """
    if root is not None and not is_below(path, root):
        raise OutsideRootError(path, root)
    _refuse_irregular(path, path.stat().st_mode)
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        _refuse_irregular(path, status.st_mode)
        if root is not None:
            _require_same_below(path, status, root)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, largest: int, root: Path | None = None) -> bytes:
    """Read a regular file completely.

    Raises:
        TooLargeError: it has more than `largest` bytes.
        OSError: as `open_regular`.
    """
    with open_regular(path, root) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise FileTooLargeError(path, largest)
    return data


def _refuse_irregular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise IrregularFileError(path, mode)


def _require_same_below(path: Path, opened: os.stat_result, root: Path) -> None:
    """Check that the opened file is the one below the root: a link may have been created in between."""
    real = Path(os.path.realpath(path))
    status = real.stat()
    if not is_below(real, root) or (status.st_dev, status.st_ino) != (opened.st_dev, opened.st_ino):
        raise OutsideRootError(path, root)


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count:,} bytes"


# Files that are not UTF-8


UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""


def wrong_byte(error: UnicodeDecodeError) -> str:
    """Return a message about the first byte that is not UTF-8, counted from 1 in the decoded data."""
    return f"byte {error.start + 1} is not UTF-8 (0x{error.object[error.start]:02X})"


def conversion(error: UnicodeDecodeError, name: str) -> str:
    """Return a hint on how to convert the file `name`."""
    if error.object[:2] in UTF_16:
        return from_utf_16(name)
    around = error.object[max(0, error.start - 10) : error.start + 10]
    letter = error.object[error.start : error.start + 1]
    try:
        seen = letter.decode("cp1252")
        around.decode("cp1252")
    except UnicodeDecodeError:
        return f"save it as UTF-8; if you know its encoding: {_iconv('ENCODING', name)}"
    return f"in Windows-1252 it is {seen!r}; if that is meant, {_command('CP1252', name)}"


def from_utf_16(name: str) -> str:
    """Return a hint on how to convert a file that starts with a UTF-16 byte order mark."""
    return _command("UTF-16", name)


def _command(encoding: str, name: str) -> str:
    return f"convert the file to UTF-8: {_iconv(encoding, name)}"


def _iconv(encoding: str, name: str) -> str:
    path = Path(name)
    source, target = from_here(path), from_here(path.with_name(f"{path.stem}.utf8{path.suffix}"))
    return f"iconv -f {encoding} -t UTF-8 {source} > {target}"
