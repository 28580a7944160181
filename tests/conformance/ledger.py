"""Known gaps: what an engine cannot do, with the reason. Strict both ways: a gap that is not listed fails, and so does one that is gone.

A gap is a refusal before anything runs. What runs must come to the same everywhere, so there is no entry for a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["never", "notyet", "todo"]
"""`never`: the engine has not what it takes. `notyet`: it has, and the adapter does not use it so far. `todo`: it should work now."""


@dataclass(frozen=True)
class KnownGap:
    """One engine, and the features that it refuses for one reason."""

    engine: str
    features: tuple[str, ...]
    """Ids of features (`<area>: <name>`), or `task: <name>` for shipped tasks."""
    kind: Kind
    reason: str
    """As the support table says it."""
    says: str
    """What the refusal says."""


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
        says="this engine has no sandbox",
    ),
    KnownGap(
        engine="inspect",
        features=("scorers: string_equals_mcqa with log-likelihoods",),
        kind="never",
        reason="log-likelihoods not available",
        says="compares log-likelihoods of given texts, which this engine's models do not tell",
    ),
    KnownGap(
        engine="lighteval",
        features=("runs: cost limit",),
        kind="never",
        reason="prices not available",
        says="knows no prices",
    ),
)


def known_gap(engine: str, feature: str) -> KnownGap | None:
    """The listed gap of an engine; `None` when it must carry the feature out."""
    return next((gap for gap in LEDGER if gap.engine == engine and feature in gap.features), None)


def entries() -> Iterator[tuple[str, str]]:
    """Engine and feature of every gap."""
    for gap in LEDGER:
        for feature in gap.features:
            yield gap.engine, feature
