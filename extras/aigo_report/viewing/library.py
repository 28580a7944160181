"""Cache of prepared items: each item is prepared again when it changes.

A few processes do the work, independent of the number of waiting readers.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from aigo_bridge.process.pool import Worker
from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_report.viewing.folder import Folder, FolderItem, FolderListing, stamp_at
from aigo_report.viewing.preparing import BLOCKS, SUMMARY, PageData, compared, prepare

PREFIX = "aigo-bridge-view-"
PROCESSES = 2
MOST_PREPARED = 64
"""Maximum number of items to keep. The least recently viewed one is removed first."""
MOST_BYTES = 8 << 30
"""Maximum number of bytes on disk."""
LEAST_PAUSE = 1.5
"""Minimum number of seconds between two updates of a run in progress."""
SHARE = 4
"""Pause between two updates of a run, as a multiple of the duration of the last update."""
RETRIED = 10.0
"""Seconds before an unreadable item is read again."""
_LISTED = 0.5
"""Seconds to reuse a folder scan."""
_ENDED = "the process that read it was ended: the file changed during reading, or memory ran out"


class Preparation:
    """Preparation of an item, in progress or finished."""

    def __init__(self, number: int, future: Future[Any]):
        self.number = number
        """Sequence number. Later preparations have higher numbers."""
        self.future = future
        self.began = time.monotonic()


class Library:
    """Prepared items of a folder. All methods are thread-safe.

    Raises:
        OSError: temporary files cannot be created.
    """

    def __init__(self, root: Path):
        self._folder = Folder(root)
        self.root = root
        self._lock = threading.Lock()
        self._listing_lock = threading.Lock()
        self._listing: tuple[float, FolderListing] | None = None
        self._numbers = itertools.count(1)
        self._latest: OrderedDict[str, Preparation] = OrderedDict()
        """Last preparation of each item, in progress or finished."""
        self._kept: OrderedDict[tuple[str, int], PageData] = OrderedDict()
        self._comparisons: OrderedDict[Any, Preparation] = OrderedDict()
        self._workers: SimpleQueue[Worker] = SimpleQueue()
        self._all_workers = [Worker() for _ in range(PROCESSES)]
        for worker in self._all_workers:
            self._workers.put(worker)
        self._threads = ThreadPoolExecutor(PROCESSES, thread_name_prefix="preparing")
        self.private = Path(make_folder(PREFIX))
        """Private temporary folder, deleted with this library."""

    def close(self) -> None:
        """Stop all work and delete all temporary files."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._all_workers:
            with suppress(BaseException):
                worker.stop()
        self._threads.shutdown(wait=True)
        remove_folder(str(self.private))

    # Folder

    def listing(self) -> FolderListing:
        """Return the content of the folder, less than a second old."""
        with self._listing_lock:
            if self._listing is None or time.monotonic() - self._listing[0] > _LISTED:
                listing = self._folder.listing()
                self._listing = (time.monotonic(), listing)
            return self._listing[1]

    def head(self, entry: FolderItem) -> dict[str, Any]:
        """Return the basic facts of an item, if they are quickly available."""
        with self._listing_lock:
            return self._folder.head(entry)

    # Items

    def work(self, entry: FolderItem) -> Preparation:
        """Return the current preparation of an item, started if necessary."""
        with self._lock:
            work = self._latest.get(entry.id)
            if work is None or (work.future.done() and not self._holds(entry, work)):
                number = next(self._numbers)
                target = self.private / f"{entry.id}-{number}"
                future = self._threads.submit(self._prepare, entry, number, target)
                work = Preparation(number, future)
                self._latest[entry.id] = work
            self._latest.move_to_end(entry.id)
            return work

    def _holds(self, entry: FolderItem, work: Preparation) -> bool:
        """Return whether a finished preparation may still be displayed."""
        if work.future.exception() is not None:
            return False
        prepared: PageData = work.future.result()
        if (entry.id, work.number) not in self._kept:
            return False
        run = None if entry.run is None else entry.run.version
        if prepared.problem is not None and time.monotonic() - work.began > RETRIED:
            return False
        if run == prepared.run and prepared.is_current:
            return True
        pause = max(LEAST_PAUSE, SHARE * prepared.seconds)
        return entry.run is not None and time.monotonic() - work.began < pause + prepared.seconds

    def _prepare(self, entry: FolderItem, number: int, target: Path) -> PageData:
        try:
            prepared: PageData = self._call(prepare, entry, self.root, target)
        except BrokenProcessPool:
            prepared = PageData(target, ((entry.path, stamp_at(entry.path)),), None, {}, (), 0, _ENDED)
        with self._lock:
            self._kept[entry.id, number] = prepared
            dropped = self._superfluous(entry.id)
        for each in dropped:
            _remove(each.folder)
        return prepared

    def _superfluous(self, latest: str) -> list[PageData]:
        """Return the preparations to delete: all but the last two of an item, and the oldest ones above the
        limits.
        """
        own = [key for key in self._kept if key[0] == latest]
        going = own[:-2]
        sizes = {key: _size(block.folder) for key, block in self._kept.items()}
        total = sum(sizes.values())
        for key in list(self._kept):
            staying = len(self._kept) - len(going)
            if key in going or key == own[-1] or (staying <= MOST_PREPARED and total <= MOST_BYTES):
                continue
            going.append(key)
            total -= sizes[key]
        return [self._kept.pop(key) for key in going]

    def prepared(self, entry_id: str, number: int) -> PageData | None:
        """Return a finished preparation of an item by number; `None` if it was deleted."""
        with self._lock:
            prepared = self._kept.get((entry_id, number))
            if prepared is not None:
                self._kept.move_to_end((entry_id, number))
            return prepared

    # Comparisons

    def comparison(self, key: Any, base: Path, new: Path) -> Preparation:
        """Return the comparison of two results.

        Args:
            key: key of the two preparations.
            base: path of the first result log.
            new: path of the second result log.
        """
        with self._lock:
            work = self._comparisons.get(key)
            if work is None:
                future = self._threads.submit(self._call, compared, base, new, self.root)
                work = self._comparisons[key] = Preparation(next(self._numbers), future)
            while len(self._comparisons) > MOST_PREPARED:
                self._comparisons.popitem(last=False)
            return work

    def _call(self, function: Any, *arguments: Any) -> Any:
        worker = self._workers.get()
        try:
            return worker.call(function, *arguments)
        finally:
            self._workers.put(worker)


def summary_file(prepared: PageData) -> Path:
    """Return the gzipped summary file of a preparation."""
    return prepared.folder / SUMMARY


def blocks_file(prepared: PageData) -> Path:
    """Return the block file of a preparation."""
    return prepared.folder / BLOCKS


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):
        for place, _, names in os.walk(folder):
            total += sum(Path(place, name).stat().st_size for name in names)
    return total


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
