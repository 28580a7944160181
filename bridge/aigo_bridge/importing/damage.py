"""What of a log could not be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Damage:
    """A part of a log that could not be read."""

    member: str
    """Member of the archive, or file of the log; `""` for the log itself."""
    offset: int | None
    """Byte offset in the file, where it is known."""
    reason: str

    def __str__(self) -> str:
        where = self.member or "file"
        at = "" if self.offset is None else f" at byte {self.offset}"
        return f"{where}{at}: {self.reason}"
