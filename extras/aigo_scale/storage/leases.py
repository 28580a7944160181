"""Leases for writing into a storage folder: small objects that their owners rewrite every few seconds.

Each process writes its own object, `.aigo-bridge-lease-…`, and then looks for others. If two processes start
together, at least one sees the other, because listings show every completed upload. A process that sees
another one stops. All times come from the storage's clock. A killed process leaves its lease, which expires
after a while. A new process waits for that.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable

from aigo_bridge.access.object_addresses import Address, StoredObject
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_scale.storage.objects import find, look, put_bytes, remove

LEASE = ".aigo-bridge-lease-"

SECONDS = "AIGO_BRIDGE_LEASE_SECONDS"
"""Environment variable with the seconds after which a lease expires."""

_USUAL = 60.0


def is_lease(key: str) -> bool:
    """Return whether an object is a lease."""
    return key.rpartition("/")[2].startswith(LEASE)


def lease_seconds() -> float:
    """Return the seconds after which a lease expires.

    Raises:
        UsageError: the environment variable has an invalid value.
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
    """Right to write into a folder."""

    def __init__(self, folder: Address):
        self.folder = folder
        self._own = folder.below(f"{LEASE}{secrets.token_hex(8)}")
        self._seconds = lease_seconds()

    def get(self, note: Callable[[str], None]) -> None:
        """Acquire the lease. Wait for a lease that may belong to a killed process.

        Raises:
            UsageError: another process has the lease.
            StorageError: the folder cannot be written to.
        """
        self.renew()
        earlier, now = self._of_others()
        ages = [now - lease.modified for lease in earlier.values()]
        live = [age for age in ages if age < self._seconds]
        if live:
            longest = self._seconds - min(live)
            note(
                f"{self.folder}: another process writes there, or was killed less than"
                f" {self._seconds:g} seconds ago; next check in {max(1, round(longest))} s"
            )
            time.sleep(longest + 1)
            self.renew()
            later, _ = self._of_others()
            # A lease that was renewed or is new belongs to a running process.
            if any(earlier.get(key) != lease for key, lease in later.items()):
                self.give_back()
                raise UsageError(
                    f"another process writes into {self.folder}: two would overwrite each other's files",
                    code=Code.PLACE_IN_USE,
                )
        for key in earlier:
            remove(Address(self.folder.scheme, key))

    def renew(self) -> None:
        """Renew the lease.

        Raises:
            StorageError: the lease cannot be written.
        """
        # Write different content each time because a storage's clock may have whole seconds only.
        put_bytes(self._own, f"aigo-bridge writes here {secrets.token_hex(8)}\n".encode())

    @property
    def is_sole(self) -> bool:
        """Return whether no other process has acquired a lease in the meantime."""
        self.renew()
        leases, now = self._of_others()
        return not any(now - lease.modified < self._seconds for lease in leases.values())

    def give_back(self) -> None:
        """Release the lease."""
        remove(self._own)

    def _of_others(self) -> tuple[dict[str, StoredObject], float]:
        """Return other processes' leases by key, and the current time of the storage's clock."""
        lease = look(self._own)
        now = lease.modified if lease is not None else time.time()
        pattern = Address(self.folder.scheme, f"{self.folder.key}/{LEASE}*")
        return {one.key: one for one in find(pattern) if one.key != self._own.key}, now
