"""Files of the local sandbox that are kept between commands.

Each command has its own jail with `/work` in memory. If the command ends normally, a program inside the jail
(`keeper`) packs the folder, and the next jail unpacks it. The runner never opens the archive, because
untrusted commands write it.
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
"""Maximum number of files in `/work` at the end of a command."""

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
    """Folder `/work` of consecutive commands. It is removed with this object at the latest."""

    def __init__(self) -> None:
        self._base = Path(make_folder("aigo-sandbox-"))
        self.folder = self._base / "files"
        """Files from before the first command. Tests of the sample see only these."""
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
        """Run a command with `run_jailed` and the files of earlier commands, one command at a time.

        Files outside `/work` are not kept. If a limit ends the command, its changes are not kept.

        Raises:
            JailRefusedError: the sandbox does not work on this system.
        """
        limits = limits or JailLimits()
        async with self._lock:
            is_first = not self._archive.exists()
            later = self._base / "later.tar"
            earlier = -1 if is_first else os.open(self._archive, os.O_RDONLY)
            target = os.open(later, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                bounds = (MOST_FILES, limits.disk_bytes * 3 // 4)  # the archive itself also takes space
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
        """Write a file below `/work`.

        Raises:
            PermissionError: the path is outside `/work`, or the file cannot be written.
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
        """Return the content of a file below `/work`.

        Raises:
            FileNotFoundError: the file is missing.
            IsADirectoryError: the path is a folder.
            PermissionError: the path is outside `/work`, or the file cannot be read.
        """
        path = _inside(name)
        if not self._archive.exists():
            file = self.folder / path.relative_to("/work")
            if file.is_file():
                return file.read_bytes()
            # An own message, because commands must not learn the real name of the folder.
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
