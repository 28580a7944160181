"""Merkle trees of RFC 6962: roots and inclusion proofs."""

from __future__ import annotations

import hashlib

import pytest

from aigo_trust.provenance.merkle import (
    EMPTY,
    inclusion_proof,
    leaf_digest,
    node_digest,
    root_of_proof,
    tree_root,
)

COUNTS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 33]


def defined(leaves: list[bytes]) -> bytes:
    """Return the root as defined in section 2.1 of RFC 6962."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return node_digest(defined(leaves[:half]), defined(leaves[half:]))


@pytest.mark.parametrize("count", COUNTS)
def test_merkle_roots_match_the_rfc_definition(count: int) -> None:
    leaves = [leaf_digest(bytes([number])) for number in range(count)]
    assert tree_root(leaves) == defined(leaves)


@pytest.mark.parametrize("count", COUNTS)
def test_inclusion_proof_is_only_valid_at_its_position(count: int) -> None:
    leaves = [leaf_digest(bytes([number])) for number in range(count)]
    root = tree_root(leaves)
    for place, leaf in enumerate(leaves):
        proof = inclusion_proof(leaves, place)
        assert root_of_proof(leaf, place, count, proof) == root
        assert all(
            root_of_proof(leaf, other, count, proof) != root for other in range(count) if other != place
        )
        assert root_of_proof(leaf_digest(b"another"), place, count, proof) != root
        assert root_of_proof(leaf, place, count, [*proof, leaf]) is None
        if proof:
            assert root_of_proof(leaf, place, count, proof[:-1]) != root


def test_merkle_roots_match_published_vectors() -> None:
    """Vectors from Certificate Transparency's tests: eight inputs and the empty tree."""
    inputs = [
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    ]
    leaves = [leaf_digest(bytes.fromhex(text)) for text in inputs]
    assert EMPTY.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert leaves[0].hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert tree_root(leaves[:3]).hex() == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert tree_root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_leaf_and_node_hashes_differ() -> None:
    left, right = leaf_digest(b"a"), leaf_digest(b"b")
    assert leaf_digest(left + right) != node_digest(left, right)
    with pytest.raises(IndexError):
        inclusion_proof([left], 1)
