"""Files that may come from strangers: below which folder they lie, how they are opened (regular files only,
within that folder, up to a size), how much of what comes from outside is taken in, and what to do about those
that are not UTF-8.

The folder that the files which a task (dataset, run file …) refers to may not leave is by default the
project: the nearest folder, from the file's own upwards, that has `.git`, `pyproject.toml`,
`aigo-bridge.toml`, `app.yaml` or a run file. A run file is known by its content: YAML with `evaluation`,
`evaluations`, `evaluation_specifications` or `task_specifications` at its top level. Those in a folder
`evaluations` (or `evaluation`) mark the folder around it; those further down in there mark their own,
unless the one around `evaluations` is marked, too. Without such a project, a folder that the user has
named (`validate FOLDER`) is the project of the files in it; otherwise the file's own folder is the root.

Nobody's project are: the root of the file system, the home folder and what lies above it, and folders in
which everybody may write (`/tmp`). No project is looked for above a mount point, a hidden folder or installed
packages.

A name says nothing of what stands behind it: a pipe, a device, a socket or a link to any of them waits, or
never ends. So the kind is asked before a file is opened, and again of the descriptor; likewise where it lies.
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
"""Bytes of a YAML file that is looked into."""

_RUN_FILE = re.compile(
    rb"^(?:evaluations?|evaluation_specifications|task_specifications)[ \t]*:(?:[ \t\r\n]|$)", re.MULTILINE
)


def root_of(file: Path) -> Path:
    """The project of a file, else the folder that it lies in; absolute, links resolved."""
    return root_of_folder(file.parent)


def root_of_folder(folder: Path) -> Path:
    """The root of all files in a folder."""
    project = project_of(folder)
    return _real(folder) if project is None else project


def project_of(folder: Path) -> Path | None:
    """The project that a folder belongs to, links resolved; `None` when there is none."""
    return _project_of(_real(folder))


_NAMED: ContextVar[tuple[Path, ...]] = ContextVar("folders that the user has named", default=())


@contextmanager
def naming(folders: Iterable[Path]) -> Iterator[None]:
    """Take folders that the user has named as projects of the files in them, unless a file marks one."""
    token = _NAMED.set(tuple(map(_real, folders)))
    try:
        yield
    finally:
        _NAMED.reset(token)


@remembered
def _project_of(folder: Path) -> Path | None:
    named: Path | None = None
    for place in _upwards(folder):
        if place in _NAMED.get():
            named = place  # the outermost one
        if _is_marked(place):
            return place if _has_project_file(place) else _around_evaluations(place) or place
        if any(_holds_run_file(place / name) for name in EVALUATION_FOLDERS):
            return place
    return named


def _upwards(folder: Path) -> Iterator[Path]:
    """A folder and those above it, as far as they can be projects."""
    for place in (folder, *folder.parents):
        if _is_shared(place):
            return
        yield place
        if place.name.startswith(".") or place.name == "site-packages" or os.path.ismount(place):
            return


def _around_evaluations(folder: Path) -> Path | None:
    """The folder around `evaluations` that run files in (or below) that belong to."""
    places = list(_upwards(folder))
    for place, above in itertools.pairwise(places):
        if place.name in EVALUATION_FOLDERS:
            return above if place == folder or _is_marked(above) or _holds_run_file(place) else None
    return None


def is_below(path: Path, root: Path) -> bool:
    """Whether a path lies in a root folder, after all links."""
    return _real(path).is_relative_to(_real(root))


def outside(shown: str, path: Path, root: Path, file: str | None = None) -> Issue:
    """What is said of a path that leaves the root folder.

    Args:
        shown: the path as a message shows it.
        path: the path.
        root: the folder that it leaves.
        file: the file that the issue is about.
    """
    base = _real(root)
    around = Path(os.path.commonpath([_real(path).parent, base]))
    wider = "DIR" if _is_shared(around) else from_here(around)
    hint = f"to allow it, use a wider root: --root {wider}"
    if wider != "DIR":
        hint += f"; to allow it permanently, create a run file, app.yaml, pyproject.toml or .git in {wider}"
    return Issue(
        f"{shown} is outside the root folder {str(base)!r}", file=file, hint=hint, code=Code.OUTSIDE_ROOT
    )


def from_here(path: Path) -> str:
    """Return a path as a user would type it in the current folder: relative if that is shorter, and the path
    is below or above that folder.
    """
    plain = os.path.normpath(path.absolute())
    relative = os.path.relpath(plain)
    parts = Path(relative).parts
    is_apart = ".." in parts and set(parts) != {".."}
    return shlex.quote(plain if is_apart else min(relative, plain, key=len))


def _real(path: Path) -> Path:
    """Absolute, links resolved as far as that goes: links in a circle stay."""
    return Path(os.path.realpath(path))


def _is_shared(folder: Path) -> bool:
    """Whether a folder is nobody's project, whatever lies in it."""
    try:
        home = _real(Path.home())
    except RuntimeError:  # no user, no home
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
    except OSError:  # not there, or not for us
        return
    # Most run files are called so: they come first, and the others need not be read.
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
    """Whether the content of a file is a run file's, which is asked again when the file has changed.

    Without it each of a thousand tasks in a folder is read a thousand times (`make bench`: reading).
    """
    return _RUN_FILE.search(Path(path).read_bytes()) is not None


MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Bound:
    """A number of bytes that the environment may set, in MiB."""

    variable: str
    """Variable of the environment."""
    mebibytes: float
    """What holds without it."""

    @property
    def bytes(self) -> int:
        """The bound.

        Raises:
            UsageError: the variable's value is no positive number.
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
        """How to allow more."""
        return f"raise the limit: set the environment variable {self.variable} to a number of MiB"


def in_words(count: int) -> str:
    """A number of bytes for people."""
    if count < MEBIBYTE:
        return f"{count:,} bytes"
    return f"{count / MEBIBYTE:,.1f}".removesuffix(".0") + " MiB"


# Without O_NONBLOCK a pipe that takes the place of a file between two looks would wait for its other end.
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
    """A file that lies, links followed, out of the root folder; `issue` says so to people."""

    def __init__(self, path: Path, root: Path):
        self.issue = outside(repr(str(path)), path, root, str(path))
        super().__init__(errno.EACCES, self.issue.message, str(path))


class TooLargeError(OSError):
    """A file with more bytes than are read."""

    def __init__(self, path: Path, largest: int):
        super().__init__(errno.EFBIG, f"is larger than {_size(largest)}", str(path))


def open_regular(path: Path, root: Path | None = None) -> BinaryIO:
    """A regular file, opened for reading.

    Args:
        path: the file.
        root: folder that the file, all links followed, must lie in; `None`: anywhere.

    Raises:
        IrregularFileError: it is no regular file.
        OutsideRootError: it lies elsewhere.
        OSError: it is not there, or not for us.
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
    """All of a regular file.

    Raises:
        TooLargeError: it has more than `largest` bytes.
        OSError: as `open_regular`.
    """
    with open_regular(path, root) as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise TooLargeError(path, largest)
    return data


def _refuse_irregular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise IrregularFileError(path, mode)


def _require_same_below(path: Path, opened: os.stat_result, root: Path) -> None:
    """What was opened is what lies below the root: a link may have been put in between."""
    real = Path(os.path.realpath(path))
    status = real.stat()
    if not is_below(real, root) or (status.st_dev, status.st_ino) != (opened.st_dev, opened.st_ino):
        raise OutsideRootError(path, root)


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count:,} bytes"


# What is not UTF-8


UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Marks at the start of a file."""


def wrong_byte(error: UnicodeDecodeError) -> str:
    """What is said of the first byte that is not UTF-8, counted from 1 in what was decoded."""
    return f"byte {error.start + 1} is not UTF-8 (0x{error.object[error.start]:02X})"


def conversion(error: UnicodeDecodeError, name: str) -> str:
    """What to do about it: `name` is the file."""
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
    """What to do about a file that begins with a mark of UTF-16."""
    return _command("UTF-16", name)


def _command(encoding: str, name: str) -> str:
    return f"convert the file to UTF-8: {_iconv(encoding, name)}"


def _iconv(encoding: str, name: str) -> str:
    path = Path(name)
    source, target = from_here(path), from_here(path.with_name(f"{path.stem}.utf8{path.suffix}"))
    return f"iconv -f {encoding} -t UTF-8 {source} > {target}"
