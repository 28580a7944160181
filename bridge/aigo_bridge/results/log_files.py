"""Log files on disk: formats, reading, and atomic replacement.

| suffix | content |
|---|---|
| `.json` | one JSON document |
| `.jsonl` | one sample per line, and one line for the log without its samples |
| `.gz`, `.zst` after either | the same, compressed |
"""

from __future__ import annotations

import gzip
import io
import mmap
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, cast

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.access.existence import is_present
from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.process.temporary import draft_of
from aigo_bridge.redaction.secrets import clean_file

FIRST_LINE = b'{"evidence":{"samples":[\n'
"""First line of a `.json` log with samples that aigo-bridge wrote; one sample per line follows."""

AFTER_SAMPLES = b'\n],"metrics":'
"""Text after the samples in such a log. Only the last line follows."""

COMPRESSIONS = (".gz", ".zst")


def is_json_lines(path: Path, *, is_read: bool = False) -> bool:
    """Return whether a file contains one value per line.

    Args:
        path: the file.
        is_read: whether the file must exist.

    Raises:
        EvidenceError: the file to read does not exist.
        UsageError: the file extension is neither `.json` nor `.jsonl`.
    """
    name = path.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    if name.endswith((".jsonl", ".json")):
        return name.endswith(".jsonl")
    if is_read and not is_present(path):
        raise EvidenceError("the file does not exist", file=str(path), code=Code.NOTHING_THERE)
    raise UsageError(
        f"found file name {path.name!r}, expected the extension `.json` or `.jsonl`, "
        "plus `.gz` or `.zst` for compressed files",
        code=Code.WRONG_OPTION,
    )


@contextmanager
def open_for_reading(path: Path, root: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file to read its decompressed content.

    Args:
        path: the file.
        root: folder that must contain the file, after following links; `None` for any folder.

    Raises:
        EvidenceError: the file cannot be opened, its compressed data is damaged, or it looks like a zip bomb.
    """
    import zstandard

    try:
        with open_regular(path, root) as file:
            if path.suffix.lower() == ".gz":
                with gzip.GzipFile(fileobj=file, mode="rb") as unzipped:
                    yield _bounded(cast("BinaryIO", unzipped), file, path)
            elif path.suffix.lower() == ".zst":
                reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                yield _bounded(cast("BinaryIO", reader), file, path)
            else:
                yield file
    except LogTooLargeError as error:
        raise EvidenceError(str(error), file=str(path), code=error.code) from error
    except FileNotFoundError as error:
        raise EvidenceError("the file does not exist", file=str(path), code=Code.NOTHING_THERE) from error
    except (gzip.BadGzipFile, zlib.error, EOFError, zstandard.ZstdError) as error:
        hint = "the file is damaged, cut off, or not compressed in the way that its suffix says"
        raise EvidenceError(
            f"cannot decompress: {error}", file=str(path), hint=hint, code=Code.DAMAGED_RESULT
        ) from error
    except OSError as error:
        raise EvidenceError(
            f"cannot read: {error.strerror or error}", file=str(path), code=Code.UNREADABLE_LOG
        ) from error


def _bounded(stream: BinaryIO, packed: BinaryIO, path: Path) -> BinaryIO:
    return DEFAULT_BOUNDS.unpacked(stream, os.fstat(packed.fileno()).st_size, path.name)


def mapped(path: Path, root: Path | None = None) -> tuple[bytes | mmap.mmap, EvidenceError | None]:
    """Return the content of a file as a memory map, and the damage of its compressed data. Damaged content
    ends before the damage.

    Compressed content is decompressed to a private temporary file. `root` has the same meaning as in
    `open_for_reading`.

    Raises:
        EvidenceError: the file cannot be opened.
    """
    if path.suffix.lower() not in COMPRESSIONS:
        with open_for_reading(path, root) as file:
            return _map(file), None
    with tempfile.TemporaryFile() as unpacked:
        damage = None
        try:
            with open_for_reading(path, root) as file:
                shutil.copyfileobj(file, unpacked, 1 << 16)
        except EvidenceError as error:
            if error.code == Code.LOG_TOO_LARGE:
                raise
            damage = error
        unpacked.flush()
        return _map(unpacked), damage


def _map(file: BinaryIO) -> bytes | mmap.mmap:
    # A mapping outlives its file and is freed with its last reference. An empty file cannot be mapped.
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


@contextmanager
def open_for_replacing(path: Path, *, clean: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that replaces the old file when the block ends without an exception.

    The content is on disk before the file is renamed, so that a crash or a full disk leaves the old file
    unchanged. Known secrets are removed from all written text.

    Args:
        path: name of the file.
        clean: `False` for the user's own rewritten file, and for archives whose members are already clean.
    """
    target = Path(os.path.realpath(path))  # Keep a symbolic link.
    is_durable = _DURABLE.get()
    with draft_of(target) as draft:
        raw_file = _DurableFile if is_durable else io.FileIO
        # Large writes make Linux search for huge pages, which can take long.
        with io.BufferedWriter(raw_file(draft, "wb"), 1 << 18) as file:
            with _compressed(file, path.suffix.lower()) as content:
                yield clean_file(content, path) if clean else content
            file.flush()
            file.truncate(os.fstat(file.fileno()).st_size)  # frees reserved space
            if is_durable:
                os.fsync(file.fileno())
        draft.replace(target)
    if is_durable:
        _flush_folder(target.parent)


class _DurableFile(io.FileIO):
    """File whose system stores its content while more of it is produced, so that the final flush is short."""

    _stored = 0
    _size = 0

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        self._size += written
        if self._size - self._stored >= _STEP and hasattr(os, "posix_fadvise"):
            import ctypes  # few results are that large

            # The system stores pages before it frees them, and this call does not wait for that.
            os.posix_fadvise(self.fileno(), self._stored, self._size - self._stored, os.POSIX_FADV_DONTNEED)
            self._stored = self._size
            if reserve := getattr(ctypes.CDLL(None), "fallocate", None):
                # Without this, the system reserves space page by page, which takes a third of writing. The
                # function of `os` writes zeros if the file system cannot reserve space.
                reserve(self.fileno(), _KEEP_SIZE, ctypes.c_longlong(self._size), ctypes.c_longlong(_STEP))
        return written


_KEEP_SIZE = 1
_STEP = 32 << 20
_DURABLE = ContextVar("durable", default=True)


@contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Open a temporary folder for result logs. In this block, files are not flushed to the disk."""
    durable = _DURABLE.set(False)
    try:
        with tempfile.TemporaryDirectory(prefix=prefix) as folder:
            yield Path(folder)
    finally:
        _DURABLE.reset(durable)


@contextmanager
def _compressed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Open a file that compresses its content according to the suffix. Equal contents give equal files."""
    if suffix == ".gz":
        from zlib_ng import gzip_ng

        gzip_file: Any = gzip_ng.GzipNGFile
        # Leave out the name and the time.
        writer = gzip_file(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
    elif suffix == ".zst":
        import zstandard

        writer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    else:
        yield file
        return
    # Buffer the writes, because each call of the compressor is slow.
    with writer, io.BufferedWriter(writer, 1 << 17) as content:
        yield cast("BinaryIO", content)


def _flush_folder(folder: Path) -> None:
    """Write the new name to disk on systems that can flush folders."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
