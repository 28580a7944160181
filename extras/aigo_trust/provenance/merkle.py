"""Merkle tree over the samples of a result, as in RFC 6962 (Certificate Transparency), section 2.1.

A leaf is `SHA-256(0x00 || text)` and a node is `SHA-256(0x01 || left || right)`. With `n` leaves, the left
subtree has the largest power of two smaller than `n`. The empty tree is the SHA-256 of empty input. About
`log2(n)` digests prove that a sample belongs to a result, without revealing other samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

EMPTY = hashlib.sha256(b"").digest()


def leaf_digest(text: bytes | memoryview) -> bytes:
    """Return the digest of one sample's text."""
    digest = hashlib.sha256(b"\x00")
    digest.update(text)
    return digest.digest()


def node_digest(left: bytes, right: bytes) -> bytes:
    """Return the digest of a left and a right subtree."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """Return the root of a list of leaves."""
    level = list(leaves)
    if not level:
        return EMPTY
    # Combining level by level builds the same tree: an odd last node moves up unchanged.
    while len(level) > 1:
        level = [
            node_digest(level[place], level[place + 1]) if place + 1 < len(level) else level[place]
            for place in range(0, len(level), 2)
        ]
    return level[0]


def inclusion_proof(leaves: Sequence[bytes], position: int) -> list[bytes]:
    """Return the sibling digests on the path from a leaf to the root.

    Raises:
        IndexError: the position is out of range.
    """
    if not 0 <= position < len(leaves):
        raise IndexError(f"leaf {position} of {len(leaves)} does not exist")
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
    """Return the root for a leaf and its proof; `None` if the proof does not fit this leaf."""
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
