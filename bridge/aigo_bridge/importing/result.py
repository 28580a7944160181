"""What became of one log: judged, and told in its loss report."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from aigo_bridge.importing.damage import Damage
from aigo_bridge.importing.encoding import dumps
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import open_draft
from aigo_bridge.importing.report import ImportReport

DONE, FAILED, PARTIAL = 0, 1, 3


@dataclass(frozen=True)
class ImportResult:
    """What became of one log."""

    log: str
    """Its location as the user named it."""
    output: Path | None
    """The file (or folder of tables) that was written; `None` when nothing could be read."""
    loss_file: Path | None
    """The written loss report."""
    status: str
    """The engine's status of the log, e.g. `success`, `error`, `cancelled`, `started`; `""` when it could not be read."""
    samples: int
    trials: int
    failed: int
    """Samples with an error of their own (not of reading)."""
    damage: tuple[Damage, ...]
    """What could not be read."""
    loss: LossReport
    redacted: Counter[str] = field(default_factory=Counter)
    """Secrets taken out, by kind."""
    exit_code: int = DONE
    """0 done, 1 more was dropped than allowed, 3 only a part (or nothing) could be read."""
    reason: str = ""
    """Why the exit code is not 0."""

    def judged(self, max_loss: int | None) -> ImportResult:
        """This result with its exit code, and the reason for it.

        Args:
            max_loss: more dropped things than this are a failure; `None` for any number.
        """
        if self.damage:
            count = len(self.damage)
            reason = f"{count} part{'s' if count > 1 else ''} of the log could not be read: {self.damage[0]}"
            return replace(self, exit_code=PARTIAL, reason=reason)
        if max_loss is not None and self.loss.lost > max_loss:
            reason = f"{self.loss.lost} things were dropped, {max_loss} are allowed"
            return replace(self, exit_code=FAILED, reason=reason)
        return self

    def write_loss(self) -> None:
        """Write the loss report beside the result."""
        assert self.loss_file is not None
        report = {
            "log": self.log,
            **self.loss.as_dict(),
            "redacted": dict(sorted(self.redacted.items())),
            "damage": [asdict(item) for item in self.damage],
        }
        with open_draft(self.loss_file) as file:
            file.write(dumps(report) + b"\n")

    def report(self) -> ImportReport:
        """The result for the command line."""
        # Late: it is for people who wait at a terminal.
        from aigo_bridge.importing.terminal import report_lines

        summary = {
            "status": self.status,
            "samples": self.samples,
            "trials": self.trials,
            "failed": self.failed,
            "loss": self.loss.as_dict(),
            "redacted": dict(self.redacted),
            "unreadable": [str(damage) for damage in self.damage],
            "reason": self.reason,
        }
        return ImportReport(self.log, self.output, tuple(report_lines(self)), self.exit_code, summary)


def file_stem(name: str, taken: set[str], fallback: str = "log") -> str:
    """A file name for a log, made of its name; names that are taken get a number, and the new one is added to them."""
    stem = re.sub(r"[\x00-\x1f\x7f<>:\"|?*/\\]", "_", name) or fallback
    found, number = stem, 2
    while found in taken:
        found, number = f"{stem}-{number}", number + 1
    taken.add(found)
    return found
