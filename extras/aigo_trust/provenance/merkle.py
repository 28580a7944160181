"""A Merkle tree over the samples of a result, as in RFC 6962 (Certificate Transparency), section 2.1.

A leaf is `SHA-256(0x00 || text)`, a node `SHA-256(0x01 || left || right)`; of `n` leaves the left tree has
the largest power of two that is smaller than `n`. The tree of no leaves is the SHA-256 of nothing. So one
sample is proved to belong to a result by about `log2(n)` digests, and nothing is told of the others but
these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()


def leaf_digest(text: bytes | memoryview) -> bytes:
    """The digest of one sample's text."""
    digest = hashlib.sha256(b"\x00")
    digest.update(text)
    return digest.digest()


def node_digest(left: bytes, right: bytes) -> bytes:
    """The digest of two trees side by side."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root over leaves, in their order."""
    level = list(leaves)
    if not level:
        return EMPTY
    # Level by level gives the tree of the definition: the last of an odd number goes up as it is.
    while len(level) > 1:
        level = [
            node_digest(level[place], level[place + 1]) if place + 1 < len(level) else level[place]
            for place in range(0, len(level), 2)
        ]
    return level[0]


def inclusion_proof(leaves: Sequence[bytes], position: int) -> list[bytes]:
    """The digests beside the way from a leaf up to the root.

    Raises:
        IndexError: there is no such leaf.
    """
    if not 0 <= position < len(leaves):
        raise IndexError(f"there is no leaf {position} of {len(leaves)}")
    proof: list[bytes] = []
    level = list(leaves)
    while len(level) > 1:
        sibling = position ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        level = [
            node_digest(level[place], level[place + 1]) if place + 1 < len(level) else level[place]
            for place in range(0, len(level), 2)
        ]
        position //= 2
    return proof


def root_of_proof(leaf: bytes, position: int, count: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that a leaf and its proof come to; `None` where the proof cannot be one of that leaf."""
    if not 0 <= position < count:
        return None
    digest, rest = leaf, list(proof)
    last = count - 1
    while last:
        if position & 1:
            if not rest:
                return None
            digest = node_digest(rest.pop(0), digest)
        elif position < last:
            if not rest:
                return None
            digest = node_digest(digest, rest.pop(0))
        position //= 2
        last //= 2
    return None if rest else digest
