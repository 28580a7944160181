"""Names of scorers that were given none."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.spec.scorers import Scorer, default_keys


def scorer_keys(scorers: Sequence[Scorer]) -> tuple[str, ...]:
    """One key per scorer: its own, else its type, with `_2`, `_3` … where that is taken."""
    return default_keys([(scorer.key, scorer.type) for scorer in scorers])
