"""Outcome of a verification: a verdict for each level, with the location of each problem."""

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
    "answers": "the model's answers match the recording",
    "digests": "result, task, config, rows and code match the provenance",
    "native": "the native log agrees",
    "signature": "the signature holds",
}
"""Claim of each level, in display order."""

FAILURES: dict[Name, str] = {
    "digests": "altered after it was written",
    "signature": "the signature does not belong to this result",
    "native": "it differs from its native log",
    "answers": "it has answers that were not recorded",
    "scores": "its scores do not match the scorers",
    "metrics": "its metrics do not follow from its samples' scores",
    "log": "it is not a valid result log",
}
"""Verdict on a result if a level failed. The first failed level is the cause of later failures."""

MOST_SHOWN = 50
"""Maximum number of findings to keep for a level. The total number is also kept."""


@dataclass(frozen=True)
class Finding:
    """One problem in a result."""

    message: str
    path: tuple[str | int, ...] = ()
    """Location in the result."""
    sample: str | None = None
    """Sample ID as JSON text, such as `3` or `"a"`; `None` if the problem is not in a sample."""
    scorer: str | None = None
    """Key of the scorer."""
    field: str | None = None
    """Name of the score, metric or part."""
    file: str | None = None
    """File with the problem; `None` for the result itself."""

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
        """Return a JSON-serializable dictionary. All keys are always present."""
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
    """Verdict of one level."""

    name: Name
    verdict: Verdict
    reason: str | None = None
    """Reason why the level cannot be checked."""
    findings: tuple[Finding, ...] = ()
    """First findings, at most `MOST_SHOWN`."""
    num_findings: int = 0
    notes: tuple[str, ...] = ()
    """Notes about the checked parts and about parts that could not be checked."""
    failure: str | None = None
    """Verdict on the result if this level failed; `None` for the default in `FAILURES`."""
    intact: tuple[str, ...] = ()
    """Statements that remain true although the level failed."""
    is_asked: bool = False
    """Whether the user provided material for this level."""

    @property
    def title(self) -> str:
        """Claim of the level."""
        return TITLES[self.name]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
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
    """Return a level: failed with findings, unchecked with a reason, otherwise proved."""
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
    """Return a level with the outcome of another check. `failure` is the verdict if only the other check
    failed.
    """
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
    """Outcome of verifying a result."""

    result: Path
    levels: tuple[Level, ...]
    facts: tuple[tuple[str, str], ...] = ()
    """Label and text of each fact in a disclosed sample; empty for a result."""

    def __repr__(self) -> str:
        return f"<Verification of {str(self.result)!r}: {self.summary}>"

    def _names(self, verdict: Verdict) -> list[Name]:
        return [item.name for item in self.levels if item.verdict == verdict]

    @property
    def verdict(self) -> Literal["verified", "FAILED", "partly verified"]:
        """Verdict on the whole result."""
        if self._names("failed"):
            return "FAILED"
        return "partly verified" if self._names("cannot be checked") else "verified"

    @property
    def summary(self) -> str:
        """Verdict in one line."""
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
        """Statements that remain reliable although a level failed."""
        if self.verdict != "FAILED":
            return ()
        proved = [item for item in self.levels if item.verdict == "proved"]
        failed = [item for item in self.levels if item.verdict == "failed"]
        kept = [statement for item in failed for statement in item.intact]
        return (*(f"{item.title} ({item.name})" for item in proved), *kept)

    @property
    def exit_code(self) -> ExitCode:
        """Exit code: 0 if no level failed, 1 if one failed, 3 if provided material was not sufficient for its
        check.
        """
        if self.verdict == "FAILED":
            return ExitCode.FAILED
        unchecked = [item for item in self.levels if item.verdict == "cannot be checked"]
        return ExitCode.PARTIAL if any(item.is_asked for item in unchecked) else ExitCode.DONE

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        return {
            "result": str(self.result),
            "verdict": self.verdict,
            "summary": self.summary,
            "reliable": list(self.reliable),
            **({"facts": dict(self.facts)} if self.facts else {}),
            "levels": [item.to_json() for item in self.levels],
        }


def worst_exit_code(verifications: Sequence[Verification]) -> ExitCode:
    """Return the exit code for several results. A failure has priority over an incomplete check."""
    codes = {verification.exit_code for verification in verifications}
    order = (ExitCode.FAILED, ExitCode.PARTIAL, ExitCode.DONE)
    return next((code for code in order if code in codes), ExitCode.DONE)
