"""Outcomes of converting the tasks of a registry, as counts and as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aigo_bridge.errors import UnsupportedPlanError

Kind = Literal["converted", "python scorer", "refused", "not made"]

KINDS: Mapping[Kind, str] = {
    "converted": "converted; scoring does not need the engine",
    "python scorer": "converted, with a `python` scorer that calls the benchmark's scorer",
    "refused": "refused",
    "not made": "not tried in this environment",
}


@dataclass(frozen=True)
class Verdict:
    """Conversion outcome of one task."""

    name: str
    kind: Kind
    reasons: tuple[str, ...] = ()
    """Reasons why the task was refused or not constructed."""

    @classmethod
    def of_document(cls, task: str, document: Mapping[str, Any]) -> Verdict:
        """Return the outcome of a converted task."""
        needs = any(
            "needs the package" in part.get(name, "")
            for scorer in document["definition"]["scorers"]
            for part in (scorer, *scorer["metrics"])
            for name in ("compute_scores_snippet", "compute_metrics_snippet")
        )
        return cls(task, "python scorer" if needs else "converted")


def of_error(name: str, error: BaseException, *, rows: str | None = None) -> Verdict:
    """Return the outcome of a task that was refused or could not be constructed."""
    if rows is not None or not isinstance(error, UnsupportedPlanError):
        return Verdict(name, "not made", (_obstacle(rows or f"{type(error).__name__}: {error}"),))
    lines = [line.strip() for line in str(error).splitlines() if line.startswith("  - ")]
    return Verdict(name, "refused", tuple(dict.fromkeys(_kind_of(line) for line in lines)))


OBSTACLES: Mapping[str, tuple[str, ...]] = {
    "a missing package, program or key": (
        "ModuleNotFound", "ImportError", "optional dependenc", "install", "API_KEY", "is not set",
    ),
    "data from a file, an archive or a repository": (
        "Offline", "FileNotFound", "ConnectionError", "Failed to download", "RetryError", "zip file", "Connect",
        "PathLike", "IncompleteRead",
    ),
    "code that does not work with this release": ("positional argument", "several documents of a row"),
}  # fmt: skip
"""Words in error messages, by obstacle."""

NO_ROW = "no suitable row was found"


def _obstacle(failure: str) -> str:
    """Return the reason why a task could not be constructed."""
    return next((text for text, words in OBSTACLES.items() if any(word in failure for word in words)), NO_ROW)


def _kind_of(line: str) -> str:
    """Return a reason without task-specific parts: names, numbers, hints."""
    part, _, reason = line.removeprefix("- ").partition(": ")
    part = re.sub(r"\[\d+\]| \(.*\)", "", part)
    reason = re.sub(r" \((run it|exact|set |give ).*$", "", reason)
    reason = re.sub(r"\d+", "N", re.sub(r"(?<!\w)'[^']*'(?!\w)", "…", reason))
    return f"{part}: {reason}"


def markdown(verdicts: Iterable[Verdict], title: str, *, most: int = 12) -> str:
    """Return the counts, and the reasons sorted by number of affected tasks."""
    listed = list(verdicts)
    counts = Counter(verdict.kind for verdict in listed)
    lines = [f"**{title}**: {len(listed)} tasks", "", "| outcome | tasks |", "|---|---|"]
    lines += [f"| {text} | {counts[kind]} |" for kind, text in KINDS.items()]
    for kind, heading in (("refused", "refused: message"), ("not made", "not tried: reason")):
        # A task with the same reason in two of its parts counts once.
        reasons = Counter(
            reason for verdict in listed if verdict.kind == kind for reason in dict.fromkeys(verdict.reasons)
        )
        if reasons:
            lines += ["", f"| {heading} | tasks |", "|---|---|"]
            lines += [f"| `{_cell(reason)}` | {count} |" for reason, count in reasons.most_common(most)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "")


def differences(verdicts: Sequence[Verdict], expected: Mapping[str, Kind]) -> dict[str, tuple[str, str]]:
    """Return the tasks whose outcome differs from the expected one, with both outcomes."""
    return {
        verdict.name: (verdict.kind, expected[verdict.name])
        for verdict in verdicts
        if expected.get(verdict.name, verdict.kind) != verdict.kind
    }
