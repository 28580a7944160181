"""Where the samples of a log stand, and in which order they belong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from aigo_bridge.importing.encoding import json_text

Order = Literal["epoch", "sample"]
_SAMPLE_NAME = re.compile(r"samples/(.*)_epoch_(\d+)(?:\.json|/sample\.json)", re.DOTALL)
_LONGEST_EPOCH = 18
"""Digits; more are no count of anything."""
_LONGEST_ID = 10_000
"""Characters; a name in a zip has 65,535 bytes at most."""


@dataclass(frozen=True, slots=True)
class SampleRef:
    """Where one sample stands in the log, known without reading it."""

    key: str
    """Member name in an archive, `samples[3]` in a `.json` log."""
    id_text: str
    """The sample's id as text, as far as the name tells; `""` when unknown."""
    epoch: int
    """1-based epoch as far as the name tells; 0 when unknown."""
    index: int
    """Position in the file."""


def named_samples(names: Iterable[str]) -> list[SampleRef]:
    """The samples among the members of an archive."""
    return [
        SampleRef(name, match[1], epoch_of(match[2]), index)
        for index, name in enumerate(names)
        if name.startswith("samples/") and (match := _SAMPLE_NAME.fullmatch(name))
    ]


def name_of(sample_id: object) -> str:
    """An id as members that we write have it: as Inspect names them, and ids that no zip can name with a digest."""
    text = str(sample_id)
    if len(text) <= _LONGEST_ID and "\0" not in text and _encodable(text):
        return text
    # Late: hardly any log needs it.
    import hashlib

    digest = hashlib.blake2b(
        json_text(["sample", text]).encode("utf-8", "backslashreplace"), digest_size=11
    ).hexdigest()
    return f"{text[:40].replace(chr(0), '').encode('utf-8', 'replace').decode()}-{digest}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def names_of(sample_id: object) -> tuple[str, str, str]:
    """How members may name an id: as it is, as a zip on Windows does (other slashes, nothing behind a NUL), as ours do."""
    text = str(sample_id)
    return text, text.replace("\\", "/").partition("\0")[0], name_of(text)


def epoch_of(value: object) -> int:
    """An epoch, from a number or digits; 0 when it is none."""
    if isinstance(value, str):
        return int(value) if 0 < len(value) <= _LONGEST_EPOCH else 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**_LONGEST_EPOCH:
        return value
    return 0


def in_order(refs: list[SampleRef], ids: object, order: Order) -> list[SampleRef]:
    """The samples in the order of the data set, epoch by epoch or (`"sample"`) sample by sample.

    Args:
        refs: the samples in the order in which they were written.
        ids: the data set's list of ids, if there is one; other samples come last.
        order: which of the two orders.
    """
    listed = ids if isinstance(ids, list) else []
    rank = {str(sample_id): position for position, sample_id in enumerate(listed)}
    last = len(rank)
    if not rank:
        # Without a list, keep the epochs of one sample together in order of first appearance.
        for ref in refs:
            rank.setdefault(ref.id_text, len(rank))
    if order == "epoch":
        return sorted(refs, key=lambda ref: (ref.epoch, rank.get(ref.id_text, last), ref.index))
    first: dict[str, int] = {}
    for ref in refs:
        first.setdefault(ref.id_text, ref.index)
    return sorted(
        refs, key=lambda ref: (rank.get(ref.id_text, last), first[ref.id_text], ref.epoch, ref.index)
    )
