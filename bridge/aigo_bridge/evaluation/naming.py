"""Names of parts of run files, in one text, so that another process finds them: `run.yaml#quiz`, `run.yaml#quiz/2`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Reference:
    """A task specification of a run file."""

    file: Path
    key: str
    """The specification."""
    run: int = 0
    """Which of its runs, from 0."""

    def __str__(self) -> str:
        number = f"/{self.run + 1}" if self.run else ""
        return f"{self.file}#{self.key}{number}"


def parse_reference(text: str) -> Reference | None:
    """The specification that a text names; `None` when it names a file or a shipped task."""
    file, mark, rest = text.rpartition("#")
    if not mark or not file.lower().endswith(SUFFIXES) or Path(text).exists():
        return None
    key, slash, number = rest.partition("/")
    if slash and not (number.isascii() and number.isdigit() and int(number) > 0):
        return None
    return Reference(Path(file), key, int(number) - 1 if slash else 0)
