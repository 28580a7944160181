"""Files that appear under their name only when they are complete, made of parts that may be written elsewhere.

gzip and zstd allow several compressed streams one after the other, so parts that other processes have compressed
are joined as they are.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

import zstandard

OutputFormat = Literal["json", "json.gz", "json.zst", "parquet"]
_BUFFER = 1 << 20
_MOST_PIECES = 512
"""The system takes up to 1,024 at once."""


class PartWriter:
    """Writes pieces to a file, compressed as one stream of its own."""

    def __init__(self, file: BinaryIO, output_format: OutputFormat):
        self._file = file
        self._waiting: list[bytes | memoryview] = []
        self._length = 0
        self._packer: zlib._Compress | zstandard.ZstdCompressionObj | None = None
        if output_format == "json.gz":
            self._packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        elif output_format == "json.zst":
            self._packer = zstandard.ZstdCompressor(level=3).compressobj()

    def write(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Append the pieces."""
        if self._packer is not None:
            for piece in pieces:
                self._file.write(self._packer.compress(piece))
            return
        for piece in pieces:
            self._waiting.append(piece)
            self._length += len(piece)
            if self._length >= _BUFFER or len(self._waiting) >= _MOST_PIECES:
                self._write_waiting()

    def finish(self) -> None:
        """End the stream; the file stays open."""
        if self._packer is not None:
            self._file.write(self._packer.flush())
        elif self._waiting:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Hand the pieces to the system as they are: joining them would copy them once more."""
        pieces, left = self._waiting, self._length
        self._waiting, self._length = [], 0
        if not hasattr(os, "writev"):
            self._file.writelines(pieces)
            return
        self._file.flush()
        descriptor = self._file.fileno()
        while left:
            written = os.writev(descriptor, pieces)
            left -= written
            # Nearly always everything; what a full disk or a signal has left over goes next.
            while left and written >= len(pieces[0]):
                written -= len(pieces.pop(0))
            if left:
                pieces[0] = memoryview(pieces[0])[written:]


@contextmanager
def open_draft(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the name `path` when the block ends well, and leaves nothing behind otherwise."""
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    done = False
    try:
        with draft.open("xb", buffering=_BUFFER) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
        done = True
    finally:
        if not done:
            draft.unlink(missing_ok=True)


def append_file(part: Path, file: BinaryIO) -> None:
    """Append the bytes of `part` to an open file, by the kernel where it can."""
    # Late: it loads every compression there is.
    import shutil

    with part.open("rb") as source:
        if not hasattr(os, "copy_file_range"):
            shutil.copyfileobj(source, file, 4 * _BUFFER)
            return
        file.flush()
        left = part.stat().st_size
        try:
            while left and (copied := os.copy_file_range(source.fileno(), file.fileno(), left)):
                left -= copied
        except OSError:
            # Between file systems, or where the system has no such call.
            source.seek(-left, os.SEEK_END)
            shutil.copyfileobj(source, file, 4 * _BUFFER)
        file.seek(0, os.SEEK_END)
