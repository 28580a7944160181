"""Files that appear under their name only when they are complete, made of parts that several processes may write.

gzip and zstd allow several compressed streams one after the other, so that every part is one of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO, Literal, cast

import zstandard
from zlib_ng import zlib_ng

OutputFormat = Literal["json", "json.gz", "json.zst", "parquet"]
Piece = bytes | memoryview
_BUFFER = 1 << 20
_MOST_PIECES = 512
"""The system takes up to 1,024 at once."""
_STORED_AT_ONCE = 32 << 20
_SYNC_FILE_RANGE_WRITE = 2
_PIECE = 256
"""Bytes that a piece takes beside its text."""


class PartWriter:
    """Writes pieces to a file, compressed as one stream of its own."""

    def __init__(self, file: BinaryIO, output_format: OutputFormat):
        self._file = file
        self._waiting: list[Piece] = []
        self._length = 0
        self._packer = _packer(output_format)

    def write(self, pieces: Iterable[Piece]) -> None:
        """Append the pieces."""
        packer = self._packer
        for piece in pieces:
            self._take(piece if packer is None else packer.compress(piece))

    def finish(self) -> None:
        """End the stream; the file stays open."""
        if self._packer is not None:
            self._take(self._packer.flush())
        self._write_waiting()

    def _take(self, piece: Piece) -> None:
        if not piece:
            return
        self._waiting.append(piece)
        self._length += len(piece)
        if self._length >= _BUFFER or len(self._waiting) >= _MOST_PIECES:
            self._write_waiting()

    def _write_waiting(self) -> None:
        """Hand the pieces to the system as they are: joining them would copy them once more."""
        pieces, self._waiting = self._waiting, []
        length, self._length = self._length, 0
        if not hasattr(os, "writev"):
            self._file.writelines(pieces)
            return
        self._file.flush()
        descriptor = self._file.fileno()
        _write_all(pieces, lambda batch: os.writev(descriptor, batch))
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        _store(descriptor, end - length, end)


class HeldPart(PartWriter):
    """A part of a file that is made before anybody knows where in the file it begins.

    It stays in memory until then. Pieces may share memory, so that what would be large in the file may be small here; only
    where it is not, the part waits for its place and goes on as it is written.

    Args:
        file: other processes may write other places of it.
        output_format: the part is compressed as one stream of its own.
        most: bytes of memory that it may hold.
        wait: gives the place, as soon as it is known.
    """

    def __init__(self, file: BinaryIO, output_format: OutputFormat, most: int, wait: Callable[[], int]):
        super().__init__(file, output_format)
        self.length = 0
        """Bytes of the part, so far."""
        self.memory = 0
        """Bytes that it holds."""
        self._most = most
        self._wait = wait
        self._position: int | None = None
        self._owners: set[int] = set()

    def finish(self, behind: bytes = b"") -> None:
        """End the stream; `behind` follows as it is. What is left of the part is written when it is put in its place."""
        if self._packer is not None:
            self._take(self._packer.flush())
        self._take(behind)

    def put(self, position: int) -> None:
        """Write what there is at its place, and what comes later behind it."""
        if self._position is None:
            self._position = position
        self._write_waiting()

    def _take(self, piece: Piece) -> None:
        if not piece:
            return
        self.length += len(piece)
        self._waiting.append(piece)
        owner = piece.obj if isinstance(piece, memoryview) else piece
        if id(owner) not in self._owners:
            self._owners.add(id(owner))
            self.memory += memoryview(owner).nbytes
        self.memory += _PIECE
        if self._position is not None:
            if self.memory > _BUFFER:
                self._write_waiting()
        elif self.memory > self._most:
            self.put(self._wait())

    def _write_waiting(self) -> None:
        assert self._position is not None
        pieces, self._waiting = self._waiting, []
        self._owners.clear()
        self.memory = 0
        descriptor = self._file.fileno()

        def write(batch: list[Piece]) -> int:
            assert self._position is not None
            written = os.pwritev(descriptor, batch, self._position)
            self._position += written
            _store(descriptor, self._position - written, self._position)
            return written

        _write_all(pieces, write)


def _write_all(pieces: list[Piece], write: Callable[[list[Piece]], int]) -> None:
    """Write pieces by calls of moderate size, which say how many bytes they have written.

    Of a call of several megabytes Linux makes huge pages, for which it may have to look long: it can take five times as long.
    """
    for batch in _batches(pieces):
        while batch:
            written = write(batch)
            # Nearly always everything; what a full disk or a signal has left over goes next.
            done = 0
            while done < len(batch) and written >= len(batch[done]):
                written -= len(batch[done])
                done += 1
            del batch[:done]
            if batch:
                batch[0] = memoryview(batch[0])[written:]


def _batches(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Pieces, so many that the system takes them at once; large ones are cut."""
    batch: list[Piece] = []
    room = _BUFFER
    for piece in pieces:
        left = piece
        while len(left) > room or len(batch) == _MOST_PIECES:
            if room and len(batch) < _MOST_PIECES:
                batch.append(memoryview(left)[:room])
                left = memoryview(left)[room:]
            yield batch
            batch, room = [], _BUFFER
        batch.append(left)
        room -= len(left)
    if batch:
        yield batch


def _store(descriptor: int, start: int, end: int) -> None:
    """Let the system begin to store a file of which the bytes from `start` to `end` were written, every few megabytes.

    So little is left to wait for at the end.
    """
    if start // _STORED_AT_ONCE != end // _STORED_AT_ONCE and (begin := _sync_file_range()) is not None:
        begin(descriptor, 0, 0, _SYNC_FILE_RANGE_WRITE)


@cache
def _sync_file_range() -> Callable[[int, int, int, int], int] | None:
    """Linux's call that begins to store a range of a file, and does not wait."""
    if sys.platform != "linux":
        return None
    # Late: only large files need it.
    import ctypes

    try:
        found = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return cast("Callable[[int, int, int, int], int]", found)


def packed(data: bytes, output_format: OutputFormat) -> bytes:
    """Bytes as they stand in a file, compressed as one stream of their own."""
    packer = _packer(output_format)
    return data if packer is None else packer.compress(data) + packer.flush()


def _packer(output_format: OutputFormat) -> zlib_ng._Compress | zstandard.ZstdCompressionObj | None:
    if output_format == "json.gz":
        return zlib_ng.compressobj(6, zlib_ng.DEFLATED, 31)
    if output_format == "json.zst":
        return zstandard.ZstdCompressor(level=3).compressobj()
    return None


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
