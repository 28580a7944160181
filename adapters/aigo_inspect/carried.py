"""AI GO evidence carried along inside an Inspect log that was written from it.

Inspect's reader ignores members it does not know, so the log has the evidence it was made from under `_aigo/`. When
such a log is imported, that evidence comes back exactly, but only while the members that Inspect reads are still those
that were written: after an edit in Inspect (a changed score, say) the log is imported like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from aigo_bridge.errors import EvidenceError

from .reading import LogReader

INDEX, FRAME, SAMPLES = "_aigo/index.json", "_aigo/frame.json", "_aigo/samples/"


def carries_evidence(log: LogReader) -> bool:
    """Whether the log carries evidence that still belongs to it."""
    checksums = log.checksums()
    if INDEX not in checksums:
        return False
    try:
        index = log.read_member(INDEX)
    except EvidenceError as error:
        log.note(INDEX, error)
        return False
    written = index.get("checksums") if isinstance(index, dict) else None
    own = {name: crc for name, crc in checksums.items() if not name.startswith("_aigo/")}
    samples = sum(name.startswith(SAMPLES) for name in checksums)
    whole = not log.damage and samples == log.header["eval"]["dataset"].get("samples")
    return bool(written == own) and FRAME in checksums and whole


def carried_frame(log: LogReader) -> dict[str, Any]:
    """The carried `TaskResultLog` without samples."""
    frame: dict[str, Any] = log.read_member(FRAME)
    return frame


def carried_samples(log: LogReader) -> Iterator[dict[str, Any]]:
    """The carried `SampleEvidence`s in order."""
    names = [name for name in log.members() if name.startswith(SAMPLES)]
    for name in sorted(names, key=lambda name: int(name.removeprefix(SAMPLES).removesuffix(".json"))):
        yield log.read_member(name)


def index_of(checksums: dict[str, int]) -> bytes:
    """The index member for a log whose other members have these checksums."""
    return orjson.dumps({"checksums": checksums})
