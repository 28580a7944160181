# ruff: noqa: PTH118  # programs may give their files any name
"""Command with the files of the previous command. It runs as a script inside the jail, with only the standard
library.

Arguments: descriptor of an archive to unpack into `/work` (-1: no archive), descriptor of the file for the
packed `/work` after the command, maximum files and bytes to pack, folder of the command, command. The exit
code is the command's.

The script has the same rights as the command, so a command that changes it can only damage its own files.
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
"""End of a complete archive. Without it, the files of the previous command are kept."""


def main() -> int:
    """Unpack the files, run the command, and pack the files."""
    earlier, later, most_files, most_bytes = map(int, sys.argv[1:5])
    folder, command = sys.argv[5], sys.argv[6:]
    if earlier >= 0:
        trusted: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
        with os.fdopen(earlier, "rb") as file, tarfile.open(fileobj=file) as archive:
            archive.extractall(WORK, **trusted)  # noqa: S202  # the sample's own files, in its own jail
    code = run(command, os.path.join(WORK, folder))
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # all processes that the command started
    with os.fdopen(later, "wb") as target:
        try:
            pack(target, most_files, most_bytes)
        except (OSError, ValueError, tarfile.TarError, RecursionError) as error:
            sys.stderr.write(f"the files that this command wrote are lost: {error}\n")
            return code or 1
        target.write(TRAILER)
    return code


def run(command: list[str], folder: str) -> int:
    """Run the command and return its exit code, as a shell does."""
    try:
        code = subprocess.run(command, cwd=folder, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 126 if isinstance(error, PermissionError) else 127
    return code if code >= 0 else 128 - code


def pack(file: Any, most_files: int, most_bytes: int) -> None:
    """Write the archive, without files that the command cannot read."""
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
            with contextlib.suppress(PermissionError), open(path, "rb") as content:  # noqa: PTH123  # pathlib is slow to import
                archive.addfile(entry, content)


def paths() -> Iterator[str]:
    """Yield all paths below `/work`."""
    for folder, folders, names in os.walk(WORK):
        for name in (*folders, *names):
            yield os.path.join(folder, name)


if __name__ == "__main__":
    sys.exit(main())
