"""Pairing of samples between two results: by ID if the rows are equal, otherwise by row content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aigo_stats.comparison.columns import ResultColumns, SampleId

MAX_EXAMPLES = 5
"""Maximum number of IDs to list in a reason."""

_Key = tuple[type, SampleId]


@dataclass(frozen=True)
class Lost:
    """Samples without a partner for the same reason."""

    reason: str
    count: int
    examples: tuple[SampleId, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {"reason": self.reason, "count": self.count, "examples": list(self.examples)}


@dataclass(frozen=True)
class Pairing:
    """Common samples of two results."""

    base: NDArray[np.int64]
    """Indices in the first result."""
    new: NDArray[np.int64]
    """Indices of their partners in the second result."""
    num_renumbered: int
    """Number of pairs with equal rows but different IDs."""
    lost: tuple[Lost, ...]
    num_changed: int = 0
    """Number of unpaired samples with equal IDs but different rows."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "paired": len(self.base),
            "renumbered": self.num_renumbered,
            "same_id_other_row": self.num_changed,
            "lost": [reason.to_json() for reason in self.lost],
        }


def pair(base: ResultColumns, new: ResultColumns, *, by_id: bool = False) -> Pairing:
    """Pair the samples of two results.

    Args:
        base: first result.
        new: second result.
        by_id: whether to pair by ID only, even if rows differ.
    """
    simple = base.ids == new.ids and (by_id or bool((base.digests == new.digests).all()))
    if simple and len(set(_keys(base))) == len(base):
        everything = np.arange(len(base))
        return Pairing(everything, everything, 0, ())
    return _paired(_Side(base, by_id), _Side(new, by_id))


def _keys(columns: ResultColumns) -> list[_Key]:
    return [(type(sample), sample) for sample in columns.ids]


class _Side:
    """Samples of one result that need a partner."""

    def __init__(self, columns: ResultColumns, by_id: bool):
        self.columns = columns
        self.digests: list[int] = [0] * len(columns) if by_id else columns.digests.tolist()
        keys = _keys(columns)
        counts = Counter(keys)
        self.repeated = {position for position, key in enumerate(keys) if counts[key] > 1}
        self.by_key = {key: position for position, key in enumerate(keys) if counts[key] == 1}
        contents = Counter(self.digests)
        self.by_digest = {
            digest: position
            for position, digest in enumerate(self.digests)
            if digest and contents[digest] == 1
        }
        self.ambiguous = {
            position for position, digest in enumerate(self.digests) if digest and contents[digest] > 1
        }


def _paired(base: _Side, new: _Side) -> Pairing:
    partners: dict[int, int] = {}
    changed: set[int] = set()
    for key, position in base.by_key.items():
        partner = new.by_key.get(key)
        if partner is None:
            continue
        digests = (base.digests[position], new.digests[partner])
        if digests[0] == digests[1] or 0 in digests:
            partners[position] = partner
        else:
            changed.add(position)
    taken = set(partners.values())
    renumbered = 0
    for digest, position in base.by_digest.items():
        partner = new.by_digest.get(digest)
        if position not in partners and partner is not None and partner not in taken:
            partners[position] = partner
            taken.add(partner)
            renumbered += 1
    ordered = sorted(partners.items())
    lost = (
        *_lost(base, set(partners), "base", changed),
        *_lost(new, taken, "new", _changed_in(new, base, changed)),
    )
    return Pairing(
        np.array([position for position, _ in ordered], dtype=np.int64),
        np.array([partner for _, partner in ordered], dtype=np.int64),
        renumbered,
        lost,
        len(changed - set(partners)),
    )


def _changed_in(new: _Side, base: _Side, changed: set[int]) -> set[int]:
    keys = _keys(base.columns)
    return {new.by_key[keys[position]] for position in changed}


def _lost(side: _Side, paired: set[int], name: str, changed: set[int]) -> Iterator[Lost]:
    """Yield the samples of one result without a partner, by reason."""
    reasons: dict[str, list[SampleId]] = {}
    for position, sample in enumerate(side.columns.ids):
        if position in paired:
            continue
        if position in side.repeated:
            reason = f"in {name}: the id occurs more than once"
        elif position in changed:
            reason = f"in {name}: the row with this id differs in the other result"
        elif position in side.ambiguous:
            reason = f"only in {name}, and its row occurs more than once"
        else:
            reason = f"only in {name}"
        reasons.setdefault(reason, []).append(sample)
    for reason, samples in reasons.items():
        yield Lost(reason, len(samples), tuple(samples[:MAX_EXAMPLES]))
