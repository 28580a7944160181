"""A result log that was written here, line by line: its first line begins it, then each sample has a line,
and all else stands in the last one.

Nothing of it is mapped, so that no more than a line is in memory, however large the file is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aigo_bridge.results.log_files import AFTER_SAMPLES, FIRST_LINE, open_for_reading

_LAST = AFTER_SAMPLES.lstrip(b"\n")


class OtherFormError(ValueError):
    """The log was not written here, or changed since."""


def written_lines(path: Path, root: Path | None = None) -> Iterator[tuple[bytes, bool]]:
    """The text of every sample, then that of the log without its samples; and whether it is the latter.

    Args:
        path: the file.
        root: folder that it, all links followed, must lie in; `None`: anywhere.

    Raises:
        OtherFormError: it has another form from there on.
        EvidenceError: it cannot be opened, or its compressed form is damaged from there on.
    """
    with open_for_reading(path, root) as file:
        if file.read(len(FIRST_LINE)) != FIRST_LINE:
            raise OtherFormError("another beginning")
        goes_on = True
        for line in file:
            if not line.startswith(b"{"):
                if goes_on or not line.startswith(_LAST) or any(not rest.isspace() for rest in file):
                    break
                yield FIRST_LINE + line, True
                return
            if not goes_on:
                break
            text = line.rstrip(b"\n")
            goes_on = text.endswith(b",")
            yield text.removesuffix(b","), False
    raise OtherFormError("another line")


def repeats_key(frame: bytes) -> bool:
    """Whether an object of a log without its samples has a key twice, of which readers take either."""
    if frame.count(b'"samples"') + frame.count(b'"evidence"') == 2:
        return False  # nearly always: each of them once, at the beginning
    try:
        json.loads(frame, object_pairs_hook=_once)
    except _RepeatedKeyError:
        return True
    return False


class _RepeatedKeyError(Exception):
    """An object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepeatedKeyError
    return members
