"""Cassette file format: JSON lines in zstd frames. Each call is on disk before its answer is used.

A line is a checksum followed by JSON: `%08x {…}`. The frames are standard zstd frames, so `zstd -dc` prints
the lines. A frame ends after some megabytes.

While a cassette is written, its last lines are in a separate file (`tail.py`). All finished calls therefore
survive when the process is killed. A truncated or modified line is reported and skipped; the other lines stay
readable.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import orjson
import zstandard

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, NO_LINK, lock_if_possible
from aigo_bridge.process.temporary import draft_of
from aigo_trust.recording.tail import Tail, TailWriter, read_tail, written

FORMAT = 1

WINDOW_LOG = 23
"""Window size of zstd as a power of two. Every decoder must support this size (RFC 8878)."""
FRAME_BYTES = 1 << WINDOW_LOG
"""Uncompressed bytes in a frame. A longer frame would not compress better, as zstd looks back no further."""

LINE_BYTES = 256 << 20
"""Maximum number of bytes in a line."""
LINES_FROM = 10_000
"""Number of lines that any recording may contain, for any file size."""
LINE_COST = 4
"""Minimum number of file bytes for each line beyond `LINES_FROM`. A checksum cannot be compressed further."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 3
BATCH_BYTES = 1 << 18
"""Number of tail bytes after which lines are packed. Packing them takes about a millisecond."""

Json = dict[str, Any]


class CassetteWriter:
    """Writer of a cassette, either new or appended to. Any thread may write lines.

    New lines go into the tail first (`tail.py`). Once the tail is large enough, they are packed into the
    cassette.

    Args:
        path: path of the cassette.
        head: first line of the cassette.
        append: whether to append to an existing cassette.
        taken_over: callback for each line of the existing cassette, as parsed JSON and as bytes.

    Raises:
        UsageError: the file exists without `append`, is not a cassette, is being written by another run, or
            cannot be written.
    """

    def __init__(
        self,
        path: Path,
        head: Json,
        *,
        append: bool = False,
        taken_over: Callable[[Json, bytes], None] = lambda _line, _content: None,
    ):
        self.path = path
        self._taken_over = taken_over
        self.problem: str | None = None
        """Reason why lines can no longer be written; `None` without a problem."""
        self._lock = threading.Lock()
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, window_log=WINDOW_LOG, write_checksum=True
        )
        self._zstd = zstandard.ZstdCompressor(compression_params=parameters)
        self._frame = self._zstd.compressobj()
        self._in_frame = 0
        self._size = self._num_lines = 0
        """Size and number of lines of the file."""
        self._waiting: list[bytes] = []
        """Lines that are not packed yet."""
        self._num_waiting = 0
        """Total bytes of these lines."""
        self._packed, self._num_packed = b"", 0
        """Packed data that could not be written yet, and its number of lines."""
        self._is_closed = False
        first = orjson.dumps(head)
        self._checksum = f"{zlib.crc32(first):08x}"
        try:
            self._file = self._gone_on(first) if append and path.exists() else self._new(first)
        except OSError as error:
            raise UsageError(
                f"--record: {str(path)!r} cannot be written: {error.strerror}", code=Code.UNUSABLE_OUTPUT
            ) from error

    @property
    def num_bytes(self) -> int:
        """Number of bytes written so far."""
        return self._size + (self._tail.num_bytes if self._waiting or self._packed else 0)

    def write(self, line: bytes, checksum: int | None = None) -> bool:
        """Write a line of JSON to disk. Report the first write error once, in `problem`.

        Args:
            line: JSON text.
            checksum: CRC-32 of the line; `None` to compute it.

        Returns:
            Whether the line is now on disk.
        """
        text = b"%08x %s\n" % (zlib.crc32(line) if checksum is None else checksum, line)
        with self._lock:
            if self.problem is not None or self._is_closed:
                return False
            try:
                self._tail.put(text)
            except OSError as error:
                self._give_up(error)
                return False
            self._waiting.append(text)
            if self._tail.num_bytes >= BATCH_BYTES:
                try:
                    self._pack()
                    self._tail.begin(self._checksum, self._num_lines)
                except OSError as error:
                    self._give_up(error)
            return True

    def close(self, *last: bytes) -> None:
        """Pack the remaining lines and end the last frame. Further calls do nothing."""
        for line in last:
            self.write(line)
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                # Packing is also tried on a full disk, because packed lines need less space.
                self._pack(finish=True)
            except OSError as error:
                self._give_up(error)
            os.close(self._file)
            self._tail.close(remove=not self._packed)

    def _new(self, head: bytes) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOSED_IN_CHILDREN | NO_LINK
            file = self._file = os.open(self.path, flags, 0o600)
        except FileExistsError:
            raise UsageError(
                f"--record: {str(self.path)!r} already exists; name another file, remove it, or "
                "append to it with --resume",
                code=Code.ALREADY_THERE,
            ) from None
        try:
            lock_if_possible(file)
            self._tail = TailWriter(self.path)
            self._begin(head)
        except BaseException:
            os.close(file)
            self.path.unlink()
            raise
        return file

    def _gone_on(self, head: bytes) -> int:
        """Rewrite the lines of an interrupted recording into a new file that replaces the old one."""
        with open_regular(self.path) as old:
            try:
                # A cassette that another run is writing is locked.
                lock_if_possible(old.fileno())
            except BlockingIOError:
                raise UsageError(
                    f"--record: {str(self.path)!r} is being written by another run", code=Code.PLACE_IN_USE
                ) from None
            with draft_of(self.path) as draft:
                file = self._file = os.open(
                    draft, os.O_RDWR | os.O_CREAT | CLOSED_IN_CHILDREN | NO_LINK, 0o600
                )
                try:
                    self._queue(head)
                    for line, content in cassette_lines(self.path, lambda _issue: None):
                        if "cassette" not in line and "end" not in line:
                            self._queue(content)
                            self._taken_over(line, content)
                    self._pack()
                    self._tail = TailWriter(self.path)
                    # The old tail does not belong to the new file, because its head names another cassette.
                    draft.replace(self.path)
                    self._tail.begin(self._checksum, self._num_lines)
                except BaseException:
                    os.close(file)
                    raise
            # The lock of the draft file ends with its `with` block.
            lock_if_possible(file)
        return file

    def _begin(self, head: bytes) -> None:
        self._queue(head)
        self._pack()
        self._tail.begin(self._checksum, self._num_lines)

    def _queue(self, line: bytes) -> None:
        """Queue a line that was not in the tail."""
        self._waiting.append(b"%08x %s\n" % (zlib.crc32(line), line))
        self._num_waiting += len(line)
        if self._num_waiting >= BATCH_BYTES:
            self._pack()

    def _pack(self, *, finish: bool = False) -> None:
        """Write the queued lines into the file.

        Raises:
            OSError: the lines cannot be written; the file is unchanged.
        """
        text = b"".join(self._waiting)
        self._packed += self._frame.compress(text)
        self._in_frame += len(text)
        if finish or self._in_frame >= FRAME_BYTES:
            self._packed += self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
            self._frame, self._in_frame = self._zstd.compressobj(), 0
        else:
            self._packed += self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._num_packed += len(self._waiting)
        self._waiting, self._num_waiting = [], 0
        self._size = written(self._file, self._packed, self._size)
        self._num_lines += self._num_packed
        self._packed, self._num_packed = b"", 0

    def _give_up(self, error: OSError) -> None:
        self.problem = self.problem or (os.strerror(error.errno) if error.errno else str(error))


def cassette_lines(path: Path, tell: Callable[[Issue], None]) -> Iterator[tuple[Json, bytes]]:
    """Yield the lines of a cassette, as parsed JSON and as bytes. Report and skip unreadable lines.

    Args:
        path: path of the cassette. Uncompressed lines are also accepted.
        tell: callback for truncated or modified lines, with their numbers, and for the first unreadable
            position.

    Raises:
        EvidenceError: the file cannot be opened, is not a cassette, or is larger than any cassette can be.
    """
    tell = _counted(tell, path)
    # Read the tail before the file. Lines packed in between are then in both, and never in neither.
    tail = read_tail(path, BATCH_BYTES, LINE_BYTES)
    num_read = 0
    # Close the file even if the caller stops reading early.
    with contextlib.closing(_raw_lines(path, tell)) as raw_lines:
        for number, raw in raw_lines:
            if number == 1:
                _check_head(_parsed(raw, path)[0], path)
                if tail is not None and not raw.startswith(tail.cassette.encode()):
                    tail = None
            elif tail is not None and number > tail.num_before and not raw.endswith(b"\n"):
                break  # the line was packed while we read, and is in the tail
            num_read = number
            line, content = _parsed(raw, path)
            if line is None:
                _tell_no_line(raw, path, number, tell)
            else:
                yield line, content
    if num_read == 0:
        raise EvidenceError("not a cassette: the file is empty", file=str(path), code=Code.DAMAGED_CASSETTE)
    if tail is not None:
        yield from _tail_lines(tail, num_read, tell)


def _counted(tell: Callable[[Issue], None], path: Path) -> Callable[[Issue], None]:
    """Report unreadable lines up to a maximum number."""
    numbers = itertools.count(1)

    def tell_some(issue: Issue) -> None:
        if next(numbers) > DEFAULT_BOUNDS.damaged:
            raise _refused(f"more than {DEFAULT_BOUNDS.damaged:,} of its lines cannot be read", path)
        tell(issue)

    return tell_some


def _refused(message: str, path: Path) -> EvidenceError:
    return EvidenceError(message, file=str(path), code=Code.DAMAGED_CASSETTE)


def _tail_lines(tail: Tail, num_read: int, tell: Callable[[Issue], None]) -> Iterator[tuple[Json, bytes]]:
    """Yield the tail lines that are not already in the cassette."""
    start = max(0, num_read - tail.num_before)
    for number, raw in enumerate(tail.lines[start:], start + 2):
        line, content = _parsed(raw, tail.path)
        if line is None:
            _tell_no_line(raw, tail.path, number, tell)
        else:
            yield line, content


def _parsed(raw: bytes, path: Path) -> tuple[Json | None, bytes]:
    """Return the JSON of a line, parsed and as bytes; `None` for an unreadable line."""
    checksum, _, content = raw.rstrip(b"\n").partition(b" ")
    try:
        DEFAULT_BOUNDS.check_document(path.name, content)
    except LogTooLargeError as error:
        raise _refused(str(error), path) from error
    try:
        line = orjson.loads(content) if int(checksum, 16) == zlib.crc32(content) else None
    except ValueError:
        line = None
    return (line if isinstance(line, dict) else None), content


def _tell_no_line(raw: bytes, path: Path, number: int, tell: Callable[[Issue], None]) -> None:
    what = "modified: the checksum does not match" if raw.endswith(b"\n") else "cut off"
    message = f"this line was {what}; it is skipped"
    tell(Issue(message, file=str(path), line=number, severity="warning", code=Code.DAMAGED_CASSETTE))


def _check_head(line: Any, path: Path) -> None:
    """Raise an error for a file that is not a cassette.

    Raises:
        EvidenceError: the file is not a cassette, or its format version is not supported.
    """
    if not (isinstance(line, dict) and "cassette" in line):
        hint = "create one with: aigo-bridge run … --record FILE"
        raise EvidenceError("not a cassette", file=str(path), hint=hint, code=Code.DAMAGED_CASSETTE)
    if line["cassette"] != FORMAT:
        message = f"found a cassette of format {line['cassette']!r}, expected {FORMAT}"
        raise EvidenceError(message, file=str(path), code=Code.OTHER_RELEASE)


def _raw_lines(path: Path, tell: Callable[[Issue], None]) -> Generator[tuple[int, bytes]]:
    try:
        with open_regular(path) as file:
            packed = os.fstat(file.fileno()).st_size
            most, most_lines = DEFAULT_BOUNDS.most_unpacked(packed), max(LINES_FROM, packed // LINE_COST)
            start = file.read(len(_MAGIC))
            file.seek(0)
            lines = io.BufferedReader(_unpacked(file), 1 << 17) if start == _MAGIC else file
            size = number = 0
            while True:
                try:
                    line = lines.readline(min(LINE_BYTES, most - size) + 1)
                except zstandard.ZstdError as error:
                    message = f"damaged from here on ({error}); the rest cannot be read"
                    tell(
                        Issue(
                            message,
                            file=str(path),
                            line=number + 1,
                            severity="warning",
                            code=Code.DAMAGED_CASSETTE,
                        )
                    )
                    return
                if not line:
                    return
                number += 1
                size += len(line)
                if len(line) > LINE_BYTES or size > most:
                    raise _refused("the unpacked file is larger than any possible recording", path)
                if number > most_lines:
                    raise _refused(f"the file has more than {most_lines:,} lines in {packed:,} bytes", path)
                yield number, line
    except FileNotFoundError as error:
        raise EvidenceError("the file does not exist", file=str(path), code=Code.NOTHING_THERE) from error
    except OSError as error:
        raise EvidenceError(
            f"it cannot be read: {error.strerror}", file=str(path), code=Code.DAMAGED_CASSETTE
        ) from error


def _unpacked(file: Any) -> io.RawIOBase:
    reader = zstandard.ZstdDecompressor(max_window_size=FRAME_BYTES).stream_reader(
        file, read_across_frames=True
    )
    return cast("io.RawIOBase", reader)
