"""Input mutations: insert, delete, repeat and mix bytes and words."""

from __future__ import annotations

import random
from collections.abc import Sequence

LONGEST = 200_000
"""Bytes of an input."""
_NUMBERS = (b"0", b"-1", b"1e999", b"99999999999999999999", b"0.1", b"nan", b"2147483648")


def mutated(chance: random.Random, data: bytes, others: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return an input that differs from `data` in a few positions."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 1, 2, 8, 40, 400)))
        part = data[start:end]
        match chance.randrange(8):
            case 0:
                part = bytes(chance.randrange(256) for _ in range(chance.choice((1, 1, 2, 4))))
            case 1:
                part = b""
            case 2 | 3:
                part = chance.choice(words) + part
            case 4:
                part = (part or chance.choice(words)) * chance.choice((2, 3, 10, 100, 3_000))
            case 5:
                other = chance.choice(others)
                cut = chance.randint(0, len(other))
                part = other[cut : cut + chance.choice((4, 40, 400, 4_000))]
            case 6:
                part = chance.choice(_NUMBERS)
            case _:
                part = bytes(byte ^ (1 << chance.randrange(8)) for byte in part)
        data = (data[:start] + part + data[end:])[:LONGEST]
    return data
