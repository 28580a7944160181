"""What a check of a result comes to: a verdict for each level, with the places of what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from aigo_bridge.errors import dotted
from aigo_bridge.exit_codes import ExitCode

Verdict = Literal["proved", "failed", "cannot be checked"]
Name = Literal["log", "metrics", "scores", "digests", "native", "signature"]

TITLES: dict[Name, str] = {
    "log": "the file is a valid result log",
    "metrics": "every number follows from the samples' scores",
    "scores": "the scorers give the same scores again",
    "digests": "result, task, config, rows and code are those of the provenance",
    "native": "the native log says the same",
    "signature": "the signature holds",
}
"""Level → what it claims, in the order in which levels are told."""

MOST_SHOWN = 50
"""Findings of a level that are kept; the number of all is kept, too."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be."""

    message: str
    path: tuple[str | int, ...] = ()
    """Place in the result."""
    sample: str | None = None
    """Id of the sample as it stands in the result, e.g. `3` or `"a"`; `None`: it is in none."""
    scorer: str | None = None
    """Key of the scorer."""
    field: str | None = None
    """Name of the score, metric or part."""
    file: str | None = None
    """File in which it is, where that is not the result."""

    def __str__(self) -> str:
        parts = [
            self.file,
            None if self.sample is None else f"sample {self.sample}",
            None if self.scorer is None else f"scorer {self.scorer!r}",
            None if self.field is None else f"field {self.field!r}",
        ]
        where = ", ".join(part for part in parts if part) or dotted(self.path)
        return f"{where}: {self.message}" if where else self.message

    def to_json(self) -> dict[str, Any]:
        """For programs; every key is always there."""
        return {
            "message": self.message,
            "path": list(self.path),
            "sample": self.sample,
            "scorer": self.scorer,
            "field": self.field,
            "file": self.file,
        }


@dataclass(frozen=True)
class Level:
    """The verdict of one level."""

    name: Name
    verdict: Verdict
    reason: str | None = None
    """Why it cannot be checked."""
    findings: tuple[Finding, ...] = ()
    """What is wrong; the first `MOST_SHOWN`."""
    num_findings: int = 0
    notes: tuple[str, ...] = ()
    """What was checked, and which parts could not be."""

    @property
    def title(self) -> str:
        """What it claims."""
        return TITLES[self.name]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "level": self.name,
            "claim": self.title,
            "verdict": self.verdict,
            "reason": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "num_findings": self.num_findings,
            "notes": list(self.notes),
        }


def level(
    name: Name, findings: Sequence[Finding], *, notes: Sequence[str] = (), unchecked: str | None = None
) -> Level:
    """A verdict: failed where something is wrong, else proved, or, with a reason, not to be checked."""
    shown = tuple(findings[:MOST_SHOWN])
    if findings:
        return Level(name, "failed", None, shown, len(findings), tuple(notes))
    if unchecked is not None:
        return Level(name, "cannot be checked", unchecked, notes=tuple(notes))
    return Level(name, "proved", notes=tuple(notes))


def merged(one: Level, findings: Sequence[Finding], notes: Sequence[str], unchecked: str | None) -> Level:
    """A level with what a further check of the same claim has come to."""
    combined = level(
        one.name,
        [*one.findings, *findings],
        notes=[*one.notes, *notes],
        unchecked="; ".join(reason for reason in (one.reason, unchecked) if reason) or None,
    )
    return replace(combined, num_findings=one.num_findings + len(findings))


@dataclass(frozen=True)
class Verification:
    """What the check of a result came to."""

    result: Path
    levels: tuple[Level, ...]

    @property
    def exit_code(self) -> ExitCode:
        """0: every level is proved; 1: one has failed; 3: none has failed, but not all could be checked."""
        verdicts = {each_level.verdict for each_level in self.levels}
        if "failed" in verdicts:
            return ExitCode.FAILED
        return ExitCode.PARTIAL if "cannot be checked" in verdicts else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {"result": str(self.result), "levels": [item.to_json() for item in self.levels]}
