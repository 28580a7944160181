"""Line-by-line reading of a result log that aigo-bridge wrote: the first line starts it, each sample is one
line, and the last line contains everything else.

The file is not mapped, so that memory contains at most one line, for files of any size.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aigo_bridge.results.log_files import AFTER_SAMPLES, FIRST_LINE, open_for_reading
from aigo_bridge.text.json_text import read_json_once

_LAST = AFTER_SAMPLES.lstrip(b"\n")


class OtherFormError(ValueError):
    """The log was written by another program or changed afterwards."""


def written_lines(path: Path, root: Path | None = None) -> Iterator[tuple[bytes, bool]]:
    """Yield the text of every sample, then the text of the log without its samples. The second item is
    whether the text is the log.

    Args:
        path: the file.
        root: folder that must contain the file, after following links; `None` for any folder.

    Raises:
        OtherFormError: the file has another form from this position on.
        EvidenceError: the file cannot be opened, or its compressed data is damaged from this position on.
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
    """Return whether the log without samples repeats a key, so that readers may use either value."""
    if frame.count(b'"samples"') + frame.count(b'"evidence"') == 2:
        return False  # In most logs, each key occurs one time, at the start.
    try:
        read_json_once(frame)
    except ValueError:
        return True
    return False
