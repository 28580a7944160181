"""The file of a cassette: lines of JSON in zstd frames, each call on the disk before its answer is used.

A line is a checksum and JSON, as `%08x {…}`. Frames are standard ones, so `zstd -dc` shows the lines; a frame
ends after some megabytes. While it is written, its last lines stand in a file beside it (`tail.py`), so
whoever kills the process leaves all finished calls. A line that was cut off, or altered, is no line: it is
told, and nothing else is affected.
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

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, TooLargeError
from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, NO_LINK, lock_if_possible
from aigo_bridge.process.temporary import draft_of
from aigo_trust.recording.tail import Tail, TailWriter, read_tail, written

FORMAT = 1

WINDOW_LOG = 23
"""Contents that zstd looks back on, as a power of two: what every decoder has to support (RFC 8878)."""
FRAME_BYTES = 1 << WINDOW_LOG
"""Content after which a frame ends: what is further back is not looked at anyway."""

LINE_BYTES = 256 << 20
"""Longest line that is read."""
LINES_FROM = 10_000
"""Lines that any recording may have."""
LINE_COST = 4
"""Bytes of the file that each line beyond `LINES_FROM` takes at least: its checksum cannot be packed."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 3
BATCH_BYTES = 1 << 18
"""Bytes of the tail after which its lines are packed: a millisecond's work."""

Json = dict[str, Any]


class CassetteWriter:
    """A new cassette, or one that is gone on with; written line by line, from any thread.

    Lines stand in its tail first (`tail.py`); when there are some, they are packed into the file.

    Args:
        path: the file.
        head: its first line.
        append: go on with one that is there.
        taken_over: told of the lines of that one, parsed and as they stand.

    Raises:
        UsageError: the file is there already (`append` goes on with it), is no cassette, is being written by
            another run, or cannot be written.
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
        """Why nothing is written any more; `None`: it is."""
        self._lock = threading.Lock()
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL, window_log=WINDOW_LOG, write_checksum=True
        )
        self._zstd = zstandard.ZstdCompressor(compression_params=parameters)
        self._frame = self._zstd.compressobj()
        self._in_frame = 0
        self._size = self._num_lines = 0
        """Of what stands in the file."""
        self._waiting: list[bytes] = []
        """Lines that are not packed yet."""
        self._num_waiting = 0
        """Their bytes."""
        self._packed, self._num_packed = b"", 0
        """What is packed and could not be written, and its lines."""
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
        """Written so far."""
        return self._size + (self._tail.num_bytes if self._waiting or self._packed else 0)

    def write(self, line: bytes, checksum: int | None = None) -> bool:
        """Put a line of JSON on the disk; what cannot be written is told once (`problem`).

        Args:
            line: JSON.
            checksum: its CRC-32; `None`: not known yet.

        Returns:
            Whether it stands there now.
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
        """Pack what is not packed yet, and end the last frame; once."""
        for line in last:
            self.write(line)
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                # Also on a disk that was full: what is packed takes a part of the room.
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
        """Take over the lines of a recording that was cut off: a new file, which replaces the old one."""
        with open_regular(self.path) as old:
            try:
                # One that is being written is locked.
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
                    # The old tail is no part of what comes into this place: its head names another one.
                    draft.replace(self.path)
                    self._tail.begin(self._checksum, self._num_lines)
                except BaseException:
                    os.close(file)
                    raise
            # The draft's own lock is given back with its block.
            lock_if_possible(file)
        return file

    def _begin(self, head: bytes) -> None:
        self._queue(head)
        self._pack()
        self._tail.begin(self._checksum, self._num_lines)

    def _queue(self, line: bytes) -> None:
        """A line that is packed without having been in the tail."""
        self._waiting.append(b"%08x %s\n" % (zlib.crc32(line), line))
        self._num_waiting += len(line)
        if self._num_waiting >= BATCH_BYTES:
            self._pack()

    def _pack(self, *, finish: bool = False) -> None:
        """Put the lines that wait into the file.

        Raises:
            OSError: it cannot be written; it is as it was.
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
    """The lines of a cassette, parsed and as they stand; what is none is told, and left out.

    Args:
        path: the file; its lines may also stand in it as they are, not compressed.
        tell: told of lines that were cut off or altered, with their numbers, and of the place from which on
            the file cannot be read.

    Raises:
        EvidenceError: the file cannot be opened, is no cassette, or is larger than any cassette can be.
    """
    tell = _counted(tell, path)
    # Before the file: what is packed meanwhile stands in both, and not in neither.
    tail = read_tail(path, BATCH_BYTES, LINE_BYTES)
    num_read = 0
    # Whoever stops reading leaves no open file behind.
    with contextlib.closing(_raw_lines(path, tell)) as raw_lines:
        for number, raw in raw_lines:
            if number == 1:
                _check_head(_parsed(raw, path)[0], path)
                if tail is not None and not raw.startswith(tail.cassette.encode()):
                    tail = None
            elif tail is not None and number > tail.num_before and not raw.endswith(b"\n"):
                break  # it was being packed, and stands in the tail
            num_read = number
            line, content = _parsed(raw, path)
            if line is None:
                _tell_no_line(raw, path, number, tell)
            else:
                yield line, content
    if num_read == 0:
        raise EvidenceError(
            [Issue("not a cassette: the file is empty", file=str(path), code=Code.DAMAGED_CASSETTE)]
        )
    if tail is not None:
        yield from _tail_lines(tail, num_read, tell)


def _counted(tell: Callable[[Issue], None], path: Path) -> Callable[[Issue], None]:
    """Tell of lines that are none, up to a number of them."""
    numbers = itertools.count(1)

    def tell_some(issue: Issue) -> None:
        if next(numbers) > DEFAULT_BOUNDS.damaged:
            raise _refused(f"more than {DEFAULT_BOUNDS.damaged:,} of its lines cannot be read", path)
        tell(issue)

    return tell_some


def _refused(message: str, path: Path) -> EvidenceError:
    return EvidenceError([Issue(message, file=str(path), code=Code.DAMAGED_CASSETTE)])


def _tail_lines(tail: Tail, num_read: int, tell: Callable[[Issue], None]) -> Iterator[tuple[Json, bytes]]:
    """Those that do not stand in the cassette as well."""
    start = max(0, num_read - tail.num_before)
    for number, raw in enumerate(tail.lines[start:], start + 2):
        line, content = _parsed(raw, tail.path)
        if line is None:
            _tell_no_line(raw, tail.path, number, tell)
        else:
            yield line, content


def _parsed(raw: bytes, path: Path) -> tuple[Json | None, bytes]:
    """A line, and its JSON as it stands; `None`: it is none."""
    checksum, _, content = raw.rstrip(b"\n").partition(b" ")
    try:
        DEFAULT_BOUNDS.check_document(path.name, content)
    except TooLargeError as error:
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
    """Refuse what is no cassette.

    Raises:
        EvidenceError: it is none, or one of another format.
    """
    if not (isinstance(line, dict) and "cassette" in line):
        hint = "create one with: aigo-bridge run … --record FILE"
        raise EvidenceError([Issue("not a cassette", file=str(path), hint=hint, code=Code.DAMAGED_CASSETTE)])
    if line["cassette"] != FORMAT:
        message = f"found a cassette of format {line['cassette']!r}, expected {FORMAT}"
        raise EvidenceError([Issue(message, file=str(path), code=Code.OTHER_RELEASE)])


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
                    raise _refused("unpacked, the file is larger than any recording can be", path)
                if number > most_lines:
                    raise _refused(f"the file has more than {most_lines:,} lines in {packed:,} bytes", path)
                yield number, line
    except FileNotFoundError as error:
        raise EvidenceError(
            [Issue("the file does not exist", file=str(path), code=Code.NOTHING_THERE)]
        ) from error
    except OSError as error:
        raise EvidenceError(
            [Issue(f"it cannot be read: {error.strerror}", file=str(path), code=Code.DAMAGED_CASSETTE)]
        ) from error


def _unpacked(file: Any) -> io.RawIOBase:
    reader = zstandard.ZstdDecompressor(max_window_size=FRAME_BYTES).stream_reader(
        file, read_across_frames=True
    )
    return cast("io.RawIOBase", reader)
