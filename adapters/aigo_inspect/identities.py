"""Which sample a sample is: its id and epoch, also where the log has none, wrong ones, or the same twice.

In an archive the name of the member decides, as it does when Inspect looks for a sample: names are there once. In a
document samples have no names; there the first sample with an id and an epoch keeps them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from aigo_bridge.errors import EvidenceError

from .sample_refs import SampleRef, epoch_of, names_of

RENAMED = "id of a sample that is not that of its member: the name of the member counts"
RENUMBERED = (
    "epoch of a sample that is none, or that another sample has: a free one, or that of its member's name"
)
NO_TEXT = "id of a sample that is neither a text nor an integer: written as text"


def is_settled(ref: SampleRef, sample_id: object, epoch: object) -> bool:
    """Whether a sample says of itself what the name of its member says, so that nothing has to be decided."""
    return epoch == ref.epoch > 0 and (ref.id_text == str(sample_id) or ref.id_text in names_of(sample_id))


class Identities:
    """Decides, sample by sample, and remembers what is taken."""

    def __init__(self, refs: Iterable[SampleRef]):
        self._owners: dict[tuple[str, int], int] = {}
        self._given: dict[int, int] = {}
        self._next: dict[str, int] = {}
        for ref in refs:
            if ref.id_text and epoch_of(ref.epoch):
                self._owners.setdefault((ref.id_text, ref.epoch), ref.index)

    def settle(self, sample: dict[str, Any], ref: SampleRef, *, named: bool) -> Counter[str]:
        """Give a sample an id and an epoch that no other has, in place; returns what that changed.

        Args:
            sample: as it stands in the log.
            ref: where it stands.
            named: `ref` has the name of its member, which counts for more than what the sample says.

        Raises:
            EvidenceError: nothing tells which sample it is.
        """
        changes: Counter[str] = Counter()
        found = sample.get("id")
        usable = isinstance(found, (str, int)) and not isinstance(found, bool)
        if named and ref.id_text:
            if not usable or ref.id_text not in names_of(found):
                sample["id"] = ref.id_text
                changes[RENAMED] += 1
        elif not usable:
            if not isinstance(found, float) or not math.isfinite(found):
                raise EvidenceError(
                    f"found {_short(found)} for the sample's id, expected a text or an integer"
                )
            sample["id"] = str(found)
            changes[NO_TEXT] += 1
        epoch = ref.epoch if named and ref.epoch else epoch_of(sample.get("epoch"))
        epoch = self._free(str(sample["id"]), epoch, ref)
        if sample.get("epoch") != epoch or isinstance(sample.get("epoch"), (bool, float)):
            sample["epoch"] = epoch
            changes[RENUMBERED] += 1
        return changes

    def _free(self, sample_id: str, epoch: int, ref: SampleRef) -> int:
        if epoch and self._owners.setdefault((sample_id, epoch), ref.index) == ref.index:
            return epoch
        # A log may be read twice.
        if ref.index in self._given:
            return self._given[ref.index]
        free = self._next.get(sample_id, 1)
        while self._owners.setdefault((sample_id, free), ref.index) != ref.index:
            free += 1
        self._next[sample_id] = free + 1
        self._given[ref.index] = free
        return free


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
