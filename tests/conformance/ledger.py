"""Known gaps: features that an engine does not support, with the reason. The check is strict: unlisted and
outdated gaps fail.

A gap is an error before the run starts. All supported features must give the same outcome, so differences
cannot be listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["never", "notyet", "todo"]
"""`never`: the engine cannot support the feature. `notyet`: the engine could support it, but the adapter does
not. `todo`: it should work now."""


@dataclass(frozen=True)
class KnownGap:
    """Features that one engine rejects for the same reason."""

    engine: str
    features: tuple[str, ...]
    """Ids of features (`<area>: <name>`), or `task: <name>` for shipped tasks."""
    kind: Kind
    reason: str
    """Reason, as in the support table."""
    says: str
    """Expected text in the error message."""


LEDGER: tuple[KnownGap, ...] = (
    KnownGap(
        engine="lighteval",
        features=(
            "solvers: agent_solver",
            "scorers: code_exec",
            "task: ctf-small",
            "task: handoff-small",
            "task: humaneval",
            "task: mbpp",
            "task: repair-small",
        ),
        kind="never",
        reason="sandbox not available",
        says="this engine does not have a sandbox",
    ),
    KnownGap(
        engine="inspect",
        features=("scorers: string_equals_mcqa with log-likelihoods",),
        kind="never",
        reason="log-likelihoods not available",
        says="compares log-likelihoods of given texts, which this engine's models do not return",
    ),
    KnownGap(
        engine="lighteval",
        features=("runs: cost limit",),
        kind="never",
        reason="prices not available",
        says="does not know prices",
    ),
)


def known_gap(engine: str, feature: str) -> KnownGap | None:
    """Return the listed gap of an engine; `None` if it must support the feature."""
    return next((gap for gap in LEDGER if gap.engine == engine and feature in gap.features), None)


def entries() -> Iterator[tuple[str, str]]:
    """Yield the engine and feature of every gap."""
    for gap in LEDGER:
        for feature in gap.features:
            yield gap.engine, feature
