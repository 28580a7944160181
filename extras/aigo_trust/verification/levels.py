"""What a check of a result comes to: a verdict for each level, with the places of what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from aigo_bridge.errors import dotted
from aigo_bridge.exit_codes import ExitCode

Verdict = Literal["proved", "failed", "cannot be checked"]
Name = Literal["log", "metrics", "scores", "answers", "digests", "native", "signature"]

TITLES: dict[Name, str] = {
    "log": "the file is a valid result log",
    "metrics": "every number follows from the samples' scores",
    "scores": "the scorers give the same scores again",
    "answers": "the model's answers are those of the recording",
    "digests": "result, task, config, rows and code are those of the provenance",
    "native": "the native log says the same",
    "signature": "the signature holds",
}
"""Level → its claim, in the order in which levels are shown."""

FAILURES: dict[Name, str] = {
    "digests": "altered after it was written",
    "signature": "the signature is not one of this result",
    "native": "it differs from its native log",
    "answers": "it has answers that were not recorded",
    "scores": "its scores do not match the scorers",
    "metrics": "its metrics do not follow from its samples' scores",
    "log": "it is not a valid result log",
}
"""Level → the verdict on a result if it has failed; the first one is the cause of those after it."""

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
    failure: str | None = None
    """The verdict on the result if this level has failed; `None`: the usual one of `FAILURES`."""
    intact: tuple[str, ...] = ()
    """Statements that still hold although the level has failed."""
    is_asked: bool = False
    """Whether the user has named something to check this level with."""

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
    name: Name,
    findings: Sequence[Finding],
    *,
    notes: Sequence[str] = (),
    unchecked: str | None = None,
    failure: str | None = None,
    intact: Sequence[str] = (),
) -> Level:
    """Return a verdict: failed if there are findings, else proved or, with a reason, not to be checked."""
    shown = tuple(findings[:MOST_SHOWN])
    if findings:
        return Level(name, "failed", None, shown, len(findings), tuple(notes), failure, tuple(intact))
    if unchecked is not None:
        return Level(name, "cannot be checked", unchecked, notes=tuple(notes), intact=tuple(intact))
    return Level(name, "proved", notes=tuple(notes), intact=tuple(intact))


def merged(
    one: Level,
    findings: Sequence[Finding],
    notes: Sequence[str],
    unchecked: str | None,
    *,
    failure: str | None = None,
) -> Level:
    """Return a level with the outcome of a further check; `failure` is the verdict if only that failed."""
    combined = level(
        one.name,
        [*one.findings, *findings],
        notes=[*one.notes, *notes],
        unchecked="; ".join(reason for reason in (one.reason, unchecked) if reason) or None,
    )
    return replace(
        combined,
        num_findings=one.num_findings + len(findings),
        failure=one.failure if one.findings else failure,
        intact=one.intact,
    )


@dataclass(frozen=True)
class Verification:
    """The outcome of the check of a result."""

    result: Path
    levels: tuple[Level, ...]
    facts: tuple[tuple[str, str], ...] = ()
    """Label and text of everything that a disclosed sample says; empty for a result."""

    def __repr__(self) -> str:
        return f"<Verification of {str(self.result)!r}: {self.summary}>"

    def _names(self, verdict: Verdict) -> list[Name]:
        return [item.name for item in self.levels if item.verdict == verdict]

    @property
    def verdict(self) -> Literal["verified", "FAILED", "partly verified"]:
        """The verdict on the result as a whole."""
        if self._names("failed"):
            return "FAILED"
        return "partly verified" if self._names("cannot be checked") else "verified"

    @property
    def summary(self) -> str:
        """The verdict in one line."""
        if self.verdict == "verified":
            return "verified"
        if self.verdict == "FAILED":
            failed = {item.name: item for item in self.levels if item.verdict == "failed"}
            cause = next(failed[name] for name in FAILURES if name in failed)
            return f"FAILED: {cause.failure or FAILURES[cause.name]}"
        proved, unchecked = (", ".join(self._names(name)) for name in ("proved", "cannot be checked"))
        return f"partly verified: {proved or 'nothing'} proved; not checked: {unchecked}"

    @property
    def reliable(self) -> tuple[str, ...]:
        """Statements that an auditor can still rely on although a level has failed."""
        if self.verdict != "FAILED":
            return ()
        proved = [item for item in self.levels if item.verdict == "proved"]
        failed = [item for item in self.levels if item.verdict == "failed"]
        kept = [statement for item in failed for statement in item.intact]
        return (*(f"{item.title} ({item.name})" for item in proved), *kept)

    @property
    def exit_code(self) -> ExitCode:
        """0: no level has failed; 1: one has; 3: something that was named to check it with was not enough."""
        if self.verdict == "FAILED":
            return ExitCode.FAILED
        unchecked = [item for item in self.levels if item.verdict == "cannot be checked"]
        return ExitCode.PARTIAL if any(item.is_asked for item in unchecked) else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "result": str(self.result),
            "verdict": self.verdict,
            "summary": self.summary,
            "reliable": list(self.reliable),
            **({"facts": dict(self.facts)} if self.facts else {}),
            "levels": [item.to_json() for item in self.levels],
        }


def worst_exit_code(verifications: Sequence[Verification]) -> ExitCode:
    """Return the exit code of several results: a failure comes before what could not be checked."""
    codes = {verification.exit_code for verification in verifications}
    order = (ExitCode.FAILED, ExitCode.PARTIAL, ExitCode.DONE)
    return next((code for code in order if code in codes), ExitCode.DONE)
