"""Continuous upload of a command's output folders, so that a killed process can be resumed from any
machine.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from aigo_bridge.access.object_addresses import Address
from aigo_bridge.errors import BridgeError
from aigo_scale.storage.leases import Lease, lease_seconds
from aigo_scale.storage.mirror import StorageMirror

_SHARE = 10
"""Inverse of the maximum proportion of time for uploads."""


@contextlib.contextmanager
def kept(
    mirror: StorageMirror, folders: Sequence[Address], note: Callable[[str], None]
) -> Iterator[list[Lease]]:
    """Hold the leases of folders, and upload changes in them every few seconds.

    Args:
        mirror: mirror that contains the folders.
        folders: output folders.
        note: callback for messages to the user.

    Raises:
        UsageError: another process writes to a folder.
        StorageError: a folder cannot be written to.
    """
    leases: list[Lease] = []
    stopped = threading.Event()
    keeper = threading.Thread(target=_keep, args=(mirror, leases, stopped, note), daemon=True)
    try:
        for folder in folders:
            lease = Lease(folder)
            lease.get(note)
            leases.append(lease)
        if leases:
            keeper.start()
        yield leases
    finally:
        stopped.set()
        if keeper.is_alive():
            keeper.join()
        for lease in leases:
            with contextlib.suppress(BridgeError):
                lease.give_back()


def _keep(
    mirror: StorageMirror, leases: Sequence[Lease], stopped: threading.Event, note: Callable[[str], None]
) -> None:
    every = lease_seconds() / 4
    next_time, is_told = time.monotonic() + every, False
    while not stopped.wait(every):
        try:
            for lease in leases:
                lease.renew()
            begun = time.monotonic()
            if begun >= next_time:
                mirror.publish(growing=True)
                took = time.monotonic() - begun
                next_time = time.monotonic() + max(every, _SHARE * took)
            is_told = False
        except (BridgeError, OSError) as error:
            if not is_told:
                note(f"warning: {error}; the run continues and tries again")
            is_told = True
