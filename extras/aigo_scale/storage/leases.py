"""Who writes into a folder of a storage: a small object that is written anew every few seconds.

Each process has one of its own, `.aigo-bridge-lease-…`, and looks for others after it has put it: of two
that come at once each sees the other or is seen, as listings show every put that has ended, and who sees
another goes. All times are those of the storage's clock. A process that was killed leaves its lease, which
is nobody's when it has not been written for a while: whoever comes meanwhile waits to see.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable

from aigo_bridge.access.object_addresses import Address, Stored
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_scale.storage.objects import find, look, put_bytes, remove

LEASE = ".aigo-bridge-lease-"

SECONDS = "AIGO_BRIDGE_LEASE_SECONDS"
"""Variable of the environment: after how long a lease that is not written anew is nobody's."""

_USUAL = 60.0


def is_lease(key: str) -> bool:
    """Whether an object is one."""
    return key.rpartition("/")[2].startswith(LEASE)


def lease_seconds() -> float:
    """After how long a lease is nobody's.

    Raises:
        UsageError: the environment says something else.
    """
    text = os.environ.get(SECONDS)
    if not text:
        return _USUAL
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= 3600:
        raise UsageError(f"{SECONDS}: found {text!r}, expected 1 to 3600", code=Code.WRONG_LIMIT)
    return seconds


class Lease:
    """The right to write into a folder."""

    def __init__(self, folder: Address):
        self.folder = folder
        self._own = folder.below(f"{LEASE}{secrets.token_hex(8)}")
        self._seconds = lease_seconds()

    def get(self, note: Callable[[str], None]) -> None:
        """Get it; a lease that may be a killed process's is waited for.

        Raises:
            UsageError: another process has it.
            StorageError: the folder cannot be written to.
        """
        self.renew()
        earlier, now = self._of_others()
        ages = [now - lease.modified for lease in earlier.values()]
        live = [age for age in ages if age < self._seconds]
        if live:
            longest = self._seconds - min(live)
            note(
                f"{self.folder}: another process writes there, or was killed not {self._seconds:g} seconds"
                f" ago; looking again in {max(1, round(longest))} s"
            )
            time.sleep(longest + 1)
            self.renew()
            later, _ = self._of_others()
            # One that was written meanwhile, or is new, is somebody's.
            if any(earlier.get(key) != lease for key, lease in later.items()):
                self.give_back()
                raise UsageError(
                    f"another process writes into {self.folder}: two would overwrite each other's files",
                    code=Code.PLACE_IN_USE,
                )
        for key in earlier:
            remove(Address(self.folder.scheme, key))

    def renew(self) -> None:
        """Say that this process is alive.

        Raises:
            StorageError: it cannot be written.
        """
        # Another content each time: the clock of a storage may show whole seconds only.
        put_bytes(self._own, f"aigo-bridge writes here {secrets.token_hex(8)}\n".encode())

    @property
    def is_sole(self) -> bool:
        """Whether no other process has come in the meantime."""
        self.renew()
        leases, now = self._of_others()
        return not any(now - lease.modified < self._seconds for lease in leases.values())

    def give_back(self) -> None:
        """Let others write."""
        remove(self._own)

    def _of_others(self) -> tuple[dict[str, Stored], float]:
        """Leases of others by key, and what time it is by the storage's clock."""
        lease = look(self._own)
        now = lease.modified if lease is not None else time.time()
        pattern = Address(self.folder.scheme, f"{self.folder.key}/{LEASE}*")
        return {one.key: one for one in find(pattern) if one.key != self._own.key}, now
