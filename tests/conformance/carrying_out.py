"""Run of one feature or shipped task on every engine, compared with its expectation, the ledger and the other
engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.conformance.comparing import ENGINES, differences, outcome_on
from tests.conformance.expecting import mismatches
from tests.conformance.features import Ready
from tests.conformance.ledger import known_gap

from aigo_bridge.errors import BridgeError
from aigo_bridge.plan.plan import TaskPlan
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.verifying import verify


def faults(
    name: str, make: Callable[[], Ready], out: Path, expect: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the errors of all engines for a plan; empty if there are none.

    Args:
        name: name of the feature or task in the ledger.
        make: returns a new plan and settings for each engine.
        out: folder for the runs.
        expect: expected outcome of every engine. `None` only compares the engines.
    """
    found: list[str] = []
    outcomes: dict[str, dict[str, Any]] = {}
    for engine in ENGINES:
        gap = known_gap(engine, name)
        made = make()
        try:
            outcome = outcome_on(engine, made.plan, out, **made.settings)
            found += [f"{engine}: {line}" for line in unproved(made.plan, out / engine / "result.json")]
            if made.again is not None:
                second = made.again(out / engine / "result.json")
                outcome = outcome_on(engine, second.plan, out, **second.settings)
        except BridgeError as error:
            if gap is None:
                found.append(f"{engine} refuses what the ledger does not list: {error}")
            elif gap.says not in str(error):
                found.append(f"{engine} refuses, but not because of {gap.says!r}: {error}")
            continue
        if gap is not None:
            found.append(f"{engine} carries out what the ledger lists as a gap ({gap.reason})")
        if expect is not None:
            found += [f"{engine}: {mismatch}" for mismatch in mismatches(expect, outcome)]
        outcomes[engine] = outcome
    if not outcomes:
        found.append("no engine carries it out")
    (first, *others) = outcomes or [""]
    for other in others:
        found += [f"{first} | {other}: {each}" for each in differences(outcomes[first], outcomes[other])]
    return found


def unproved(plan: TaskPlan, result: Path, replay: Path | None = None) -> list[str]:
    """Return the findings of `verify` for an unchanged result, with access to the task and with its scorers
    run again.

    Scores that cannot be recomputed although the judge replies are available are included.

    Args:
        plan: plan of the result.
        result: the result file.
        replay: cassette of the run. `None` uses the replies in the result.
    """
    if plan.origin is None:
        return []
    materials = Materials(
        plan.origin.task,
        dict(plan.origin.datasets),
        root=plan.origin.root,
        rerun_scorers=True,
        replay=replay,
    )
    levels = verify(result, materials).levels
    missing = [note for level in levels for note in level.notes if "scores not computed" in note]
    return [f"{level.name}: {finding}" for level in levels for finding in level.findings] + missing
