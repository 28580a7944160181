"""Records of a source in a temporary file, for rows that are read but need not stay in memory."""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
U = TypeVar("U")

_BLOCK = 1 << 16
"""Number of bytes to read at a time, unless a single value is larger."""


class SpillFile:
    """Picklable values in an unnamed file that is deleted with the object."""

    def __init__(self) -> None:
        # Without a buffer, a full disk is reported by the value that does not fit.
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed with the object
        weakref.finalize(self, self._file.close)
        self._starts = array("Q")
        self._end = 0

    def append(self, value: Any) -> None:
        """Append a value.

        Raises:
            OSError: the value cannot be written. The file is unchanged.
        """
        content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        if self._file.write(content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._starts.append(self._end)
        self._end += len(content)

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, start: int, stop: int) -> Iterator[Any]:
        """Yield the values from `start` to `stop` (exclusive)."""
        while start < stop:
            # Read many at a time, because a shard reads all rows several times before its first call.
            begin = self._starts[start]
            beyond = min(stop, max(start + 1, bisect_right(self._starts, begin + _BLOCK) - 1))
            end = self._starts[beyond] if beyond < len(self._starts) else self._end
            self._file.seek(begin)
            block = memoryview(self._file.read(end - begin))
            for number in range(start, beyond):
                # The data was written above, to a private file.
                yield pickle.loads(block[self._starts[number] - begin :])  # noqa: S301
            start = beyond


class LazySequence(Sequence[T], Generic[T]):
    """Lazy sequence over another sequence or a file."""

    def __init__(self, length: int, read: Callable[[int, int], Iterator[T]]):
        self._length = length
        self._read = read

    def mapped(self, function: Callable[[T], U]) -> LazySequence[U]:
        """Return a lazy sequence with a function applied to each item."""
        return LazySequence(self._length, lambda start, stop: map(function, self._read(start, stop)))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self._read(0, self._length)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, int):
            number = range(self._length)[at]
            return next(self._read(number, number + 1))
        start, stop, step = at.indices(self._length)
        return list(self._read(start, max(start, stop)))[::step] if step > 0 else list(self)[at]
