"""What of a log could not be read, or could be read and not be mapped."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from aigo_bridge.errors import EvidenceError

DAMAGED: Final = "DamagedLog"
"""The log's fault: bytes are missing, or are not what the format says."""
UNMAPPED: Final = "UnmappedLog"
"""Nobody's proven fault but ours: the log may be sound."""

DamageKind = Literal["DamagedLog", "UnmappedLog"]


class UnmappedError(EvidenceError):
    """The code that maps a log failed at a part of it."""


@dataclass(frozen=True)
class Damage:
    """A part of a log that is not in the evidence."""

    member: str
    """Member of the archive, or file of the log; `""` for the log itself."""
    offset: int | None
    """Byte offset in the file, where it is known."""
    reason: str
    kind: DamageKind = DAMAGED
    """Whose fault it is; the `error_type` in the evidence."""

    def __str__(self) -> str:
        where = self.member or "file"
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{where}{at}: {self.reason}"


def kind_of(error: Exception) -> DamageKind:
    """Whose fault an error is."""
    return UNMAPPED if isinstance(error, UnmappedError) else DAMAGED


def unmapped(part: str, error: Exception) -> str:
    """The reason for a part at which our own code failed: said as that, with the place in the code."""
    place, step = "", error.__traceback__
    while step is not None:
        path = PurePath(step.tb_frame.f_code.co_filename)
        if any(part.startswith("aigo_") for part in path.parts):
            place = f" at {path.parent.name}/{path.name}:{step.tb_lineno}"
        step = step.tb_next
    return (
        f"aigo-bridge failed to map {part}{place}: {type(error).__name__}: {error} (the log may be sound: this is a defect of"
        " aigo-bridge, or a shape that it does not know; please report it)"
    )
