"""Files of the local sandbox that last from one command to the next.

Each command has a jail of its own, whose `/work` is in memory. When the command has ended by itself, a
program inside of the jail (`keeper`) packs the folder; the next jail unpacks it. The runner holds the archive
and never opens it: what stands in it is of the commands' making.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

import anyio

from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_bridge.sandbox.jailing import JailLimits, JailResult, run_jailed
from aigo_bridge.sandbox.keeper import TRAILER

MOST_FILES = 2_000
"""In `/work` at the end of a command."""

_READ = """
import sys
try:
    sys.stdout.buffer.write(open(sys.argv[1], "rb").read())
except FileNotFoundError:
    sys.exit(64)
except NotADirectoryError:
    sys.exit(64)
except IsADirectoryError:
    sys.exit(65)
"""
_WRITE = """
import os, sys
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
open(sys.argv[1], "wb").write(sys.stdin.buffer.read())
"""


class Workspace:
    """A `/work` that commands have one after the other; it is removed with this object at the latest."""

    def __init__(self) -> None:
        self._base = Path(make_folder("aigo-sandbox-"))
        self.folder = self._base / "files"
        """What was written before the first command; all that programs see that run beside the commands."""
        self.folder.mkdir()
        self._archive = self._base / "work.tar"
        self._lock = anyio.Lock()
        self._end = weakref.finalize(self, remove_folder, str(self._base))

    def remove(self) -> None:
        """Remove the files."""
        self._end()

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str = ".",
        environment: Mapping[str, str] | None = None,
        limits: JailLimits | None = None,
    ) -> JailResult:
        """Run a command as `run_jailed` does, in the files that earlier ones have left.

        What it writes outside of `/work` is gone when it ends; so is all that it writes when a limit ends it.
        One command runs at a time.

        Raises:
            JailRefusedError: there can be no sandbox here.
        """
        limits = limits or JailLimits()
        async with self._lock:
            is_first = not self._archive.exists()
            later = self._base / "later.tar"
            earlier = -1 if is_first else os.open(self._archive, os.O_RDONLY)
            target = os.open(later, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                bounds = (MOST_FILES, limits.disk_bytes * 3 // 4)  # the archive's own parts take some, too
                numbers = map(str, (earlier, target, *bounds))
                result = await run_jailed(
                    ["python3", "-I", "-S", "-c", _keeper(), *numbers, cwd, *command],
                    stdin=stdin,
                    folder=self.folder if is_first else None,
                    environment=environment,
                    limits=limits,
                    descriptors=(target,) if is_first else (earlier, target),
                )
            finally:
                for descriptor in (earlier, target):
                    if descriptor >= 0:
                        os.close(descriptor)
            if result.ended == "exit" and _is_whole(later):
                later.replace(self._archive)
        return result

    async def write(self, name: str, content: bytes) -> None:
        """Put a file below `/work`.

        Raises:
            PermissionError: it is to stand elsewhere, or cannot be written.
        """
        path = _inside(name)
        if not self._archive.exists():
            file = self.folder / path.relative_to("/work")
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            except OSError as error:
                raise PermissionError(f"{str(path)!r} cannot be written: {error.strerror}") from error
            return
        result = await self.run(["python3", "-I", "-S", "-c", _WRITE, str(path)], stdin=content)
        if result.code != 0:
            raise PermissionError(f"{str(path)!r} cannot be written: {_last_line(result)}")

    async def read(self, name: str) -> bytes:
        """The content of a file below `/work`.

        Raises:
            FileNotFoundError: there is none.
            IsADirectoryError: it is a folder.
            PermissionError: it is to stand elsewhere, or cannot be read.
        """
        path = _inside(name)
        if not self._archive.exists():
            file = self.folder / path.relative_to("/work")
            if file.is_file():
                return file.read_bytes()
            # Said by itself: the folder's own name is none of a command's business.
            raise _not_a_file(path, is_folder=file.is_dir())
        limits = JailLimits(output_bytes=JailLimits.disk_bytes)
        result = await self.run(["python3", "-I", "-S", "-c", _READ, str(path)], limits=limits)
        if result.code in (64, 65):
            raise _not_a_file(path, is_folder=result.code == 65)
        if result.code != 0:
            raise PermissionError(f"{str(path)!r} cannot be read: {_last_line(result)}")
        return result.stdout


@cache
def _keeper() -> str:
    return Path(__file__).with_name("keeper.py").read_text("utf-8")


def _is_whole(archive: Path) -> bool:
    with archive.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(TRAILER)))
        return file.read() == TRAILER


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath("/work", name)
    if ".." in path.parts or not path.is_relative_to("/work"):
        raise PermissionError(f"found {name!r}, expected a path below /work")
    return path


def _not_a_file(path: PurePosixPath, *, is_folder: bool) -> OSError:
    if is_folder:
        return IsADirectoryError(f"{str(path)!r} is a folder")
    return FileNotFoundError(f"there is no file {str(path)!r}")


def _last_line(result: JailResult) -> str:
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ended by {result.ended}"
