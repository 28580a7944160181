"""Log files on disk: which kinds there are, how they are opened, and how a new one takes its place at once.

| suffix | content |
|---|---|
| `.json` | one JSON document |
| `.jsonl` | one sample per line, and one line that is the log without its samples |
| `.gz`, `.zst` behind either | the same, compressed |
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
from pathlib import Path
from typing import Any, BinaryIO, cast

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, TooLargeError
from aigo_bridge.access.opening import open_regular
from aigo_bridge.access.presence import is_present
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.process.temporary import draft_of
from aigo_bridge.redaction.secrets import clean_file

FIRST_LINE = b'{"evidence":{"samples":[\n'
"""How a `.json` log begins that was written here and has samples; one sample per line follows."""

AFTER_SAMPLES = b'\n],"metrics":'
"""Text after the samples in such a log; only one line break follows, at the end."""

COMPRESSIONS = (".gz", ".zst")


def is_json_lines(path: Path, *, is_read: bool = False) -> bool:
    """Whether a file holds one value per line.

    Args:
        path: the file.
        is_read: whether it is there already.

    Raises:
        EvidenceError: The file that is read does not exist.
        UsageError: The name says neither `.json` nor `.jsonl`.
    """
    name = path.name.lower()
    for suffix in COMPRESSIONS:
        name = name.removesuffix(suffix)
    if name.endswith((".jsonl", ".json")):
        return name.endswith(".jsonl")
    if is_read and not is_present(path):
        raise EvidenceError([Issue("there is no such file", file=str(path), code=Code.NOTHING_THERE)])
    raise UsageError(
        f"found file name {path.name!r}, expected the extension `.json` or `.jsonl`, "
        "plus `.gz` or `.zst` for compressed files",
        code=Code.WRONG_OPTION,
    )


@contextmanager
def open_for_reading(path: Path, root: Path | None = None) -> Iterator[BinaryIO]:
    """The content of a file, decompressed.

    Args:
        path: the file.
        root: folder that it, all links followed, must lie in; `None`: anywhere.

    Raises:
        EvidenceError: The file cannot be opened, its compressed form is damaged, or it looks like a zip bomb.
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
    except TooLargeError as error:
        raise EvidenceError([Issue(str(error), file=str(path), code=error.code)]) from error
    except FileNotFoundError as error:
        raise EvidenceError(
            [Issue("there is no such file", file=str(path), code=Code.NOTHING_THERE)]
        ) from error
    except (gzip.BadGzipFile, zlib.error, EOFError, zstandard.ZstdError) as error:
        hint = "the file is damaged, cut off, or not compressed in the way that its suffix says"
        raise EvidenceError(
            [Issue(f"cannot decompress: {error}", file=str(path), hint=hint, code=Code.DAMAGED_RESULT)]
        ) from error
    except OSError as error:
        raise EvidenceError(
            [Issue(f"cannot read: {error.strerror or error}", file=str(path), code=Code.UNREADABLE_LOG)]
        ) from error


def _bounded(stream: BinaryIO, packed: BinaryIO, path: Path) -> BinaryIO:
    return DEFAULT_BOUNDS.unpacked(stream, os.fstat(packed.fileno()).st_size, path.name)


def mapped(path: Path, root: Path | None = None) -> tuple[bytes | mmap.mmap, EvidenceError | None]:
    """The content of a file without reading it into memory, and what is wrong with its compressed form: then
    it ends before that place.

    What is compressed is unpacked into a temporary file, which nobody else sees. `root` is as for
    `open_for_reading`.

    Raises:
        EvidenceError: The file cannot be opened.
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
    # A mapping outlives its file, and is gone with what last refers to it. Of nothing there is none.
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


@contextmanager
def open_for_replacing(path: Path, *, clean: bool = True) -> Iterator[BinaryIO]:
    """A file to write that appears under its name when the block ends well, and not at all otherwise.

    The content is on disk before the name points to it, so that a crash or a full disk leaves the old file.
    Every write is without what the process knows to be secret.

    Args:
        path: its name.
        clean: `False` for the user's own file written anew, and for archives whose members are clean.
    """
    with _open_for_replacing(path) as file:
        yield clean_file(file, path) if clean else file


@contextmanager
def _open_for_replacing(path: Path) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(path))  # a link stays a link
    with draft_of(target) as draft:
        # Of a call of several megabytes Linux makes huge pages, for which it may have to look long.
        with draft.open("wb", buffering=1 << 18) as file:
            with _compressed(file, path.suffix.lower()) as content:
                yield content
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    _flush_folder(target.parent)


@contextmanager
def _compressed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """A file that compresses what is written to it as its suffix says; equal contents are equal files."""
    if suffix == ".gz":
        from zlib_ng import gzip_ng

        gzip_file: Any = gzip_ng.GzipNGFile
        # Without a name and a time.
        writer = gzip_file(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
    elif suffix == ".zst":
        import zstandard

        writer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    else:
        yield file
        return
    # Buffered: what compresses takes its time for every call.
    with writer, io.BufferedWriter(writer, 1 << 17) as content:
        yield cast("BinaryIO", content)


def _flush_folder(folder: Path) -> None:
    """Have the new name on disk too, where folders can be flushed."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
