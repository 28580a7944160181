"""How much the model calls of a sample come to when the messages that they name by number are written out.

A few bytes name thousands of messages, so nothing but this bounds what a sample of a stranger may become. Contexts of real
agents grow with the square of their turns; they hardly ever name one message twice in a call.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import Any

import msgspec

from aigo_bridge.importing.bounds import Bounds, TooLargeError
from aigo_bridge.importing.encoding import dumps


def check_contexts(named: list[Any], pool: list[Any], size: int, put_back: int, bounds: Bounds) -> None:
    """Refuse a sample whose contexts come to more than `Bounds.context_growth` times its size.

    Args:
        named: the ranges of messages of every model call.
        pool: the messages, as dictionaries or records, their attachments put back.
        size: bytes of the sample's JSON.
        put_back: characters that attachments have added to it.
        bounds: what it may come to.

    Raises:
        TooLargeError: it comes to more.
    """
    room = bounds.growth_from + int(size * bounds.context_growth)
    # Where no call names a message twice, none has more than all there is. That settles nearly every sample at once.
    if len(named) * (size + put_back) <= room and all(map(_ascends, named)):
        return
    ends = [0, *accumulate(map(_length, pool))]
    for refs in named:
        for start, end in _ranges(refs, len(pool)):
            room -= ends[end] - ends[start]
            if room < 0:
                raise TooLargeError(
                    f"the inputs of the sample's model calls come to more than {bounds.context_growth:g} times its size"
                    " (raise the bound 'context_growth' if the log is yours)"
                )


def _ascends(refs: Any) -> bool:
    """Whether no message is named twice, as far as its ranges show at once."""
    try:
        ends = list(chain.from_iterable(refs))
        return ends == sorted(ends)
    except TypeError:
        # Not what it should be: the messages are counted one by one.
        return False


def _ranges(refs: Any, length: int) -> list[tuple[int, int]]:
    """The ranges among `refs` that lie within a pool; others are found where they are expanded."""
    return [
        (ref[0], ref[1])
        for ref in (refs if type(refs) is list else ())
        if type(ref) is list
        and len(ref) == 2
        and type(ref[0]) is int
        and type(ref[1]) is int
        and 0 <= ref[0] <= ref[1] <= length
    ]


def _length(message: Any) -> int:
    return len(msgspec.json.encode(message) if isinstance(message, msgspec.Struct) else dumps(message))
