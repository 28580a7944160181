# ruff: noqa: PTH118  # the paths are a program's, which may name its files as it likes
"""A command in the files that the one before it has left; run as a script inside of the jail, with nothing
but the standard library.

Arguments: the descriptor of an archive to unpack into `/work` first (-1: there is none), that of the file to
pack `/work` into when the command has ended, the most files and bytes that are packed, the folder to start
in, the command. It ends with the command's exit code.

It has no right that the command has not: what a command makes of it, it does to its own files.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from typing import Any

WORK = "/work"
TRAILER = b"packed to the end"
"""Behind a whole archive; without it the files stay as they were before the command."""


def main() -> int:
    """Unpack, run, pack."""
    earlier, later, most_files, most_bytes = map(int, sys.argv[1:5])
    folder, command = sys.argv[5], sys.argv[6:]
    if earlier >= 0:
        trusted: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
        with os.fdopen(earlier, "rb") as file, tarfile.open(fileobj=file) as archive:
            archive.extractall(WORK, **trusted)  # noqa: S202  # its own files, in a jail of its own
    code = run(command, os.path.join(WORK, folder))
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # all that it has started
    with os.fdopen(later, "wb") as target:
        try:
            pack(target, most_files, most_bytes)
        except (OSError, ValueError, tarfile.TarError, RecursionError) as error:
            sys.stderr.write(f"what this command wrote is lost: {error}\n")
            return code or 1
        target.write(TRAILER)
    return code


def run(command: list[str], folder: str) -> int:
    """The command's exit code, as a shell has it."""
    try:
        code = subprocess.run(command, cwd=folder, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 126 if isinstance(error, PermissionError) else 127
    return code if code >= 0 else 128 - code


def pack(file: Any, most_files: int, most_bytes: int) -> None:
    """Write the archive; files that their own rights hide are left out."""
    num_files = num_bytes = 0
    with tarfile.open(fileobj=file, mode="w") as archive:
        for path in paths():
            entry = archive.gettarinfo(path, os.path.relpath(path, WORK))
            if entry is None:  # a socket
                continue
            num_files, num_bytes = num_files + 1, num_bytes + entry.size
            if num_files > most_files or num_bytes > most_bytes:
                raise ValueError(f"more than {most_files:,} files or {most_bytes:,} bytes in {WORK}")
            if not entry.isreg():
                archive.addfile(entry)
                continue
            with contextlib.suppress(PermissionError), open(path, "rb") as content:  # noqa: PTH123  # a program's path, too
                archive.addfile(entry, content)


def paths() -> Iterator[str]:
    """Everything below `/work`."""
    for folder, folders, names in os.walk(WORK):
        for name in (*folders, *names):
            yield os.path.join(folder, name)


if __name__ == "__main__":
    sys.exit(main())
