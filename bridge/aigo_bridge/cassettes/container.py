"""The file of a cassette: lines of JSON in zstd frames, each call on the disk before its answer is used.

A line is a checksum and JSON, as `%08x {…}`. Frames are standard ones, so `zstd -dc` shows the lines; a frame
ends after some megabytes, and within it every call ends a block, so whoever kills the process leaves all
finished calls. A line that was cut off, or altered, is no line: it is told, and nothing else is affected.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import orjson
import zstandard

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, NO_LINK, lock_if_possible
from aigo_bridge.process.temporary import draft_of

FORMAT = 1

WINDOW_LOG = 23
"""Contents that zstd looks back on, as a power of two: what every decoder has to support (RFC 8878)."""
FRAME_BYTES = 1 << WINDOW_LOG
"""Content after which a frame ends: what is further back is not looked at anyway."""

LINE_BYTES = 256 << 20
"""Longest line that is read."""
GROWTH = 1000
"""Most times its own size that a cassette may come to, beyond `GROWTH_FROM`; conversations of a thousand
turns reach about a hundred.
"""
GROWTH_FROM = 1 << 30
"""Bytes that any cassette may come to."""
_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 3
_TABLE_LOG = 15
"""Entries of the compressor's tables, as a power of two: a run's own work would drive larger ones out of the
processor's cache from call to call, at twice the time for 1 to 6 % less on the disk.
"""

Json = dict[str, Any]


class CassetteWriter:
    """A new cassette, or one that is gone on with; written line by line, from any thread.

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
        self.num_bytes = 0
        """Written so far."""
        self._lock = threading.Lock()
        parameters = zstandard.ZstdCompressionParameters.from_level(
            _LEVEL,
            window_log=WINDOW_LOG,
            hash_log=_TABLE_LOG,
            chain_log=_TABLE_LOG,
            write_checksum=True,
        )
        self._zstd = zstandard.ZstdCompressor(compression_params=parameters)
        self._frame = self._zstd.compressobj()
        self._in_frame = 0
        self._is_closed = False
        try:
            self._file = self._gone_on(head) if append and path.exists() else self._new(head)
        except OSError as error:
            raise UsageError(
                f"--record: {str(path)!r} cannot be written: {error.strerror}", code=Code.UNUSABLE_OUTPUT
            ) from error

    def write(self, line: bytes, checksum: int | None = None) -> bool:
        """Put a line of JSON on the disk; what cannot be written is told once (`problem`).

        Args:
            line: JSON.
            checksum: its CRC-32; `None`: not known yet.

        Returns:
            Whether it stands there now.
        """
        with self._lock:
            if self.problem is not None or self._is_closed:
                return False
            try:
                self._put(self._packed(line, checksum))
            except OSError as error:
                self._give_up(error)
                return False
            return True

    def close(self, *last: bytes) -> None:
        """End the last frame; once."""
        for line in last:
            self.write(line)
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            try:
                if self.problem is None:
                    self._put(self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH))
            except OSError as error:
                self._give_up(error)
            os.close(self._file)

    def _new(self, head: Json) -> int:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | CLOSED_IN_CHILDREN | NO_LINK
            file = self._file = os.open(self.path, flags, 0o600)
        except FileExistsError:
            raise UsageError(
                f"--record: {str(self.path)!r} is there already; name another file, or remove it"
                " (with --resume it is gone on with)",
                code=Code.ALREADY_THERE,
            ) from None
        lock_if_possible(file)
        self._put(self._packed(orjson.dumps(head)))
        return file

    def _gone_on(self, head: Json) -> int:
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
                    self._put(self._packed(orjson.dumps(head)))
                    for line, content in cassette_lines(self.path, lambda _issue: None):
                        if "cassette" not in line and "end" not in line:
                            self._put(self._packed(content))
                            self._taken_over(line, content)
                    draft.replace(self.path)
                except BaseException:
                    os.close(file)
                    raise
            # The draft's own lock is given back with its block.
            lock_if_possible(file)
        return file

    def _packed(self, line: bytes, checksum: int | None = None) -> bytes:
        text = b"%08x %s\n" % (zlib.crc32(line) if checksum is None else checksum, line)
        packed = self._frame.compress(text)
        self._in_frame += len(text)
        if self._in_frame < FRAME_BYTES:
            return packed + self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        packed += self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)
        self._frame, self._in_frame = self._zstd.compressobj(), 0
        return packed

    def _put(self, data: bytes) -> None:
        before = self.num_bytes
        while data:
            try:
                written = os.write(self._file, data)
            except OSError:
                # What is there of the last line would be in the way of nobody, but it is none.
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, before)
                raise
            self.num_bytes += written
            data = data[written:]

    def _give_up(self, error: OSError) -> None:
        self.problem = os.strerror(error.errno) if error.errno else str(error)


def cassette_lines(path: Path, tell: Callable[[Issue], None]) -> Iterator[tuple[Json, bytes]]:
    """The lines of a cassette, parsed and as they stand; what is none is told, and left out.

    Args:
        path: the file; its lines may also stand in it as they are, not compressed.
        tell: told of lines that were cut off or altered, with their numbers, and of the place from which on
            the file cannot be read.

    Raises:
        EvidenceError: the file cannot be opened, is no cassette, or is larger than any cassette can be.
    """
    number = 0
    # Whoever stops reading leaves no open file behind.
    with contextlib.closing(_raw_lines(path, tell)) as raw_lines:
        for number, raw in raw_lines:
            checksum, _, content = raw.rstrip(b"\n").partition(b" ")
            try:
                line = orjson.loads(content) if int(checksum, 16) == zlib.crc32(content) else None
            except ValueError:
                line = None
            if number == 1:
                _check_head(line, path)
            if not isinstance(line, dict):
                what = "altered: its checksum is another one" if raw.endswith(b"\n") else "cut off"
                message = f"this line was {what}; it is left out"
                tell(
                    Issue(
                        message, file=str(path), line=number, severity="warning", code=Code.DAMAGED_CASSETTE
                    )
                )
                continue
            yield line, content
    if number == 0:
        raise EvidenceError(
            [Issue("this is no cassette: it is empty", file=str(path), code=Code.DAMAGED_CASSETTE)]
        )


def _check_head(line: Any, path: Path) -> None:
    """Refuse what is no cassette.

    Raises:
        EvidenceError: it is none, or one of another format.
    """
    if not (isinstance(line, dict) and "cassette" in line):
        hint = "make one with: aigo-bridge run … --record FILE"
        raise EvidenceError(
            [Issue("this is no cassette", file=str(path), hint=hint, code=Code.DAMAGED_CASSETTE)]
        )
    if line["cassette"] != FORMAT:
        message = f"found a cassette of format {line['cassette']!r}, expected {FORMAT}"
        raise EvidenceError([Issue(message, file=str(path), code=Code.OTHER_RELEASE)])


def _raw_lines(path: Path, tell: Callable[[Issue], None]) -> Generator[tuple[int, bytes]]:
    try:
        with open_regular(path) as file:
            most = max(GROWTH_FROM, GROWTH * os.fstat(file.fileno()).st_size)
            start = file.read(len(_MAGIC))
            file.seek(0)
            lines = io.BufferedReader(_unpacked(file), 1 << 17) if start == _MAGIC else file
            size = number = 0
            while True:
                try:
                    line = lines.readline(LINE_BYTES + 1)
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
                    raise EvidenceError(
                        [
                            Issue(
                                "unpacked, it is larger than any cassette can be",
                                file=str(path),
                                code=Code.DAMAGED_CASSETTE,
                            )
                        ]
                    )
                yield number, line
    except FileNotFoundError as error:
        raise EvidenceError(
            [Issue("there is no such file", file=str(path), code=Code.NOTHING_THERE)]
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
